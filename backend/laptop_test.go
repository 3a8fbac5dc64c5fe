//go:build linux

package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// laptop is the near end of a [farWorld]: the whole program, in its namespace.
type laptop struct {
	*farWorld
	program string
	engine  []string // variables that choose what runs its own sessions
	at      place.Home
	url     string
	web     *http.Client
	sockets *websocket.Dialer
	token   string
}

func newLaptop(w *farWorld, program string) *laptop {
	w.t.Helper()
	l := &laptop{farWorld: w, program: program, engine: []string{"SLIPWAY_ENGINE=sim"},
		at: place.Home{Dir: filepath.Join(w.dir, "laptop")}}
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{DialContext: l.dial}
	w.t.Cleanup(transport.CloseIdleConnections)
	l.web = &http.Client{Jar: jar, Transport: transport}
	l.sockets = &websocket.Dialer{NetDialContext: l.dial}
	w.t.Cleanup(func() {
		if _, err := l.run("shutdown"); err != nil {
			w.t.Error(err)
		}
		if log, err := os.ReadFile(l.at.LogFile()); err == nil && w.t.Failed() {
			w.t.Logf("the laptop's log:\n%s", log)
		}
	})
	return l
}

// dial connects to a port of the laptop's own loopback, by any name.
func (l *laptop) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	nsErr := within(l.near, func() { conn, err = (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port) })
	return conn, errors.Join(err, nsErr)
}

// within calls do in a network namespace.
func within(namespace string, do func()) error {
	runtime.LockOSThread() // a namespace is a thread's
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer here.Close() //nolint:errcheck // only read
	there, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer there.Close() //nolint:errcheck // only read
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	do()
	if err := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); err != nil {
		return err // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return nil
}

// run runs a command of the program on the laptop.
func (l *laptop) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=/run/netns/" + l.near, l.program}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(),
		func(v string) bool { return strings.HasPrefix(v, "DOCKER_HOST=") }),
		append(l.engine, "SLIPWAY_HOME="+l.at.Dir, "SLIPWAY_SSH_CONFIG="+l.client)...)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil {
		return out.String(), errors.Join(err, errors.New(strings.Join(args, " ")+": "+out.String()+diag.String()))
	}
	return out.String(), nil
}

func (l *laptop) do(args ...string) string {
	l.t.Helper()
	out, err := l.run(args...)
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// connect finds the control plane that a command has started.
func (l *laptop) connect() {
	l.t.Helper()
	serving, err := l.at.Serving()
	if err != nil {
		l.t.Fatal(err)
	}
	if l.token, err = l.at.Token(); err != nil {
		l.t.Fatal(err)
	}
	l.url = serving.URL
}

// call is one request of the API.
func (l *laptop) call(method, path, body string, out any) {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+l.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := l.web.Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 400 {
		l.t.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode, data, err)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			l.t.Fatalf("%s %s: %v: %s", method, path, err, data)
		}
	}
}

// agent is the lab as the laptop knows it.
func (l *laptop) agent() (a api.Agent) {
	l.t.Helper()
	l.call("GET", "/api/v1/agents/lab", "", &a)
	return a
}

func (l *laptop) session(id string) (s api.Session) {
	l.t.Helper()
	l.call("GET", "/api/v1/sessions/"+id, "", &s)
	return s
}

// show follows a terminal over one socket from an offset, and gives what it
// shows to a watcher, until the socket ends.
func (l *laptop) show(w *watcher, id string) (end func()) {
	l.t.Helper()
	address := "ws" + strings.TrimPrefix(l.url, "http") + "/api/v1/sessions/" + id + "/terminals/" + w.name +
		"/attach?client=watcher&offset=" + w.offset()
	header := http.Header{"Authorization": {"Bearer " + l.token}}
	conn, _, err := l.sockets.DialContext(l.t.Context(), address, header)
	if err != nil {
		l.t.Fatal(err)
	}
	ended := make(chan struct{})
	leaving := make(chan struct{})
	fail := func(err error) {
		select {
		case <-leaving: // closed by the test itself
		default:
			w.fail(err)
		}
	}
	go func() {
		defer close(ended)
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				fail(errors.Join(errors.New("the terminal's socket ended"), err))
				return
			}
			f, err := terminal.ParseMessage(message)
			if err == nil {
				var ack *terminal.Frame
				if ack, err = w.take(f); ack != nil {
					err = errors.Join(err, conn.WriteMessage(websocket.BinaryMessage, ack.Message()))
				}
			}
			if err != nil {
				fail(err)
				return
			}
		}
	}()
	return func() {
		close(leaving)
		_ = conn.Close()
		<-ended
	}
}

