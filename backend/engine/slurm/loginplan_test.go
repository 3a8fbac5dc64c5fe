//go:build linux

package slurm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/guest/link"
	"slipway/backend/guest/node"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/backend/terminal"
	"slipway/gpu"
)

// site is an engine and its planner on the login node.
type site struct {
	*testing.T
	login
	engine  *engineslurm.Engine
	planner *engineslurm.Planner
	closed  bool
}

func (l login) site(t *testing.T) *site {
	s := &site{T: t, login: l, engine: l.open(t)}
	s.planner = engineslurm.NewPlanner(s.engine)
	t.Cleanup(func() { // what the test has left
		if s.closed {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, id := range s.list() {
			if err := s.engine.Remove(ctx, id); err != nil {
				t.Error(err)
			}
		}
		s.plan("nothing to be left", nil, nil, func([]scheduler.Decision) bool {
			left, err := os.ReadDir(filepath.Join(l.dir, "runs"))
			return err == nil && len(left) == 0
		})
	})
	return s
}

func (s *site) list() (ids []string) {
	states, err := s.engine.List(context.Background())
	if err != nil {
		s.Error(err)
	}
	for _, state := range states {
		ids = append(ids, state.ID)
	}
	return ids
}

// plan plans whenever something has changed, until the decisions are as wanted.
func (s *site) plan(what string, wanted []engine.Wanted, live []session.Session,
	done func([]scheduler.Decision) bool) []scheduler.Decision {
	s.T.Helper()
	deadline := time.After(time.Minute)
	for {
		plan, err := s.planner.Plan(context.Background(), wanted, live)
		if err != nil && !engine.Unavailable(err) {
			s.Fatal(err)
		}
		if err == nil && done(plan.Decisions) {
			return plan.Decisions
		}
		select {
		case <-s.planner.Changed():
		case <-time.After(time.Second):
		case <-deadline:
			for _, d := range plan.Decisions {
				s.Logf("%s: place %+v, wait %+v, end %+v", d.Session, d.Place, d.Wait, d.End)
			}
			s.Fatalf("waited in vain for %s", what)
		}
	}
}

// asks is a session that asks for CPUs and devices of one node.
func (l login) asks(id session.ID, cpus, gpus int) engine.Wanted {
	return wanted(id, "", func(w *engine.Wanted) {
		w.Session.Spec.Image, w.Kernels[0].Image = loginImage, loginImage
		w.Session.Spec.Resources.CPU, w.Session.Spec.Accelerator.Devices = cpus, gpus
		w.Session.Spec.Timeout = session.Duration(10 * time.Minute)
	})
}

// start creates and starts a container, as the agent does with what is placed.
func (s *site) start(c engine.Container) string {
	s.T.Helper()
	id, err := s.engine.Create(s.T.Context(), c)
	if err == nil {
		err = s.engine.Start(s.T.Context(), id)
	}
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// shell runs a command in a container.
func (s *site) shell(id, command string) string {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), time.Minute)
	defer cancel()
	conn, err := s.engine.Guest(ctx, id)
	if err != nil {
		s.Fatal(err)
	}
	client, err := link.Connect(ctx, conn)
	if err != nil {
		s.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // nothing to lose
	ready, stop := context.WithCancel(ctx)
	_ = client.Events(ready, func(e link.Event) error { // it ends with ready
		if e.Ready {
			stop()
		}
		return nil
	})
	stop()
	stream, err := client.Exec(ctx, session.ExecRequest{Command: []string{"sh", "-c", command}})
	if err != nil {
		s.Fatal(err)
	}
	var out bytes.Buffer
	if code, err := terminal.RunExec(ctx, terminal.NewConn(stream),
		terminal.ExecIO{Stdout: &out, Stderr: &out}); err != nil || code != 0 {
		s.Fatalf("%s ends with %d, %v: %s", command, code, err, &out)
	}
	return strings.TrimSpace(out.String())
}

// The nodes have two CPUs and two devices each.
func (l login) plans(t *testing.T) {
	s := l.site(t)
	all := []engine.Wanted{l.asks(first, 1, 1), l.asks(second, 2, 2), l.asks(third, 2, 1)}
	got := s.plan("two places and one wait", all, nil, func(d []scheduler.Decision) bool {
		return d[0].Place != nil && d[1].Place != nil && d[2].Wait != nil &&
			slices.Contains([]string{"slurmResources", "slurmPriority"}, d[2].Wait.Said[0].Say)
	})
	one, two := got[0].Place, got[1].Place
	if len(one.Nodes) != 1 || len(two.Nodes) != 1 || one.Nodes[0] == two.Nodes[0] {
		t.Errorf("they run on %q and %q", one.Nodes, two.Nodes)
	}
	if g := one.Kernels[0]; len(g.CPUs) != 1 || g.Memory != 128*gpu.MiB || len(g.GPUs) != 1 ||
		g.GPUs[0].Device != gpu.UUID(one.Nodes[0]+"/gpu0") || !g.GPUs[0].Whole {
		t.Errorf("the first has %+v", g)
	}
	if g := two.Kernels[0]; !slices.Equal(g.CPUs, []int{0, 1}) || len(g.GPUs) != 2 {
		t.Errorf("the second has %+v", g)
	}
	id := s.start(all[0].Kernels[0])
	if said := s.shell(id, "nproc; ls /dev | grep -c fakegpu; echo devices $CUDA_VISIBLE_DEVICES; hostname; "+
		"for d in 0 1; do (: </dev/fakegpu$d) 2>&1 | grep -c 'not permitted'; done; env | grep -c ^SLURM"+
		" || true"); said != "1\n2\ndevices 0\nmain1\n0\n1\n0" {
		t.Errorf("in the first: %q", said)
	}
	// The agent dies, and what it adopts is the same.
	s.engine.Close() //nolint:errcheck // it never fails
	s.closed = true
	again := l.site(t)
	live := []session.Session{placed(all[0])}
	again.plan("the third", all[2:], live, func(d []scheduler.Decision) bool { return d[0].Place != nil })
	if said := again.shell(id, "echo here"); said != "here" {
		t.Errorf("after a restart: %q", said)
	}
}

// relays reaches a guest where the login node does not connect to nodes.
func (l login) relays(t *testing.T) {
	s := l.site(t)
	w := l.asks(first, 1, 0)
	s.plan("a place", []engine.Wanted{w}, nil, func(d []scheduler.Decision) bool { return d[0].Place != nil })
	id := s.start(w.Kernels[0])
	run := filepath.Join(l.dir, "runs", string(first)+"-1")
	meeting, err := node.ReadMeeting(run, "main1")
	if err != nil {
		t.Fatal(err)
	}
	meeting.Port = 9 // where nothing answers
	data, err := json.Marshal(meeting)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.ReplaceFile(filepath.Join(run, "main1.meeting"), data); err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // the second closes the first
		if said := s.shell(id, fmt.Sprintf("echo here %d", i)); said != fmt.Sprintf("here %d", i) {
			t.Errorf("it says %q", said)
		}
	}
	jobs, err := slurm.New(slurm.Config{User: fmt.Sprint(os.Getuid())}).Jobs(t.Context())
	if err != nil || len(jobs) == 0 {
		t.Errorf("jobs are %+v, %v", jobs, err)
	}
}

