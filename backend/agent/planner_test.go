package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

// scriptedPlanner is another scheduler that starts what the test says.
type scriptedPlanner struct {
	changed chan struct{}

	mu     sync.Mutex // guards everything below
	starts map[string]scheduler.Placement
	ends   map[string]scheduler.End
	fails  error
	until  time.Time // the end of all sessions
	wrong  []session.FieldError
	wanted []engine.Wanted // of the newest call
	live   []session.Session
	asked  []string // name and attempt of all that was ever wanted
}

func newScriptedPlanner() *scriptedPlanner {
	return &scriptedPlanner{changed: make(chan struct{}, 1), starts: map[string]scheduler.Placement{},
		ends: map[string]scheduler.End{}}
}

func (p *scriptedPlanner) Plan(_ context.Context, wanted []engine.Wanted,
	live []session.Session) (plan scheduler.Schedule, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted, p.live = wanted, live
	for _, w := range wanted {
		p.asked = append(p.asked, w.Kernels[0].Name)
		decision := scheduler.Decision{Session: w.Session.ID}
		if end, ok := p.ends[w.Session.Name]; ok {
			decision.End = &end
		} else if placement, ok := p.starts[w.Session.Name]; ok {
			decision.Place = &placement
		} else {
			decision.Wait = &session.Wait{Code: session.CodeWaitResources, Message: "No node is free."}
		}
		plan.Decisions = append(plan.Decisions, decision)
	}
	return plan, p.fails
}

func (p *scriptedPlanner) everAsked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *scriptedPlanner) Check(context.Context, session.Spec) []session.FieldError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

func (p *scriptedPlanner) Script(context.Context, session.Spec) string { return "#!/bin/sh\n" }

func (p *scriptedPlanner) Changed() <-chan struct{} { return p.changed }

func (p *scriptedPlanner) Until(session.Session) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

func (p *scriptedPlanner) Extend(_ context.Context, _ session.Session, until time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails == nil {
		p.until = until
	}
	return p.fails
}

// set changes what the planner says, and has it tell that.
func (p *scriptedPlanner) set(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// start has a session start with CPUs of a node.
func (p *scriptedPlanner) start(name, node string, cpus ...int) {
	p.set(func() {
		p.starts[name] = scheduler.Placement{Nodes: []string{node}, Kernels: []session.Grants{{CPUs: cpus,
			Memory: session.DefaultMemory, GPUs: []gpu.Grant{{Device: gpu.UUID(node + "-0"), Whole: true,
				Share: gpu.WholeDevice}}}}}
	})
}

// names are those that are wanted, in order.
func (p *scriptedPlanner) names() (names []string) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wanted {
		names = append(names, w.Session.Name)
	}
	return names
}

// elsewhere is the simulated engine as if its containers ran on other computers.
type elsewhere struct{ engine.Host }

func (e elsewhere) Info(ctx context.Context) (engine.Info, error) {
	info, err := e.Host.Info(ctx)
	info.Elsewhere, info.Slurm = true, &session.SlurmSite{Version: "24.05.3"}
	info.Lacks = []session.Feature{session.FeatureDevices, session.FeatureMPS, session.FeatureCommit,
		session.FeatureRaise}
	return info, err
}

// delegated makes an agent whose sessions a planner starts.
func delegated(t *testing.T, fake *simtest.Engine, change func(*Config)) (*world, *scriptedPlanner) {
	p := newScriptedPlanner()
	return newWorld(t, fake, func(c *Config) {
		c.Sessions.Planner, c.Devices.Source, c.Engine.Host = p, nil, elsewhere{c.Engine.Host}
		if change != nil {
			change(c)
		}
	}), p
}

