package agent

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// awaitWarm waits until that many containers wait.
func (r *real) awaitWarm(count int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for r.agent.warm.Count() != count {
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("%d containers wait, want %d", r.agent.warm.Count(), count)
		}
	}
}

// TestRealSessionTakesAWarmContainer launches sessions like the one before, and one that differs.
func TestRealSessionTakesAWarmContainer(t *testing.T) {
	t.Parallel()
	host := enginetest.RequireDocker(t)
	var r *real
	all := func() []string {
		list, err := exec.Command("docker", "-H", host, "ps", "-aq", "--no-trunc", "--filter",
			"label="+engine.LabelInstance+"="+r.store.Instance()).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(list))
	}
	t.Cleanup(func() { // after the agent has ended
		if left := all(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	r = newReal(t, t.TempDir(), func(c *Config) { c.Sessions.Warm = 1 })
	first := r.awaitRunning(r.launch(session.Spec{}).ID)
	r.awaitWarm(1)
	waits := ""
	for _, id := range all() {
		if id != first.Container() {
			waits = id
		}
	}
	next := r.awaitRunning(r.launch(session.Spec{Name: "next", Env: []session.EnvVar{{Name: "A", Value: "b"}},
		Resources: session.Resources{Memory: 512 << 20}}).ID)
	if next.Container() != waits || waits == "" {
		t.Errorf("the session has %s, and %s waited", next.Container(), waits)
	}
	if out, code := r.exec(next.ID, "sh", "-c", "echo $A $SLIPWAY_SESSION_NAME $HOME; id -un; pwd"); code != 0 ||
		out != "b next /home/work\nwork\n/home/work\n" {
		t.Errorf("inside it is %q, %d", out, code)
	}
	history, err := r.agent.History(t.Context(), next.ID)
	if err != nil || len(history) == 0 {
		t.Errorf("its history is %+v, %v", history, err)
	}
	r.awaitWarm(1)
	if _, err := r.agent.Terminate(t.Context(), first.ID, true); err != nil { // it has one of two CPUs
		t.Fatal(err)
	}
	large := session.Resources{Shm: 128 << 20, Memory: 512 << 20}
	other := r.awaitRunning(r.launch(session.Spec{Resources: large}).ID)
	if out, code := r.exec(other.ID, "sh", "-c", "df -B1 --output=size /dev/shm | tail -1 | tr -d ' '"); code != 0 ||
		out != "134217728\n" {
		t.Errorf("inside the other one it is %q, %d", out, code)
	}
	r.awaitWarm(1)
}
