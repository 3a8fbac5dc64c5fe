package cli

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/creack/pty"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// writing is a writer that calls itself.
type writing func([]byte) (int, error)

func (w writing) Write(text []byte) (int, error) { return w(text) }

func TestStopAsksBeforeItDeletesFiles(t *testing.T) {
	loses := func(loss hub.Loss) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, loss) }
	}
	files := func(names ...string) http.HandlerFunc { return loses(hub.Loss{Files: names, Count: len(names)}) }
	after := []hub.Cancelled{{ID: "aaaaaaaaaaaa", Name: "eval-b"}, {ID: "bbbbbbbbbbbb", Name: "report-c"}}
	lost := func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, session.Error{Code: "agent_call_unavailable", Message: "No answer."})
	}
	for name, c := range map[string]struct {
		ref    string
		loss   http.HandlerFunc
		answer string // empty: it must not ask
		says   string
		args   []string
		pipe   bool // there is no terminal
		stops  bool
	}{
		"yes": {ref: "train-a", loss: files("a.txt", "b"), answer: "yes",
			says: "2 entries of its home directory: a.txt, b", stops: true},
		"no": {ref: "train-a", loss: files("a.txt"), answer: "no",
			says: "1 entry of its home directory: a.txt"},
		"no files":  {ref: "train-a", loss: files(), stops: true},
		"not known": {ref: "train-a", loss: lost, answer: "no", says: "everything in it"},
		"not listed": {ref: "train-a", loss: loses(hub.Loss{Unknown: true, Cancels: after}), answer: "no",
			says: "everything in it. It cancels 2 sessions that start after it: eval-b, report-c."},
		"others wait": {ref: "waiting-one", loss: loses(hub.Loss{Cancels: after[:1]}), answer: "no",
			says: "This cancels 1 session that starts after it: eval-b."},
		"without question": {ref: "train-a", loss: files("a.txt"), args: []string{"-y"}, stops: true},
		"without terminal": {ref: "train-a", loss: files("a.txt"), pipe: true, stops: true},
		"not running":      {ref: "waiting-one", loss: lost, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPlane(t)
			f.sessions = sampleSessions()
			f.handle("GET /api/v1/sessions/{id}/loss", c.loss)
			var stopped atomic.Bool
			f.handle("POST /api/v1/sessions/{id}/terminate", func(w http.ResponseWriter, r *http.Request) {
				stopped.Store(true)
				s, _ := f.find(r.PathValue("id"))
				reply(w, http.StatusAccepted, s)
			})
			person, terminal, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer person.Close()
			defer terminal.Close()
			go io.Copy(io.Discard, person) //nolint:errcheck // it ends with the terminal
			var stderr strings.Builder
			answers := writing(func(text []byte) (int, error) {
				if strings.Contains(string(text), "(yes/no)") {
					if _, err := io.WriteString(person, cmp.Or(c.answer, "no")+"\n"); err != nil {
						t.Error(err)
					}
				}
				return stderr.Write(text)
			})
			config := testConfig(f.home, nil, terminal, answers, append([]string{"stop", c.ref}, c.args...))
			if config.Stdin = terminal; c.pipe {
				config.Stdin, config.Stdout = strings.NewReader(""), io.Discard
			}
			code := Main(t.Context(), config)
			if stopped.Load() != c.stops || (code == ExitOK) != c.stops || !strings.Contains(stderr.String(), c.says) ||
				strings.Contains(stderr.String(), "yes/no") != (c.answer != "") {
				t.Errorf("stopped %t, code %d, %s", stopped.Load(), code, stderr.String())
			}
		})
	}
}