func TestAnotherSchedulerDecidesWhoStarts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{CPUs: 2}), nil)
		low := 3
		spec := session.Spec{Name: "first", Resources: session.Resources{CPU: 2},
			Lifetime: session.Lifetime{KeepHome: new(session.Duration(24 * time.Hour))}}
		spec.Priority = &low
		first := w.launch(spec)
		second := w.launch(session.Spec{Name: "second"})
		if names := p.names(); !slices.Equal(names, []string{"second", "first"}) {
			t.Fatalf("wanted are %v", names)
		}
		s := w.await(first.ID, "waiting", func(s session.Session) bool { return s.Wait != nil })
		if s.Wait.Message != "No node is free." || s.Wait.Position != 2 {
			t.Errorf("it waits for %+v", s.Wait)
		}
		wanted := p.wanted[1]
		if c := wanted.Kernels[0]; wanted.Session.Attempt != 1 || c.Name != "slipway-"+string(first.ID)+"-main1-1" ||
			len(c.Mounts) == 0 || valueOf(c.Guest.Env, "SLIPWAY_CPUS") != "2" || len(c.CPUs) > 0 {
			t.Errorf("wanted is %+v, attempt %d", c, wanted.Session.Attempt)
		}
		p.start("first", "n1", 6, 7)
		s = w.awaitStatus(first.ID, session.Running)
		if k := s.Kernels[0]; k.Node != "n1" || !slices.Equal(k.Grants.CPUs, []int{6, 7}) ||
			!slices.Equal(s.Grants.CPUs, []int{6, 7}) || s.Grants.GPUs[0].Device != "n1-0" {
			t.Errorf("it got %+v", s.Allocation)
		}
		made := w.containersOf(s)[session.MainKernel]
		if made.Name != wanted.Kernels[0].Name || !slices.Equal(made.Mounts, wanted.Kernels[0].Mounts) ||
			!slices.Equal(made.Guest.Env[:5], wanted.Kernels[0].Guest.Env[:5]) {
			t.Errorf("wanted was %+v, and made is %+v", wanted.Kernels[0], made)
		}
		w.agent.queue.Wake()
		if names := p.names(); !slices.Equal(names, []string{"second"}) || len(p.live) != 1 {
			t.Errorf("wanted are %v, with %d live", names, len(p.live))
		}
		if _, err := w.agent.Terminate(t.Context(), second.ID, false); err != nil {
			t.Fatal(err)
		}
		if names := p.names(); len(names) != 0 {
			t.Errorf("wanted are %v after the end", names)
		}
		// CPU 6 of another node is another CPU.
		w.launch(session.Spec{Name: "fourth"})
		p.start("fourth", "n2", 6)
		w.await(w.launch(session.Spec{Name: "fifth"}).ID, "waiting",
			func(s session.Session) bool { return s.Wait != nil && s.Wait.Position == 1 })
		w.audit()
	})
}

func TestAnotherSchedulerIsAskedForWhatMayStartOnly(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{}), nil)
		if err := w.agent.SetAllowance("eve", &session.Allowance{Sessions: 1}); err != nil {
			t.Fatal(err)
		}
		soon := time.Now().Add(time.Hour)
		later := taskSpec("later")
		later.NotBefore = &soon
		w.launch(later)
		w.launch(taskSpec("before"))
		after := taskSpec("after")
		after.After = []string{"before"}
		last := w.launch(after)
		w.launchAs("eve", session.Spec{Name: "eves-1"})
		w.launchAs("eve", session.Spec{Name: "eves-2"})
		if names := p.names(); !slices.Equal(names, []string{"before", "eves-1"}) {
			t.Errorf("wanted are %v", names)
		}
		if s := w.await(last.ID, "waiting", func(s session.Session) bool { return s.Wait != nil }); s.Wait.Code !=
			session.CodeWaitDependency {
			t.Errorf("it waits for %+v", s.Wait)
		}
		time.Sleep(time.Hour + time.Second)
		if names := p.names(); !slices.Equal(names, []string{"later", "before", "eves-1"}) {
			t.Errorf("once the time has come, wanted are %v", names)
		}
		p.set(func() {
			p.ends["before"] = scheduler.End{Reason: session.ReasonCreateFailed,
				Cause: *session.Because(session.CodeEngineInvalid, session.Say("slurmDecides"), session.Phrase{})}
		})
		if s := w.awaitStatus(last.ID, session.Cancelled); s.Reason != session.ReasonDependency {
			t.Errorf("who waited for it ended as %s", s.Reason)
		}
		w.fake.SetDown(true)
		time.Sleep(time.Minute)
		asked := len(p.everAsked())
		w.agent.queue.Wake()
		if p.names(); len(p.everAsked()) != asked {
			t.Error("it is asked while the engine does not answer")
		}
		w.audit()
	})
}

