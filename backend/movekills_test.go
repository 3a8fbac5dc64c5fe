//go:build linux

package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/api"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// census counts the running containers of sessions of one name, again and again.
type census struct {
	name string
	web  *http.Client

	mu    sync.Mutex // guards what follows
	looks int
	most  int
	err   error
}

// newCensus looks at a Docker until the test ends, which fails if there were ever two.
func newCensus(t *testing.T, docker, name string) *census {
	t.Helper()
	address := strings.TrimPrefix(docker, "unix://")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", address)
	}}
	c := &census{name: name, web: &http.Client{Transport: transport}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			running, err := c.count()
			c.mu.Lock()
			c.looks, c.most = c.looks+1, max(c.most, len(running))
			if c.err == nil {
				c.err = err
			}
			c.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond): // how often it looks
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		transport.CloseIdleConnections()
		if c.most > 1 || c.err != nil || c.looks == 0 {
			t.Errorf("in %d looks, at most %d sessions named %s ran, %v", c.looks, c.most, name, c.err)
		}
	})
	return c
}

// count returns the containers of the name that run at this moment.
func (c *census) count() (running []string, err error) {
	filters, err := json.Marshal(map[string][]string{"label": {engine.LabelName + "=" + c.name}, "status": {"running"}})
	if err != nil {
		return nil, err
	}
	answer, err := c.web.Get("http://docker/containers/json?filters=" + url.QueryEscape(string(filters)))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var found []struct{ ID string }
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil {
		return nil, err
	}
	for _, one := range found {
		running = append(running, one.ID)
	}
	return running, nil
}

// begins begins to move a session to a machine.
func (l *laptop) begins(name, to string) (begun api.Operation) {
	l.t.Helper()
	l.call("POST", "/api/v1/sessions/"+name+"/relocation", `{"agent":"`+to+`"}`, &begun)
	return begun
}

// move is the operation that moves a session, of this control plane or of the one before.
func (l *laptop) move(name string) (newest api.Operation) {
	l.t.Helper()
	var all []api.Operation
	l.call("GET", "/api/v1/operations", "", &all)
	for _, o := range all {
		if o.Kind == hub.SessionMove && o.Subject == name && !o.StartedAt.Before(newest.StartedAt) {
			newest = o
		}
	}
	return newest
}

func stepOf(o api.Operation, name string) (step api.OpStep) {
	if i := slices.IndexFunc(o.Steps, func(s api.OpStep) bool { return s.Name == name }); i >= 0 {
		step = o.Steps[i]
	}
	return step
}

// ends waits for the end of a move, and answers its question.
func (l *laptop) ends(ctx context.Context, name, text string) (o api.Operation) {
	l.t.Helper()
	eventually(ctx, l.t, "the move has ended", func() bool {
		if o = l.move(name); o.Prompt != nil {
			answer, err := json.Marshal(api.PromptAnswer{Prompt: o.Prompt.ID, Text: text})
			if err != nil {
				l.t.Fatal(err)
			}
			l.call("POST", "/api/v1/operations/"+o.ID+"/answer", string(answer), nil)
		}
		return o.State.Ended()
	})
	return o
}

// killsAgent kills the agent that has its files in a folder.
func (w *farWorld) killsAgent(home string) {
	w.t.Helper()
	killed := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path) // the process may have ended
		if !strings.HasPrefix(string(line), home+"/") || !strings.HasSuffix(string(line), "\x00agent\x00--quiet\x00") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil && unix.Kill(pid, unix.SIGKILL) == nil {
			killed++
		}
	}
	if killed != 1 {
		w.t.Errorf("%d agents of %s were killed", killed, home)
	}
}

// killsHub kills the control plane, and starts the next one.
func (l *laptop) killsHub() {
	l.t.Helper()
	serving, err := l.at.Serving()
	if err == nil {
		err = unix.Kill(serving.PID, unix.SIGKILL)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.do("agent", "list")
	l.connect()
}

// growing writes numbers into a file of the home, so that it differs at each moment.
const growing = `import itertools, time
with open("/home/work/grown", "w") as grown:
    for number in itertools.count(1):
        print("%020000d" % number, file=grown, flush=True)
        time.sleep(0.02)
`

// whole fails unless all numbers are there, in a row. The last line may have been cut.
const whole = `lines = open("/home/work/grown").read().split("\n")[:-1]
assert [line.lstrip("0") for line in lines] == [str(n + 1) for n in range(len(lines))]
`

// TestAMoveSurvivesEveryKill moves a session to and fro between two agents, and kills a process at each phase.
func TestAMoveSurvivesEveryKill(t *testing.T) {
	w := newFarWorld(t)
	w.slow()
	l := newLaptop(w, w.build("1.0.1"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	homes := map[string]string{"lab": w.home, "attic": l.adds(ctx)}
	seen := newCensus(t, w.dockerHost, "survivor")
	l.do("run", "--wait", "--on", "lab", "--image", enginetest.ImageMinimal, "--name", "survivor", "--cpu", "1",
		"--mem", "256m")
	for _, phase := range []string{"sync-0", "park", "rest-0", "launch"} {
		for _, victim := range []string{"source", "target", "hub"} {
			if phase == "park" && victim == "target" { // which does nothing then
				continue
			}
			t.Run(victim+" at "+phase, func(t *testing.T) {
				began := time.Now()
				at := l.session("survivor").Agent
				to := map[string]string{"lab": "attic", "attic": "lab"}[at]
				sum := strings.TrimSpace(l.do("exec", "survivor", "--", "sh", "-c",
					"head -c 12M /dev/urandom >/home/work/noise; sha256sum /home/work/noise"))
				l.starts("survivor", "python3", "-c", growing)
				begun := l.begins("survivor", to)
				var o api.Operation
				eventually(ctx, t, "it is at "+phase, func() bool {
					l.call("GET", "/api/v1/operations/"+begun.ID, "", &o)
					state := stepOf(o, phase).State
					return state != "" && state != hub.StepPending
				})
				switch victim {
				case "hub":
					l.killsHub()
				case "source":
					w.killsAgent(homes[at])
				case "target":
					w.killsAgent(homes[to])
				}
				ended := l.ends(ctx, "survivor", "yes")
				t.Logf("killed when it was %s; %s after %s", stepOf(o, phase).State, ended.State,
					time.Since(began).Round(time.Millisecond))
				if now := l.session("survivor"); ended.State != hub.OperationDone || now.Agent != to ||
					now.Status != session.Running {
					t.Fatalf("it is %s on %s: %v, %+v", now.Status, now.Agent, ended.Error, ended.Steps)
				}
				if running, err := seen.count(); err != nil || len(running) != 1 {
					t.Errorf("%v run, %v", running, err)
				}
				got := strings.TrimSpace(l.do("exec", "survivor", "--", "sha256sum", "/home/work/noise"))
				if got != sum {
					t.Errorf("the file is %s, and was %s", got, sum)
				}
				l.do("exec", "survivor", "--", "python3", "-c", whole)
			})
		}
	}
	l.do("stop", "--force", "--wait", "--wait-timeout", "60s", "survivor")
	for _, name := range []string{"lab", "attic"} {
		l.do("agent", "rm", name, "--uninstall", "-y")
	}
}
