package agent

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

// TestForkBombOnDocker has a session start as many processes as it can. The machine
// and another session stay usable, and the session is told of it or ends.
func TestForkBombOnDocker(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir())
	const most = 100
	if err := r.agent.SetAllowance("ada", &session.Allowance{Processes: most}); err != nil {
		t.Fatal(err)
	}
	bomb, other := r.launch(session.Spec{Name: "bomb"}), r.launch(session.Spec{Name: "other"})
	for _, s := range []session.Session{bomb, other} {
		if s = r.awaitRunning(s.ID); s.Status != session.Running || s.Processes != most {
			t.Fatalf("%s is %s with at most %d processes: %+v", s.Name, s.Status, s.Processes, s.Error)
		}
	}
	// 1,000 at most, so that a machine on which nothing limits them bears it.
	const script = "i=0; while [ $i -lt 1000 ]; do sleep 60 & i=$((i+1)); done; echo all of them run"
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := r.agent.Exec(ctx, bomb.ID, session.ExecRequest{Command: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	ended := make(chan string, 1)
	go func() {
		var out strings.Builder
		for {
			kind, payload, err := readFrame(stream)
			if out.Write(payload); err != nil || kind == 'X' {
				ended <- out.String()
				return
			}
		}
	}()
	limited := r.await(bomb.ID, "limited", func(s session.Session) bool {
		return s.Status.Terminal() || slices.ContainsFunc(s.Warnings,
			func(w session.Warning) bool { return w.Code == session.CodeProcessLimit })
	})
	if out, code := r.exec(other.ID, "sh", "-c", "echo usable | cat"); code != 0 || strings.TrimSpace(out) != "usable" {
		t.Errorf("another session: %q, %d", out, code)
	}
	if err := exec.Command("true").Run(); err != nil {
		t.Errorf("the machine: %v", err)
	}
	stats, err := r.engine.Stats(t.Context(), limited.Containers())
	if err != nil {
		t.Fatal(err)
	}
	for id, s := range stats {
		if s.Pids > most {
			t.Errorf("%s has %d processes", id, s.Pids)
		}
	}
	if _, err := r.agent.Terminate(t.Context(), bomb.ID, true); err != nil {
		t.Fatal(err)
	}
	r.awaitEnd(bomb.ID)
	select {
	case out := <-ended:
		if strings.Contains(out, "all of them run") {
			t.Error("1,000 processes were started")
		}
	case <-time.After(patience):
		t.Error("the bomb's command goes on")
	}
}