func TestImagesAreFetchedBeforeAnotherSchedulerIsAsked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		hold := make(chan struct{})
		fake := newFake(t, simtest.Config{})
		fake.Publish("remote", simtest.PullScript{Hold: hold})
		w, p := delegated(t, fake, nil)
		a := w.launch(session.Spec{Name: "job-a", Image: "remote"})
		w.launch(session.Spec{Name: "job-b", Image: "remote"})
		gone := w.launch(session.Spec{Name: "gone", Image: "nowhere.example/none:1"})
		if s := w.awaitStatus(gone.ID, session.Cancelled); s.Reason != session.ReasonPullFailed || s.Error == nil {
			t.Errorf("without an image it ended as %s, %+v", s.Reason, s.Error)
		}
		if names := p.names(); len(names) != 0 {
			t.Errorf("wanted are %v before the image is here", names)
		}
		s := w.await(a.ID, "waiting", func(s session.Session) bool { return s.Wait != nil })
		if s.Wait.Message != "Its image is being fetched." {
			t.Errorf("it waits for %+v", s.Wait)
		}
		close(hold)
		if names := p.names(); !slices.Equal(names, []string{"job-a", "job-b"}) {
			t.Errorf("wanted are %v", names)
		}
		if pulls := w.fake.Calls(simtest.CallPull); pulls != 2 {
			t.Errorf("two images took %d pulls", pulls)
		}
	})
}

func TestAnImageThatCannotBeFetchedIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		fake.Publish("remote", simtest.PullScript{Err: session.NewError(session.CodePullUnavailable,
			"The registry does not answer.", "")})
		w, _ := delegated(t, fake, nil)
		s := w.launch(session.Spec{Name: "job-a", Image: "remote"})
		w.await(s.ID, "waiting for another attempt", func(s session.Session) bool {
			return s.Wait != nil && strings.Contains(s.Wait.Message, "The registry does not answer. Another attempt")
		})
		if s = w.awaitStatus(s.ID, session.Cancelled); s.Reason != session.ReasonPullFailed ||
			s.Error.Code != session.CodePullUnavailable {
			t.Errorf("it ended as %s, %+v", s.Reason, s.Error)
		}
		if pulls := w.fake.Calls(simtest.CallPull); pulls != session.MaxAttempts {
			t.Errorf("there were %d attempts", pulls)
		}
		// A fetch is given up when no session waits for it any more.
		hold := make(chan struct{})
		fake.Publish("slow", simtest.PullScript{Hold: hold})
		s = w.launch(session.Spec{Name: "job-b", Image: "slow"})
		synctest.Wait()
		if _, err := w.agent.Terminate(t.Context(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		close(hold)
		synctest.Wait()
		if _, err := w.fake.Image(t.Context(), "slow"); session.CodeOf(err) != session.CodeNoImage {
			t.Errorf("the image was fetched for no session: %v", err)
		}
	})
}

func TestAChangeOfDevicesAsksAnotherSchedulerAnew(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{}), nil)
		s := w.launch(session.Spec{Name: "job-a", Accelerator: gpu.Request{Devices: 4}})
		p.names()
		if _, err := w.agent.SetAccelerator(t.Context(), s.ID, gpu.Request{Devices: 1}); err != nil {
			t.Fatal(err)
		}
		p.names()
		if w := p.wanted[0]; w.Session.Attempt != 2 || w.Session.Spec.Accelerator.Devices != 1 ||
			!strings.HasSuffix(w.Kernels[0].Name, "-2") {
			t.Errorf("wanted is %+v", w.Session)
		}
		p.start("job-a", "n1", 0)
		if s = w.awaitStatus(s.ID, session.Running); s.Attempt != 2 {
			t.Errorf("it runs as attempt %d", s.Attempt)
		}
	})
}

func TestAnotherSchedulerIsAskedAgainAfterACrash(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{}), nil)
		s := w.launch(session.Spec{Name: "job-a"})
		p.names()
		p.set(func() {
			p.fails = session.NewError(session.CodeEngineInternal, "It says something else.", "")
			p.starts["job-a"] = scheduler.Placement{}
		})
		synctest.Wait()
		if s, err := w.agent.Get(t.Context(), s.ID); err != nil || s.Status != session.Pending || s.Wait == nil {
			t.Errorf("after a failed plan it is %s, %+v, %v", s.Status, s.Wait, err)
		}
		w.halt()
		p.fails = nil
		p.start("job-a", "n1", 0)
		w.start()
		if s = w.awaitStatus(s.ID, session.Running); s.Attempt != 1 {
			t.Errorf("it runs as attempt %d", s.Attempt)
		}
		for _, name := range p.everAsked() {
			if name != "slipway-"+string(s.ID)+"-main1-1" {
				t.Errorf("it was asked for as %s", name)
			}
		}
		w.audit()
	})
}