// clusters runs a kernel on each node.
func (l login) clusters(t *testing.T) {
	s := l.site(t)
	w := l.asks(first, 1, 1)
	w.Session.Spec.Cluster = 2
	sub := w.Kernels[0]
	sub.Name, sub.Hostname = "slipway-aaaaaaaaaaaa-sub1-1", "sub1"
	sub.Labels = map[string]string{engine.LabelSession: string(first), engine.LabelKernel: "sub1",
		engine.LabelAttempt: "1", engine.LabelInstance: "one"}
	sub.Guest.Kernel = "sub1"
	w.Kernels = append(w.Kernels, sub)
	got := s.plan("a place", []engine.Wanted{w}, nil, func(d []scheduler.Decision) bool {
		return d[0].Place != nil
	})
	if p := got[0].Place; !slices.Equal(p.Nodes, []string{"n1", "n2"}) || len(p.Kernels) != 2 {
		t.Errorf("they are placed as %+v", p)
	}
	var ids []string
	for _, c := range w.Kernels {
		ids = append(ids, s.start(c))
	}
	for i, want := range []string{"main1", "sub1"} {
		if said := s.shell(ids[i], "hostname"); said != want {
			t.Errorf("%s says that it is %q", ids[i], said)
		}
	}
	if err := s.engine.Stop(t.Context(), ids[0], 5*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		s.await("the end of "+id, func() bool {
			state, err := s.engine.Inspect(t.Context(), id)
			return err == nil && !state.Running
		})
	}
}

func (s *site) await(what string, done func() bool) {
	s.T.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain for %s", what)
		}
	}
}

// checks asks Slurm about sessions that it would refuse.
func (l login) checks(t *testing.T) {
	s := l.site(t)
	for name, c := range map[string]struct {
		change func(*session.Spec)
		field  string
	}{
		"fine":          {func(*session.Spec) {}, ""},
		"a part":        {func(spec *session.Spec) { spec.Accelerator = gpu.Request{Shares: 500} }, ""},
		"too many CPUs": {func(spec *session.Spec) { spec.Resources.CPU = 20 }, "resources"},
		"no partition": {func(spec *session.Spec) { spec.Slurm = &session.Slurm{Partition: "none"} },
			"slurm.partition"},
		"too many nodes": {func(spec *session.Spec) { spec.Cluster = 3 }, "resources"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := l.asks(first, 1, 0).Session.Spec
			c.change(&spec)
			wrong := s.planner.Check(t.Context(), spec)
			if (c.field == "") != (len(wrong) == 0) || c.field != "" && !strings.HasPrefix(wrong[0].Field, c.field) {
				t.Errorf("wrong is %+v", wrong)
			}
		})
	}
	info, err := s.engine.Info(t.Context())
	if err != nil || info.Slurm == nil || len(info.Slurm.Partitions) != 3 || info.CPUs != 4 ||
		info.Slurm.Partitions[0].GPUs[0].Count != 2 {
		t.Errorf("the site is %+v, %v", info.Slurm, err)
	}
}
