package cli

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/creack/pty"

	"slipway/backend/api"
	"slipway/backend/session"
)

// writing is a writer that calls itself.
type writing func([]byte) (int, error)

func (w writing) Write(text []byte) (int, error) { return w(text) }

func TestStopAsksBeforeItDeletesFiles(t *testing.T) {
	listing := func(names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			answer := api.FileListing{Path: session.Home}
			for _, name := range names {
				answer.Entries = append(answer.Entries, api.FileInfo{Name: name})
			}
			reply(w, http.StatusOK, answer)
		}
	}
	lost := func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, session.Error{Code: "file_list_unavailable", Message: "No answer."})
	}
	for name, c := range map[string]struct {
		ref    string
		files  http.HandlerFunc
		answer string // empty: it must not ask
		says   string
		args   []string
		pipe   bool // there is no terminal
		keeps  bool // its home is a folder
		stops  bool
	}{
		"yes": {ref: "train-a", files: listing("a.txt", "b"), answer: "yes",
			says: "2 entries of its home directory: a.txt, b", stops: true},
		"no": {ref: "train-a", files: listing("a.txt"), answer: "no",
			says: "1 entry of its home directory: a.txt"},
		"no files":         {ref: "train-a", files: listing(".bashrc", "data"), stops: true}, // data is mounted
		"not known":        {ref: "train-a", files: lost, answer: "no", says: "everything in it"},
		"without question": {ref: "train-a", files: listing("a.txt"), args: []string{"-y"}, stops: true},
		"without terminal": {ref: "train-a", files: listing("a.txt"), pipe: true, stops: true},
		"not running":      {ref: "waiting-one", files: lost, stops: true},
		"kept":             {ref: "train-a", files: listing("a.txt"), keeps: true, stops: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPlane(t)
			f.sessions = sampleSessions()
			for i := range f.sessions {
				if c.keeps {
					f.sessions[i].Folders = []session.FolderMount{{Folder: "home", Name: "home", Target: session.Home}}
				}
			}
			f.handle("GET /api/v1/sessions/{id}/files", c.files)
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
