package agent

import (
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestRealBatchesEndAsTheyShould(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir())
	start := time.Now().Add(4 * time.Second).UTC().Truncate(time.Millisecond)
	later := r.launch(session.Spec{Name: "later", Type: session.Batch, Command: "date +%s.%N",
		Schedule: session.Schedule{NotBefore: &start}})
	slow := r.launch(session.Spec{Name: "slow", Type: session.Batch, Command: "sleep 60",
		Lifetime: session.Lifetime{Timeout: session.Duration(5 * time.Second)}})
	fails := r.launch(session.Spec{Name: "fails", Type: session.Batch, Command: "exit 3"})
	after := r.launch(session.Spec{Name: "after", Type: session.Batch, Command: "true",
		Schedule: session.Schedule{After: []string{"fails"}}})
	last := r.launch(session.Spec{Name: "last", Type: session.Batch, Command: "true",
		Schedule: session.Schedule{After: []string{"after"}}})
	works := r.launch(session.Spec{Name: "works", Type: session.Batch, Command: "sleep 1"})
	then := r.launch(session.Spec{Name: "then", Type: session.Batch, Command: "true",
		Schedule: session.Schedule{After: []string{string(works.ID)}}})

	if s := r.awaitEnd(fails.ID); s.Result != session.ResultFailure || s.Reason != session.ReasonTaskFailed ||
		s.ExitCode == nil || *s.ExitCode != 3 {
		t.Errorf("exit 3 is %s, %s, %v", s.Result, s.Reason, s.ExitCode)
	}
	if s := r.awaitEnd(after.ID); s.Status != session.Cancelled || s.Reason != session.ReasonDependency ||
		s.Error == nil || !strings.Contains(s.Error.Message, "fails, which failed (task-failed)") {
		t.Errorf("the dependent of a failed one is %s, %s because of %+v", s.Status, s.Reason, s.Error)
	}
	if s := r.awaitEnd(last.ID); s.Status != session.Cancelled || s.Reason != session.ReasonDependency {
		t.Errorf("and its own dependent is %s, %s", s.Status, s.Reason)
	}
	if s := r.awaitEnd(then.ID); s.Result != session.ResultSuccess {
		t.Errorf("the dependent of one that works is %s, %s", s.Result, s.Reason)
	} else if w := r.awaitEnd(works.ID); s.StartedAt.Before(*w.TerminatedAt) {
		t.Errorf("it started %s before the other had ended", w.TerminatedAt.Sub(*s.StartedAt))
	}
	if s := r.awaitEnd(slow.ID); s.Result != session.ResultFailure || s.Reason != session.ReasonTaskTimeout ||
		s.Error == nil {
		t.Errorf("a timeout of 5 s is %s, %s", s.Result, s.Reason)
	} else if ran := s.TerminatedAt.Sub(*s.StartedAt); ran < 5*time.Second || ran >= 60*time.Second {
		t.Errorf("it ran for %s", ran)
	}
	if s := r.awaitEnd(later.ID); s.Result != session.ResultSuccess || s.ScheduledAt.Before(start) {
		t.Errorf("a start at %s was scheduled at %s and ended in %s", start, s.ScheduledAt, s.Result)
	}
	log, err := r.agent.Logs(context.Background(), later.ID, session.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil || string(text) < strconv.FormatInt(start.Unix(), 10) {
		t.Errorf("it ran at %s, before %s: %v", text, start, err)
	}
}

func TestRealClusterRunsOnItsOwnNetwork(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir())
	s := r.launch(session.Spec{Name: "pair", Cluster: 2, Resources: session.Resources{CPU: 1, Memory: 256 * gpu.MiB}})
	s = r.awaitRunning(s.ID)
	if len(s.Kernels) != 2 || s.Status != session.Running {
		t.Fatalf("it is %s with %+v; %+v", s.Status, s.Kernels, s.Error)
	}
	for _, k := range s.Kernels {
		other := session.KernelName(1)
		if k.Name == other {
			other = session.MainKernel
		}
		out, code := r.execIn(s.ID, k.Name, "bash", "-c", "hostname; echo $SLIPWAY_CLUSTER_HOSTS; nproc; python3 -c "+
			"'import socket; print(socket.create_connection((\""+other+"\", 2222), 20).recv(7).decode())'")
		if lines := strings.Fields(out); code != 0 || len(lines) != 4 || lines[0] != k.Name ||
			lines[1] != "main1,sub1" || lines[2] != "1" || lines[3] != "SSH-2.0" {
			t.Errorf("%s says %q, %d", k.Name, out, code)
		}
	}
	if s.Grants.CPUs[0] == s.Grants.CPUs[1] {
		t.Errorf("both kernels have CPU %d", s.Grants.CPUs[0])
	}
	// One kernel that ends takes the other along.
	if err := r.engine.Stop(context.Background(), s.Kernels[1].Container, time.Second); err != nil {
		t.Fatal(err)
	}
	s = r.awaitEnd(s.ID)
	if s.Reason != session.ReasonSelf || s.Error == nil || s.Error.Code != "session_run_kernel-ended" {
		t.Errorf("it ended as %s because of %+v", s.Reason, s.Error)
	}
}

func TestRealClusterOfABatchEndsWithItsMainKernel(t *testing.T) {
	r := newReal(t, t.TempDir())
	s := r.launch(session.Spec{Name: "mpi-run", Type: session.Batch, Cluster: 2,
		Command: "echo from $SLIPWAY_KERNEL; exit 3", Resources: session.Resources{CPU: 1, Memory: 256 * gpu.MiB}})
	s = r.awaitEnd(s.ID)
	if s.Result != session.ResultFailure || s.Reason != session.ReasonTaskFailed || s.ExitCode == nil ||
		*s.ExitCode != 3 {
		t.Errorf("it ended as %s, %s, %v because of %+v", s.Result, s.Reason, s.ExitCode, s.Error)
	}
	log, err := r.agent.Logs(context.Background(), s.ID, session.LogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if text, err := io.ReadAll(log); err != nil || string(text) != "from main1\n" {
		t.Errorf("its log is %q, %v", text, err)
	}
}
