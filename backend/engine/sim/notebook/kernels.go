package notebook

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
)

const (
	// kernelSilence is how long a page may be silent before its kernel is forgotten. Pages report every few seconds.
	kernelSilence = 30 * time.Second
	mostKernels   = 64
)

// kernels are the Pythons in people's browsers, as their pages report them. The agent asks for them, as it asks
// Jupyter, to know what is in use.
type kernels struct {
	clock *pace.Clock

	mu   sync.Mutex // guards byID
	byID map[string]*kernel
}

// kernel is one of them, in Jupyter's format.
type kernel struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	State        string    `json:"execution_state"`
	LastActivity time.Time `json:"last_activity"`
	seen         time.Time // on the clock on the wall, by which pages live
}

func (k *kernels) list(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	k.forget(time.Now())
	list := make([]kernel, 0, len(k.byID))
	for _, id := range slices.Sorted(maps.Keys(k.byID)) {
		list = append(list, *k.byID[id])
	}
	k.mu.Unlock()
	writeJSON(w, http.StatusOK, list)
}

// forget removes kernels whose pages are silent. It needs mu.
func (k *kernels) forget(now time.Time) {
	maps.DeleteFunc(k.byID, func(_ string, one *kernel) bool { return now.Sub(one.seen) > kernelSilence })
}

// put records the state of a page's kernel: busy or idle.
func (k *kernels) put(w http.ResponseWriter, r *http.Request) {
	var told struct {
		State string `json:"state"`
	}
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&told)
	id := r.PathValue("id")
	if err != nil || told.State != "busy" && told.State != "idle" || len(id) > 64 ||
		strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' }) {
		writeJSON(w, http.StatusBadRequest,
			problem{Code: session.CodeRequestInvalid, Message: "A kernel is busy or idle.", Hint: "Reload the page."})
		return
	}
	now, worked := time.Now(), k.clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(now)
	one := k.byID[id]
	if one == nil {
		if len(k.byID) >= mostKernels {
			writeJSON(w, http.StatusTooManyRequests,
				problem{Code: session.CodeUseTooMany, Message: "Too many pages of this notebook are open.",
					Hint: "Close some of them."})
			return
		}
		if k.byID == nil {
			k.byID = map[string]*kernel{}
		}
		one = &kernel{ID: id, Name: "python3", LastActivity: worked}
		k.byID[id] = one
	}
	if told.State == "busy" || one.State == "busy" {
		one.LastActivity = worked
	}
	one.State, one.seen = told.State, now
	w.WriteHeader(http.StatusNoContent)
}

func (k *kernels) remove(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	delete(k.byID, r.PathValue("id"))
	k.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
