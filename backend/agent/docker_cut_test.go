package agent

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// fuse stands between an agent and a Docker daemon and can cut them off.
type fuse struct {
	path   string // of the socket that the agent uses
	daemon string // of the daemon's own

	mu       sync.Mutex // guards everything below
	listener net.Listener
	conns    []net.Conn
}

func newFuse(t *testing.T, daemon string) *fuse {
	t.Helper()
	f := &fuse{path: filepath.Join(t.TempDir(), "docker.sock"), daemon: strings.TrimPrefix(daemon, "unix://")}
	f.mend(t)
	t.Cleanup(f.cut)
	return f
}

func (f *fuse) mend(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", f.path)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.listener = listener
	f.mu.Unlock()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", f.daemon)
			if err != nil {
				near.Close()
				continue
			}
			f.mu.Lock()
			f.conns = append(f.conns, near, far)
			f.mu.Unlock()
			go func() { io.Copy(far, near); far.Close() }()  //nolint:errcheck // ends with either
			go func() { io.Copy(near, far); near.Close() }() //nolint:errcheck // ends with either
		}
	}()
}

func (f *fuse) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listener.Close()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

func TestRealDockerThatStopsAnswering(t *testing.T) {
	t.Parallel()
	f := newFuse(t, enginetest.RequireDocker(t))
	r := newRealAt(t, t.TempDir(), "unix://"+f.path)
	running := r.awaitRunning(r.launch(session.Spec{}).ID)
	for _, delay := range []time.Duration{0, 30 * time.Millisecond, 120 * time.Millisecond, 250 * time.Millisecond} {
		half := r.launch(session.Spec{})
		time.Sleep(delay) // the moment of the cut is what is tested
		f.cut()
		s := r.await(half.ID, "waiting or running", func(s session.Session) bool {
			return s.Status == session.Running || s.Wait != nil && s.Wait.Code == session.CodeEngineUnavailable
		})
		if m, err := r.agent.Machine(context.Background()); err != nil ||
			(s.Status == session.Pending && len(m.Warnings) == 0) {
			t.Errorf("the machine says %+v, %v", m.Warnings, err)
		}
		if got, code := r.exec(running.ID, "echo", "alive"); got != "alive\n" || code != 0 {
			t.Errorf("the running one answers %q, %d", got, code)
		}
		f.mend(t)
		s = r.awaitRunning(half.ID)
		t.Logf("cut after %v: %s at attempt %d", delay, s.Status, s.Attempt)
		if got, code := r.exec(s.ID, "echo", "alive"); got != "alive\n" || code != 0 {
			t.Errorf("then it answers %q, %d", got, code)
		}
		if _, err := r.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		r.awaitEnd(s.ID)
	}
	states, err := r.engine.List(context.Background())
	if err != nil || len(states) != 1 || states[0].ID != running.Container() {
		t.Errorf("containers %+v, %v", states, err)
	}
}
