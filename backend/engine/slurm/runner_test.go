//go:build linux

package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// The real guest's program, and that it is to be used: by a user who is not root, as jobs run.
const (
	guestVariable = "SLIPWAY_TEST_GUEST"
	nobody        = 65534
)

func TestTheRealRunnerMakesTheContainer(t *testing.T) {
	guest := os.Getenv(guestVariable)
	if guest == "" {
		guest = filepath.Join(t.TempDir(), "guest")
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", guest,
			"slipway/backend/guest/slipway-guest")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the guest: %v\n%s", err, out)
		}
	}
	if os.Getuid() == 0 {
		asNobody(t, guest)
		return
	}
	program, err := os.ReadFile(guest)
	if err != nil {
		t.Fatal(err)
	}
	s := newStageWith(t, 1, program)
	w := wanted(first, "", func(w *engine.Wanted) { w.Kernels[0].Image = session.EmptyImage })
	id := s.start(w)
	client := greeted(t, s.engine, id)
	if !s.inspect(id).Running {
		t.Error("it does not run")
	}
	if err := s.engine.Stop(t.Context(), id, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case <-client.Done():
	case <-time.After(time.Minute):
		t.Error("the connection stays")
	}
	if state := s.inspect(id); state.Running || state.Taken != nil || state.FinishedAt.Before(state.StartedAt) {
		t.Errorf("it is %+v", state)
	}
	if err := s.engine.Remove(t.Context(), id); err != nil || !s.gone(first) {
		t.Errorf("its files stay: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(s.local(), "runs")); err != nil || hasFolder(left) {
		t.Errorf("on the node there is %v, %v", left, err)
	}
}

func hasFolder(entries []os.DirEntry) bool {
	for _, entry := range entries {
		if entry.IsDir() {
			return true
		}
	}
	return false
}

// asNobody runs the test as a user who is not root.
func asNobody(t *testing.T, guest string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-slurm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // a leftover in the temporary directory harms nobody
	data, err := os.ReadFile(guest)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "guest"), data, 0o755) //nolint:gosec // the other user runs it
	}
	if err != nil {
		t.Fatal(err)
	}
	run, err := enginetest.As(nobody, dir, "-test.run=^"+t.Name()+"$", "-test.timeout=3m")
	if err != nil {
		t.Fatal(err)
	}
	run.Env = append(run.Env, guestVariable+"="+filepath.Join(dir, "guest"))
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("as a user who is not root: %v\n%s", err, out)
	}
}

// greeted connects to the guest of a container, which must be of this version.
func greeted(t *testing.T, e *engineslurm.Engine, id string) *link.Client {
	t.Helper()
	conn, err := e.Guest(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	client, err := link.Connect(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if hello := client.Hello(); hello.Version != link.Version {
		t.Errorf("its guest says %+v", hello)
	}
	return client
}
