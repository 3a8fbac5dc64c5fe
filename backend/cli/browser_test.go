package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/client"
	"slipway/backend/session"
)

// fakeBrowser stands in for the program that opens a browser. It writes down its
// arguments, which every user of the computer could read.
func fakeBrowser(t *testing.T) (arguments func() string) {
	t.Helper()
	name := map[string]string{"darwin": "open", "windows": "rundll32"}[runtime.GOOS]
	if name == "" {
		name = "xdg-open"
	}
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\nprintf '%s\\n' \"$*\" > '" + said + ".new' && mv '" + said + ".new' '" + said + "'\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return func() string {
		for {
			data, err := os.ReadFile(said)
			if err == nil {
				return strings.TrimSpace(string(data))
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal("no browser was started")
			}
		}
	}
}

// TestNoCodeIsAmongAProcesssArguments opens the browser in each way that there is.
func TestNoCodeIsAmongAProcesssArguments(t *testing.T) {
	const secret = "http://127.0.0.1:7421/login?code=secret"
	for _, args := range [][]string{{"login", "--open"}, {"open-link", "slipway://run?image=python:3.12"}} {
		for _, known := range []bool{true, false} {
			arguments := fakeBrowser(t)
			f := newPlane(t)
			f.handle("POST /api/v1/window", func(w http.ResponseWriter, _ *http.Request) {
				reply(w, http.StatusOK, api.Shown{})
			})
			f.handle("POST /api/v1/login", func(w http.ResponseWriter, _ *http.Request) {
				reply(w, http.StatusCreated, api.LoginLink{URL: secret})
			})
			f.handle("POST /api/v1/login/pass", func(w http.ResponseWriter, r *http.Request) {
				var asked api.PassRequest
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !strings.HasPrefix(asked.URL, secret) {
					t.Errorf("a pass is asked for %+v, %v", asked, err)
				}
				if !known {
					refuse(w, session.Error{Code: "server_start_failed", Message: "Unknown."})
					return
				}
				reply(w, http.StatusCreated, api.Pass{URL: "http://127.0.0.1:7421/pass/p"})
			})
			if got := f.run(t, args...); got.code != ExitOK {
				t.Fatalf("%v: %+v", args, got)
			}
			said := arguments()
			if strings.Contains(said, "secret") || strings.Contains(said, "code=") {
				t.Errorf("%v starts the browser with %q", args, said)
			}
			if known {
				if said != "http://127.0.0.1:7421/pass/p" {
					t.Errorf("%v starts the browser with %q", args, said)
				}
				continue
			}
			file := filepath.Join(f.home.Dir, "open.html")
			info, err := os.Stat(file)
			if err != nil || said != file || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
				t.Errorf("%v starts the browser with %q: %v, %v", args, said, info, err)
			}
			if page, err := os.ReadFile(file); err != nil || !strings.Contains(string(page), `content="0;url=`+secret) {
				t.Errorf("the page is %q, %v", page, err)
			}
		}
	}
}

func TestEnterPrintsANewAddress(t *testing.T) {
	f := newPlane(t)
	given := 0
	f.handle("POST /api/v1/login", func(w http.ResponseWriter, _ *http.Request) {
		if given++; given == 2 {
			refuse(w, session.Error{Code: "request_read_unavailable",
				Message: "It ends."})
			return
		}
		reply(w, http.StatusCreated, api.LoginLink{URL: "http://127.0.0.1:7421/login?code=" + strings.Repeat("n",
			given)})
	})
	var stdout, stderr strings.Builder
	p := &program{Config: testConfig(f.home, nil, &stdout, &stderr, nil), output: outputTable}
	connect := func() (*caller, error) {
		c, err := client.Connect(t.Context(), f.home)
		return &caller{c, p}, err
	}
	p.giveLogins(t.Context(), strings.NewReader("\n\nx\n"), connect)
	if got := stdout.String(); got != "  http://127.0.0.1:7421/login?code=n\n  http://127.0.0.1:7421/login?code=nnn\n" {
		t.Errorf("it prints %q", got)
	}
	if !strings.Contains(stderr.String(), "It ends.") {
		t.Errorf("the failure is told as %q", stderr.String())
	}
}