func TestAPreviewSaysThatAnotherSchedulerDecides(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{}), nil)
		synctest.Wait()
		spec := withImage(session.Spec{Name: "would", Accelerator: gpu.Request{Devices: 8}})
		preview, err := w.agent.Preview(t.Context(), "", spec, 2)
		if err != nil || len(preview.Errors) > 0 || preview.Wait == nil || preview.Wait.Position != 1 ||
			preview.Wait.Message != "Slurm decides when it starts." || len(preview.Further) != 1 ||
			preview.Further[0].Wait.Position != 2 || preview.Sbatch == "" {
			t.Errorf("%+v, %v", preview, err)
		}
		if names := p.names(); len(names) > 0 {
			t.Errorf("a preview asks for %v", names)
		}
		spec.After = []string{string(w.launch(taskSpec("first")).ID)}
		if preview, err = w.agent.Preview(t.Context(), "", spec, 1); err != nil ||
			preview.Wait.Code != session.CodeWaitDependency {
			t.Errorf("%+v, %v", preview.Wait, err)
		}
		p.set(func() { p.wrong = []session.FieldError{{Field: "slurm.partition", Message: "There is none."}} })
		if _, err := w.agent.Launch(t.Context(), session.LaunchRequest{Spec: spec}); session.CodeOf(err) !=
			session.CodeInvalid || session.AsError(err, "").Fields[0].Field != "slurm.partition" {
			t.Errorf("what it would refuse is launched: %v", err)
		}
	})
}

func TestWhatAMachineLacksIsSaidAndRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{}), nil)
		synctest.Wait()
		m, err := w.agent.Machine(t.Context())
		if err != nil || m.Slurm == nil || m.Slurm.Version != "24.05.3" ||
			!slices.Contains(m.Lacks, session.FeatureCommit) {
			t.Errorf("%+v, %v", m.Platform, err)
		}
		high := 50
		for field, spec := range map[string]session.Spec{
			"mps":         {Accelerator: gpu.Request{Shares: 500}, Tuning: session.Tuning{MPS: true}},
			"commitOnEnd": {Lifetime: session.Lifetime{CommitOnEnd: 1}},
			"priority":    {Schedule: session.Schedule{Priority: &high}},
		} {
			_, err := w.agent.Launch(t.Context(), session.LaunchRequest{Spec: withImage(spec)})
			if e := session.AsError(err, ""); e.Code != session.CodeInvalid || len(e.Fields) != 1 ||
				e.Fields[0].Field != field || e.Fields[0].Kind != session.KindConflict {
				t.Errorf("%s: %+v", field, err)
			}
		}
		s := w.launch(session.Spec{Name: "job-a"})
		for priority, code := range map[int]session.Code{90: session.CodeSessionInvalid, 3: ""} {
			if _, err := w.agent.SetPriority(t.Context(), s.ID, priority); session.CodeOf(err) != code {
				t.Errorf("priority %d: %v", priority, err)
			}
		}
		p.start("job-a", "n1", 0)
		w.awaitStatus(s.ID, session.Running)
		if board, err := w.agent.Devices(t.Context()); err != nil || len(board.Devices) > 0 ||
			!strings.Contains(board.Text, "are not listed") {
			t.Errorf("the devices are %+v, %v", board, err)
		}
		if _, err := w.agent.CommitSession(t.Context(), s.ID, session.CommitRequest{Name: "mine"}); session.CodeOf(
			err) != session.CodeEngineUnsupported {
			t.Errorf("an image: %v", err)
		}
	})
	inBubble(t, func(t *testing.T) { // and a machine of its own has nothing to do with Slurm
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		_, err := w.agent.Launch(t.Context(), session.LaunchRequest{Spec: withImage(session.Spec{
			Schedule: session.Schedule{Slurm: &session.Slurm{Partition: "gpu"}}})})
		if e := session.AsError(err, ""); e.Code != session.CodeInvalid || e.Fields[0].Field != "slurm" {
			t.Errorf("%v", err)
		}
	})
}

// apart is the simulated engine as if it could mount nothing of this machine.
type apart struct{ engine.Host }

func (a apart) Info(ctx context.Context) (engine.Info, error) {
	info, err := a.Host.Info(ctx)
	info.Lacks = []session.Feature{session.FeatureMounts}
	return info, err
}

