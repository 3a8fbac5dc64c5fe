package place

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/gofrs/flock"
	"github.com/moby/sys/atomicwriter"
)

// Serving says where a control plane answers. It is the content of serve.json,
// written when it begins to answer and removed when it stops in good order.
type Serving struct {
	PID     int    `json:"pid"`
	Port    int    `json:"port"`
	URL     string `json:"url"` // http://127.0.0.1:PORT
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Demo    bool   `json:"demo,omitempty"` // nothing of it is real
	// Speed is how much faster than on the wall the time of a demo goes by, and
	// Shown what its clock showed at the moment Real.
	Speed float64   `json:"speed,omitempty"`
	Real  time.Time `json:"real,omitzero"`
	Shown time.Time `json:"shown,omitzero"`
}

// Serving reads serve.json; fs.ErrNotExist where no control plane has run since
// the last one stopped in good order. It may tell of one that was killed.
func (h Home) Serving() (Serving, error) {
	var s Serving
	data, err := os.ReadFile(h.servingFile())
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", h.servingFile(), err)
	}
	return s, nil
}

// SaveServing writes serve.json.
func (h Home) SaveServing(s Serving) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(h.servingFile(), append(data, '\n'), 0o600)
}

// RemoveServing removes serve.json. It is no error that there is none.
func (h Home) RemoveServing() error {
	if err := os.Remove(h.servingFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ErrLocked means that another control plane holds the folder.
var ErrLocked = errors.New("another control plane holds this folder")

// Lock makes the caller the only control plane of the folder until it is
// closed or the process ends, however it ends. It fails with [ErrLocked].
func (h Home) Lock() (*Lock, error) {
	if err := h.Make(); err != nil {
		return nil, err
	}
	lock := flock.New(h.lockFile(), flock.SetPermissions(0o600))
	taken, err := lock.TryLock()
	if err == nil && !taken {
		err = ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return &Lock{lock}, nil
}

// Lock is a held folder.
type Lock struct{ file *flock.Flock }

// Close gives the folder up. The file stays: removing it would let two hold
// locks on two files of one name.
func (l *Lock) Close() error { return l.file.Close() }