// adds adds two accounts of the lab as agents, lab and attic. It returns the folder of the second.
func (l *laptop) adds(ctx context.Context) (other string) {
	l.t.Helper()
	began := time.Now()
	l.do("agent", "add", "lab")
	l.t.Logf("added in %s", time.Since(began).Round(time.Millisecond))
	other = l.home + "-attic"
	l.do("agent", "add", "attic", "--dir", other)
	l.t.Cleanup(func() {
		if !l.t.Failed() {
			return
		}
		for _, name := range []string{"lab", "attic"} {
			_, _ = l.run("agent", "rm", name, "--uninstall", "-y") // where the test fails half-way
		}
	})
	l.connect()
	eventually(ctx, l.t, "the lab answers", func() bool {
		a := l.agent()
		return a.Connection.State == "connected" && a.Version == "1.0.1"
	})
	return other
}

// TestLaptopUsesALabThatItOnlyHasALoginTo goes the whole way that a person goes,
// with the program's own commands: add, launch, work, lose the network, upgrade,
// remove.
func TestLaptopUsesALabThatItOnlyHasALoginTo(t *testing.T) {
	w := newFarWorld(t)
	old, fresh := w.build("1.0.1"), w.build("1.0.2")
	l := newLaptop(w, old)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	other := l.adds(ctx)
	id := strings.TrimSpace(l.do("run", "-d", "--on", "lab", "--image", enginetest.ImageNotebook, "--name", "far-away",
		"--cpu", "1", "--mem", "768m"))
	eventually(ctx, t, "the session runs", func() bool { return l.session(id).Status == "RUNNING" })
	container := l.session(id).Kernels[0].Container
	if got := strings.TrimSpace(l.do("exec", "far-away", "--", "python3", "-c", "print(6*7)")); got != "42" {
		t.Errorf("it prints %q", got)
	}

	var shell session.Terminal
	l.call("POST", "/api/v1/sessions/"+id+"/terminals",
		`{"cols":80,"rows":24,"command":["sh","-c","i=0; while :; do i=$((i+1)); echo n$i; sleep 0.02; done"]}`, &shell)
	watch := &watcher{name: shell.ID}
	end := l.show(watch, id)
	defer func() { end() }()
	grows := func(what string) {
		t.Helper()
		from := watch.count(t)
		eventually(ctx, t, "the terminal goes on "+what, func() bool { return watch.count(t) > from+20 })
	}
	grows("at first")
	var opened api.Opened
	l.call("POST", "/api/v1/sessions/"+id+"/apps/notebook/open", "{}", &opened)
	fetch(t, l.web, "GET", opened.URL, "", nil)
	origin := strings.TrimSuffix(opened.App.URL, "/")
	fetch(t, l.web, "GET", origin+"/api/kernels", "", nil)

	t.Run("the cable is out and nobody has to do anything", func(t *testing.T) {
		before := watch.count(t)
		w.cut(true)
		eventually(ctx, t, "the loss is noticed", func() bool { return l.agent().Connection.State != "connected" })
		if s := l.session(id); s.Status != "RUNNING" {
			t.Errorf("meanwhile the session is %s", s.Status)
		}
		page := make(chan error, 1)
		go func() { // a page that was open asks again
			response, err := l.web.Get(origin + "/api/status")
			if err == nil {
				if response.StatusCode != 200 {
					err = errors.New(response.Status)
				}
				err = errors.Join(err, response.Body.Close())
			}
			page <- err
		}()
		time.Sleep(2 * time.Second) // how long the cable is out, not a wait for anything
		w.cut(false)
		back := time.Now()
		eventually(ctx, t, "it is connected again", func() bool { return l.agent().Connection.State == "connected" })
		t.Logf("back after %s", time.Since(back).Round(time.Millisecond))
		if err := <-page; err != nil {
			t.Errorf("the page that waited: %v", err)
		}
		eventually(ctx, t, "the terminal goes on over the same socket",
			func() bool { return watch.count(t) > before+20 })
	})

	t.Run("the laptop brings its new version and the session goes on", func(t *testing.T) {
		end()
		end = func() {}
		l.do("shutdown")
		l.program = fresh
		l.do("agent", "list") // starts the new version
		l.connect()
		eventually(ctx, t, "the lab is found again and an upgrade is offered", func() bool {
			a := l.agent()
			return a.Connection.State == "connected" && a.Version == "1.0.1" && a.Upgrade == "1.0.2"
		})
		began := time.Now()
		if out := l.do("agent", "upgrade", "--all"); out != "2 upgraded, 0 failed.\n" {
			t.Errorf("it says %q", out)
		}
		t.Logf("both upgraded in %s", time.Since(began).Round(time.Millisecond))
		eventually(ctx, t, "the new version answers on both", func() bool {
			var agents []api.Agent
			l.call("GET", "/api/v1/agents", "", &agents)
			return !slices.ContainsFunc(agents, func(a api.Agent) bool {
				return a.Connection.State != "connected" || a.Version != "1.0.2" || a.Upgrade != ""
			})
		})
		eventually(ctx, t, "the session is adopted", func() bool {
			s := l.session(id)
			return s.Status == "RUNNING" && s.Kernels[0].Container == container
		})
		end = l.show(watch, id)
		grows("under the new version")
		if out := l.do("agent", "upgrade", "--all"); out != "0 upgraded, 0 failed.\n" {
			t.Errorf("once more it says %q", out)
		}
	})

	t.Run("a project of the laptop becomes a session there", l.opensAProject)

	t.Run("removed, nothing is left there", func(t *testing.T) {
		end()
		end = func() {}
		for name, dir := range map[string]string{"lab": w.home, "attic": other} {
			l.do("agent", "rm", name, "--uninstall", "-y")
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is there: %v", dir, err)
			}
		}
		eventually(ctx, t, "no process is left", func() bool { return len(w.processes()) == 0 })
		list := exec.Command("docker", "-H", w.dockerHost, "ps", "-aq", "--filter", "label=slipway.session="+id)
		if out, err := list.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("containers %s, %v", out, err)
		}
		if out := l.do("agent", "list"); strings.Contains(out, "ssh://") {
			t.Errorf("it is still known:\n%s", out)
		}
	})
}

// opensAProject builds a project of the laptop at the lab, and again after a change.
func (l *laptop) opensAProject(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "paper")
	enginetest.WriteFiles(t, dir, "Dockerfile", "FROM "+enginetest.ImageMinimal+"\nCOPY said /said\n")
	for _, said := range []string{"one\n", "two\n"} {
		enginetest.WriteFiles(t, dir, "said", said)
		began := time.Now()
		got := l.do("up", "--on", "lab", "--cpu", "1", "--mem", "256m", dir, "cat", "/said", "paper/said")
		t.Logf("built and launched in %s", time.Since(began).Round(time.Millisecond))
		if got != said+said {
			t.Errorf("the project says %q, want %q twice", got, said)
		}
		l.do("stop", "--wait", "paper")
	}
	var images []session.Image
	l.call("GET", "/api/v1/images?agent=lab", "", &images)
	for _, image := range images {
		for _, ref := range image.Refs {
			if strings.Contains(ref, "/paper:project-") {
				l.do("image", "rm", "--yes", "--on", "lab", ref)
			}
		}
	}
}