func TestWhereNothingIsMountedSessionsGetNoFolders(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), func(c *Config) { c.Engine.Host = apart{c.Engine.Host} })
		synctest.Wait()
		if s := w.launch(session.Spec{Name: "plain"}); len(s.Folders) > 0 {
			t.Errorf("unasked: %+v", s.Folders)
		}
		_, err := w.agent.Launch(t.Context(), session.LaunchRequest{Spec: withImage(session.Spec{
			Mounts: []session.Mount{{Source: "/tmp", Target: "data"}}})})
		if e := session.AsError(err, ""); e.Code != session.CodeInvalid || len(e.Fields) != 1 ||
			e.Fields[0].Field != "mounts" || e.Fields[0].Kind != session.KindConflict {
			t.Errorf("asked for: %+v", err)
		}
	})
}

func TestATimeLimitIsAnnouncedAndExtended(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{}), nil)
		s := w.launch(session.Spec{Name: "job-a"})
		p.start("job-a", "n1", 0)
		s = w.awaitStatus(s.ID, session.Running)
		get := func() session.Session {
			found, err := w.agent.Get(t.Context(), s.ID)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		p.set(func() { p.until = time.Now().Add(4 * time.Hour) })
		time.Sleep(3 * time.Hour)
		s = get()
		if first, announced := s.Deadline(); first == nil || first.Checker != session.CheckLimit || announced {
			t.Errorf("an hour before: %+v, %v", first, announced)
		}
		time.Sleep(51 * time.Minute)
		s = get()
		if _, announced := s.Deadline(); !announced {
			t.Errorf("shortly before: %+v", s.Warnings)
		}
		p.set(func() { p.fails = session.NewError(session.CodeEngineInvalid, "Access denied", "") })
		if _, err := w.agent.Keep(t.Context(), s.ID, session.Duration(time.Hour)); session.CodeOf(err) !=
			session.CodeEngineInvalid || get().KeepUntil != nil {
			t.Errorf("a site that extends nothing: %v", err)
		}
		p.set(func() { p.fails = nil })
		for _, length := range []time.Duration{2 * time.Hour, time.Hour} { // the shorter one changes nothing
			if _, err := w.agent.Keep(t.Context(), s.ID, session.Duration(length)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			s = get()
			if first, announced := s.Deadline(); first == nil || announced ||
				time.Until(*first.ExpiresAt) < 118*time.Minute {
				t.Errorf("kept for %s: %+v, %v", length, first, announced)
			}
		}
		time.Sleep(3 * time.Hour)
		if s = get(); s.Status != session.Running {
			t.Errorf("the agent ended what Slurm ends: %s, %s", s.Status, s.Reason)
		}
	})
}

// What runs elsewhere outlives a restart of the agent's machine and a time
// without the engine, and is recognized on a file system with another number.
func TestWhatRunsElsewhereIsNotCondemnedByThisMachine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		boot := time.Now().Add(-time.Hour)
		w, p := delegated(t, newFake(t, simtest.Config{}), func(c *Config) {
			c.Host.Boot = func() (time.Time, error) { return boot, nil }
		})
		dir := t.TempDir()
		spec := session.Spec{Name: "job-a", Mounts: []session.Mount{{Source: dir, Target: "data"}}}
		s := w.launch(spec)
		p.start("job-a", "n1", 0)
		s = w.awaitStatus(s.ID, session.Running)
		time.Sleep(time.Hour) // in which this machine looks for its devices
		if s, err := w.agent.Get(t.Context(), s.ID); err != nil || len(s.Warnings) > 0 {
			t.Errorf("it is warned of %+v, %v", s.Warnings, err)
		}
		for _, pin := range w.containersOf(s)[session.MainKernel].Guest.Pins {
			if pin.Device != 0 || pin.Inode == 0 {
				t.Errorf("%s is recognized by %+v", pin.Target, pin)
			}
		}
		w.halt()
		time.Sleep(time.Minute)
		boot = time.Now()
		w.fake.SetDown(true) // and ends before the engine says anything to the next agent
		w.start()
		time.Sleep(time.Minute)
		w.fake.Exit(s.Container(), 137)
		w.fake.SetDown(false)
		s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
		if s.Status != session.Terminated || s.Reason != session.ReasonSelf || *s.ExitCode != 137 {
			t.Errorf("it ended as %s, %s, %+v", s.Status, s.Reason, s.Error)
		}
	})
}
