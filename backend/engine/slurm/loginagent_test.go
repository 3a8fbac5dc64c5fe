//go:build linux

package slurm_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/host"
	"slipway/backend/engine"
	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// manager is an agent on the login node.
type manager struct {
	*testing.T
	session.Agent
	stop func()
}

func (l login) manage(t *testing.T, change ...func(*engineslurm.Config)) *manager {
	t.Helper()
	books, err := store.Open(store.Config{Path: filepath.Join(l.dir, "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	e := l.openWith(t, func(c *engineslurm.Config) {
		c.Instance = books.Instance()
		for _, how := range change {
			how(c)
		}
	})
	a, err := agent.Open(agent.Config{Name: "cluster", Version: "1.0.0", Dir: l.dir, Engine: engine.Of(e), Store: books,
		Owner: "ada", UID: os.Getuid(), GID: os.Getgid(),
		Sessions: agent.SessionConfig{Planner: engineslurm.NewPlanner(e), Limits: host.Limits{
			Start: 5 * time.Minute, Guest: 5 * time.Minute, Launch: 10 * time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx)
	}()
	m := &manager{T: t, Agent: a.Agent()}
	m.stop = func() {
		if m.stop = func() {}; ctx.Err() == nil {
			cancel()
			<-ended
			if err := books.Close(); err != nil {
				t.Error(err)
			}
			e.Close() //nolint:errcheck // it never fails
		}
	}
	t.Cleanup(func() { m.stop() })
	return m
}

// specOf is that of a session, of batch type if it has a command.
func specOf(name, command string, memory gpu.Bytes, change []func(*session.Spec)) session.Spec {
	spec := session.Spec{Type: session.Interactive, Name: name, Image: loginImage,
		Resources: session.Resources{CPU: 1, Memory: memory}}
	if command != "" {
		spec.Type, spec.Command = session.Batch, command
	}
	for _, how := range change {
		how(&spec)
	}
	return spec
}

// launch launches a session.
func (m *manager) launch(name, command string, change ...func(*session.Spec)) session.ID {
	m.Helper()
	spec := specOf(name, command, 256*gpu.MiB, change)
	s, err := m.Launch(m.Context(), session.LaunchRequest{Owner: "ada", Spec: spec})
	if err != nil {
		m.Fatal(err)
	}
	return s.ID
}

// becomes waits until a session is as wanted.
func (m *manager) becomes(id session.ID, what string, is func(session.Session) bool) (s session.Session) {
	m.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var err error
		if s, err = m.Get(m.Context(), id); err != nil {
			m.Fatal(err)
		}
		if is(s) {
			return s
		}
		if time.Now().After(deadline) {
			m.Fatalf("waited in vain for %s: %s, reason %s, wait %+v, error %+v", what, s.Status, s.Reason, s.Wait,
				s.Error)
		}
	}
}

func running(s session.Session) bool { return s.Status == session.Running }

func over(s session.Session) bool { return s.Status.Terminal() }

// agents launches sessions on the cluster as people do.
func (l login) agents(t *testing.T) {
	m := l.manage(t)
	lasting := m.launch("lasting", "", func(s *session.Spec) { s.Accelerator.Devices = 1 })
	job := m.launch("batch", "hostname; exit 3")
	s := m.becomes(lasting, "RUNNING", running)
	if k := s.Kernels[0]; k.Node != "n1" && k.Node != "n2" || len(k.Grants.GPUs) != 1 || len(k.Grants.CPUs) != 1 {
		t.Errorf("it runs as %+v", k)
	}
	s = m.becomes(job, "its end", over)
	if s.Reason != session.ReasonTaskFailed || s.ExitCode == nil || *s.ExitCode != 3 {
		t.Errorf("the job ended as %s, %+v, %+v", s.Reason, s.ExitCode, s.Error)
	}
	// The agent is started again, and a session that was submitted meanwhile is found.
	m.stop()
	m = l.manage(t)
	if s := m.becomes(lasting, "RUNNING", running); s.Attempt != 1 {
		t.Errorf("after a restart it is attempt %d", s.Attempt)
	}
	// What cannot start yet waits with Slurm's reason, and is taken back.
	var full []session.ID
	for i := range 2 {
		full = append(full, m.launch(fmt.Sprintf("full-%d", i), "", func(s *session.Spec) { s.Resources.CPU = 2 }))
	}
	waits := m.becomes(full[1], "a wait", func(s session.Session) bool {
		return s.Wait != nil && (s.Wait.Code == session.CodeWaitResources || s.Wait.Said[0].Say == "slurmPriority")
	})
	if waits.Status != session.Pending || waits.Wait.Position != 1 {
		t.Errorf("it waits as %+v", waits.Wait)
	}
	for _, id := range append(full, lasting) {
		if _, err := m.Terminate(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range append(full, lasting) {
		if s := m.becomes(id, "its end", over); s.Reason != session.ReasonUser {
			t.Errorf("%s ended as %s, %+v", s.Name, s.Reason, s.Error)
		}
	}
	l.nothingLeft(t)
}

// nothingLeft waits until no run is left.
func (l login) nothingLeft(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		left, err := os.ReadDir(filepath.Join(l.dir, "runs"))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			var names []string
			for _, entry := range left {
				names = append(names, entry.Name())
			}
			t.Fatalf("runs are left: %s", strings.Join(names, ", "))
		}
		time.Sleep(100 * time.Millisecond)
	}
}
