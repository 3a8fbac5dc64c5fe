//go:build linux

package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/engine"
	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/gpu"
)

// planned is a stage with a planner.
type planned struct {
	*stage
	planner *engineslurm.Planner
}

func newPlanned(t *testing.T, cpus int) *planned {
	s := newStage(t, cpus)
	p := &planned{stage: s, planner: engineslurm.NewPlanner(s.engine)}
	p.await("the first answer", func() bool {
		_, err := p.planner.Plan(t.Context(), nil, nil)
		return err == nil
	})
	return p
}

// again replaces the engine and the planner, as a restart of the agent does.
func (p *planned) again() {
	p.engine.Close() //nolint:errcheck // it never fails
	p.open()
	p.planner = engineslurm.NewPlanner(p.engine)
}

// plan plans until the decisions are as wanted.
func (p *planned) plan(what string, wanted []engine.Wanted, live []session.Session,
	done func([]scheduler.Decision) bool) []scheduler.Decision {
	p.Helper()
	var plan scheduler.Schedule
	defer func() {
		if p.Failed() {
			for _, d := range plan.Decisions {
				p.Logf("%s: place %+v, wait %+v, end %+v", d.Session, d.Place, d.Wait, d.End)
			}
		}
	}()
	p.await(what, func() bool {
		var err error
		if plan, err = p.planner.Plan(p.Context(), wanted, live); err != nil && !engine.Unavailable(err) {
			p.Fatal(err)
		}
		if err == nil && len(plan.Decisions) != len(wanted) {
			p.Fatalf("%d decisions on %d sessions", len(plan.Decisions), len(wanted))
		}
		return err == nil && done(plan.Decisions)
	})
	return plan.Decisions
}

func isPlaced(d scheduler.Decision) bool { return d.Place != nil }

// placed is a session after its placement.
func placed(w engine.Wanted) session.Session {
	s := w.Session
	s.Status = session.Scheduled
	return s
}

func TestSessionsWaitInSlurmsQueue(t *testing.T) {
	p := newPlanned(t, 1)
	one, two := wanted(first, ""), wanted(second, "")
	got := p.plan("one place and one wait", []engine.Wanted{one, two}, nil, func(d []scheduler.Decision) bool {
		return d[0].Place != nil && d[1].Wait != nil && d[1].Wait.Code == session.CodeWaitResources
	})
	if w := got[1].Wait; w.Message != "Waiting until enough resources are free." || w.Position != 2 ||
		len(w.Said) != 1 {
		t.Errorf("the second waits for %+v", w)
	}
	place := got[0].Place
	if !slices.Equal(place.Nodes, []string{"n1"}) || len(place.Kernels) != 1 ||
		!slices.Equal(place.Kernels[0].CPUs, []int{0}) || place.Kernels[0].Memory != 128*gpu.MiB ||
		place.Kernels[0].GPUs[0] != (gpu.Grant{Device: "n1/gpu1", Share: gpu.WholeDevice, Whole: true}) {
		t.Errorf("the first is placed as %+v", place)
	}
	// The agent adopts it, and ends it.
	c := one.Kernels[0]
	c.Labels[engine.LabelGrants] = `{"cpus":[0]}`
	id := p.start(engine.Wanted{Kernels: []engine.Container{c}})
	if state := p.inspect(id); !state.Running || state.Labels[engine.LabelGrants] == "" {
		t.Errorf("it is adopted as %+v", state)
	}
	if n := p.cluster.count(slurm.NameOf(first, 1)); n != 1 {
		t.Errorf("it has %d jobs", n)
	}
	live := []session.Session{placed(one)}
	p.plan("nothing new", []engine.Wanted{two}, live, func(d []scheduler.Decision) bool { return d[0].Wait != nil })
	if !p.inspect(id).Running {
		t.Error("a live session was taken back")
	}
	if err := p.engine.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.plan("the place of the second", []engine.Wanted{two}, nil, func(d []scheduler.Decision) bool {
		return isPlaced(d[0])
	})
}

func TestWhatIsNoLongerWantedIsCancelled(t *testing.T) {
	p := newPlanned(t, 1)
	one, two := wanted(first, ""), wanted(second, "")
	p.plan("one place", []engine.Wanted{one, two}, nil, func(d []scheduler.Decision) bool {
		return isPlaced(d[0]) && d[1].Wait.Code == session.CodeWaitResources
	})
	p.plan("both taken back", nil, nil, func([]scheduler.Decision) bool { return p.gone(first) && p.gone(second) })
	p.cluster.change(func(on *cluster) {
		for _, j := range on.jobs {
			if j.state == "PENDING" || j.state == "RUNNING" && !j.cancelled {
				t.Errorf("job %s is %s", j.name, j.state)
			}
		}
	})
	// Wanted again, it gets another job, because Slurm remembers the one that was cancelled.
	p.plan("a place again", []engine.Wanted{two}, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
}

func TestARestartedAgentFindsWhatItSubmitted(t *testing.T) {
	p := newPlanned(t, 1)
	all := []engine.Wanted{wanted(first, ""), wanted(second, "")}
	p.plan("one place", all, nil, func(d []scheduler.Decision) bool {
		return isPlaced(d[0]) && d[1].Wait.Code == session.CodeWaitResources
	})
	p.again()
	p.plan("the same", all, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) && d[1].Wait != nil })
	for _, id := range []session.ID{first, second} {
		if n := p.cluster.count(slurm.NameOf(id, 1)); n != 1 {
			t.Errorf("%s has %d jobs", id, n)
		}
	}
}

func TestAnAnswerOfSbatchThatWasLostIsLookedUp(t *testing.T) {
	p := newPlanned(t, 1)
	p.cluster.change(func(on *cluster) { on.deaf = true })
	all := []engine.Wanted{wanted(first, "")}
	p.plan("a place", all, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
	if n := p.cluster.count(slurm.NameOf(first, 1)); n != 1 {
		t.Errorf("it has %d jobs", n)
	}
}

func TestABatchSessionThatEndedUnseenIsPlaced(t *testing.T) {
	p := newPlanned(t, 1)
	w := wanted(first, "exit 3")
	p.plan("a job", []engine.Wanted{w}, nil, func([]scheduler.Decision) bool {
		return p.cluster.count(slurm.NameOf(first, 1)) == 1
	})
	p.await("its end", func() bool {
		_, err := os.Stat(filepath.Join(p.run(first), "main1.exit"))
		return err == nil
	})
	p.cluster.change(func(on *cluster) { on.jobs = nil }) // Slurm has forgotten it
	p.plan("its place", []engine.Wanted{w}, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
	if state := p.ended(p.start(w)); state.ExitCode != 3 {
		t.Errorf("it is %+v", state)
	}
}

func TestAJobThatSlurmForgotBeforeItBeganIsSubmittedAgain(t *testing.T) {
	p := newPlanned(t, 0) // nothing starts
	all := []engine.Wanted{wanted(first, "")}
	p.plan("a wait", all, nil, func(d []scheduler.Decision) bool {
		return d[0].Wait != nil && d[0].Wait.Code == session.CodeWaitResources
	})
	p.cluster.change(func(on *cluster) { on.jobs, on.cpus = nil, 1 })
	p.plan("a place", all, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
}

func TestWhatSlurmRefusesEnds(t *testing.T) {
	p := newPlanned(t, 1)
	p.cluster.change(func(on *cluster) { on.refuse = "Batch job submission failed: Invalid account specified" })
	all := []engine.Wanted{wanted(first, "")}
	got := p.plan("an end", all, nil, func(d []scheduler.Decision) bool { return d[0].End != nil })
	if end := got[0].End; end.Reason != session.ReasonCreateFailed || !strings.Contains(end.Cause.Message,
		"Invalid account specified") {
		t.Errorf("it ends with %+v", end)
	}
	if !p.gone(first) {
		t.Error("it left a run")
	}
	p.plan("nothing", nil, nil, func([]scheduler.Decision) bool { return true })
	p.cluster.change(func(on *cluster) { on.refuse = "" })
	p.plan("a place", all, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
}

func TestAJobThatSomebodyCancelsEndsItsSession(t *testing.T) {
	p := newPlanned(t, 0)
	all := []engine.Wanted{wanted(first, "")}
	p.plan("a job", all, nil, func([]scheduler.Decision) bool { return p.cluster.count(slurm.NameOf(first, 1)) == 1 })
	p.cluster.change(func(on *cluster) { on.jobs[0].state, on.jobs[0].end = "CANCELLED", time.Now() })
	got := p.plan("an end", all, nil, func(d []scheduler.Decision) bool { return d[0].End != nil })
	if end := got[0].End; end.Reason != session.ReasonForced || end.Cause.Message != "The job was cancelled in Slurm." {
		t.Errorf("it ends with %+v", end)
	}
}

func TestWithoutItsImageASessionWaits(t *testing.T) {
	p := newPlanned(t, 1)
	w := wanted(first, "", func(w *engine.Wanted) { w.Kernels[0].Image = "work:1" })
	all := []engine.Wanted{w}
	got := p.plan("a wait", all, nil, func(d []scheduler.Decision) bool { return d[0].Wait != nil })
	if w := got[0].Wait; !strings.Contains(w.Message, "work:1 is not on this cluster") {
		t.Errorf("it waits for %q", w.Message)
	}
	p.image("work:1")
	p.plan("a place", all, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
}

func TestCreateAfterTheJobEndedStandsBack(t *testing.T) {
	p := newPlanned(t, 1)
	if _, err := p.engine.Create(t.Context(), wanted(first, "").Kernels[0]); session.CodeOf(
		err) != session.CodeDevicesTaken {
		t.Errorf("got %v", err)
	}
	if !p.gone(first) {
		t.Error("it made a run")
	}
}

func TestWhatIsAskedOfSlurm(t *testing.T) {
	p := newPlanned(t, 1)
	for name, c := range map[string]struct {
		change func(*session.Spec)
		want   []string
		field  string
	}{
		"all fields": {func(s *session.Spec) {
			s.Slurm = &session.Slurm{Partition: "main", Account: "lab", QOS: "high", GPUType: "h200", Constraint: "big",
				Time: session.Duration(90 * time.Second), Options: []string{"--mail-type=END"}}
			s.Accelerator = gpu.Request{Devices: 2}
		}, []string{"--partition=main", "--account=lab", "--qos=high", "--gres=gpu:h200:2", "--constraint=big",
			"--time=2",
			"--mail-type=END", "--cpus-per-task=1", "--mem=128M", "--nodes=1", "--export=NONE", "--no-requeue"}, ""},
		"a timeout": {func(s *session.Spec) { s.Timeout = session.Duration(time.Hour) },
			[]string{"--time=65"}, ""},
		"a share":        {func(s *session.Spec) { s.Accelerator = gpu.Request{Shares: 500} }, nil, "accelerator"},
		"one and a half": {func(s *session.Spec) { s.Accelerator = gpu.Request{Shares: 1500} }, nil, "accelerator"},
		"two as a share": {func(s *session.Spec) { s.Accelerator = gpu.Request{Shares: 2000} },
			[]string{"--gres=gpu:2"}, ""},
		"memory of a device": {func(s *session.Spec) { s.Accelerator = gpu.Request{Memory: gpu.GiB} }, nil,
			"accelerator"},
		"an option that is ours": {func(s *session.Spec) {
			s.Slurm = &session.Slurm{Options: []string{"--export=ALL"}}
		}, nil, "slurm.options"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := wanted(first, "").Session.Spec
			c.change(&spec)
			wrong := p.planner.Check(t.Context(), spec)
			if c.field != "" {
				if len(wrong) == 0 || !strings.HasPrefix(wrong[0].Field, c.field) || wrong[0].Message == "" {
					t.Errorf("wrong is %+v", wrong)
				}
				return
			}
			if len(wrong) > 0 {
				t.Fatalf("wrong is %+v", wrong)
			}
			p.cluster.change(func(on *cluster) {
				for _, option := range c.want {
					if !slices.Contains(on.asked, option) {
						t.Errorf("%q lacks %s", on.asked, option)
					}
				}
			})
		})
	}
}

// Controllers are overrun by those that ask too often.
func TestCallsOfSlurmAreFew(t *testing.T) {
	p := newPlanned(t, 1)
	var all []engine.Wanted
	for i := range 50 {
		all = append(all, wanted(session.ID(fmt.Sprintf("%012d", i)), ""))
	}
	p.plan("all submitted", all, nil, func(d []scheduler.Decision) bool {
		return isPlaced(d[0]) && !slices.ContainsFunc(d[1:], func(d scheduler.Decision) bool {
			return d.Wait == nil || d.Wait.Code == session.CodeWaitTurn && d.Wait.Said[0].Say == "slurmSubmitting"
		})
	})
	before, began := 0, p.clock.Now()
	p.cluster.change(func(on *cluster) { before = on.calls["squeue"] + on.calls["scontrol"] + on.calls["sacct"] })
	for p.clock.Since(began) < 5*time.Minute {
		p.plan("the same", all, nil, func([]scheduler.Decision) bool { return true })
		time.Sleep(time.Millisecond)
	}
	p.cluster.change(func(on *cluster) {
		after := on.calls["squeue"] + on.calls["scontrol"] + on.calls["sacct"]
		if minutes := p.clock.Since(began).Minutes(); float64(after-before) > 4*minutes+2 {
			t.Errorf("%d calls in %.1f minutes", after-before, minutes)
		}
	})
}

func TestALowPriorityIsLowInSlurmToo(t *testing.T) {
	p := newPlanned(t, 0) // nothing starts
	w := wanted(first, "", func(w *engine.Wanted) { w.Session.Priority = 7 })
	waits := func(d []scheduler.Decision) bool {
		return d[0].Wait != nil && d[0].Wait.Code == session.CodeWaitResources
	}
	p.plan("a wait", []engine.Wanted{w}, nil, waits)
	p.cluster.change(func(on *cluster) {
		if !slices.Contains(on.asked, "--nice=300") {
			t.Errorf("asked is %q", on.asked)
		}
	})
	w.Session.Priority = 5
	p.plan("a change", []engine.Wanted{w}, nil, func([]scheduler.Decision) bool {
		var changed []string
		p.cluster.change(func(on *cluster) { changed = on.changed })
		return slices.Equal(changed, []string{"update", "JobId=1", "Nice=500"})
	})
}

func TestWhileSlurmDoesNotAnswerItIsNotAskedAllTheTime(t *testing.T) {
	p := newPlanned(t, 1)
	all := []engine.Wanted{wanted(first, "")}
	before, began := 0, p.clock.Now()
	p.cluster.change(func(on *cluster) {
		on.down = true
		before = on.total()
	})
	for p.clock.Since(began) < 3*time.Minute {
		if _, err := p.planner.Plan(t.Context(), all, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	minutes := p.clock.Since(began).Minutes()
	p.cluster.change(func(on *cluster) {
		if calls := on.total() - before; float64(calls) > 12*minutes {
			t.Errorf("%d calls in %.1f minutes", calls, minutes)
		}
		on.down = false
	})
	p.plan("a place", all, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
	if n := p.cluster.count(slurm.NameOf(first, 1)); n != 1 {
		t.Errorf("it has %d jobs", n)
	}
}

// paired makes the session first one with two kernels.
func paired(w *engine.Wanted) {
	w.Session.Spec.Cluster = 2
	sub := w.Kernels[0]
	sub.Name, sub.Hostname = "slipway-aaaaaaaaaaaa-sub1-1", "sub1"
	sub.Labels = map[string]string{engine.LabelSession: string(first), engine.LabelKernel: "sub1",
		engine.LabelAttempt: "1", engine.LabelInstance: "one"}
	sub.Guest.Kernel = "sub1"
	w.Kernels = append(w.Kernels, sub)
	for i := range w.Kernels {
		w.Kernels[i].Guest.Cluster = &engine.Cluster{Self: w.Kernels[i].Hostname, Hosts: []string{"main1", "sub1"}}
	}
}

func TestAClusterIsOneJob(t *testing.T) {
	p := newPlanned(t, 2)
	w := wanted(first, "", paired)
	p.plan("a job", []engine.Wanted{w}, nil, func([]scheduler.Decision) bool {
		return p.cluster.count(slurm.NameOf(first, 1)) == 1
	})
	script, err := os.ReadFile(filepath.Join(p.run(first), "job.sh"))
	if err != nil || !strings.Contains(string(script), "exec srun --kill-on-bad-exit=1 --unbuffered") {
		t.Errorf("its script is %q, %v", script, err)
	}
	spec, err := os.ReadFile(filepath.Join(p.run(first), "spec.json"))
	if err != nil || !strings.Contains(string(spec), `"kernels":["main1","sub1"]`) ||
		strings.Contains(string(spec), `"private"`) {
		t.Errorf("its spec is %s, %v", spec, err)
	}
	var ports []string
	for _, kernel := range []string{"main1", "sub1"} {
		guest, err := os.ReadFile(filepath.Join(p.run(first), kernel+".guest.json"))
		_, port, found := strings.Cut(string(guest), `"port":`)
		if err != nil || !found {
			t.Fatalf("the guest is %s, %v", guest, err)
		}
		ports = append(ports, port[:5])
	}
	if ports[0] != ports[1] {
		t.Errorf("they take ssh at different ports: %q", ports)
	}
	p.cluster.change(func(on *cluster) {
		if !slices.Contains(on.asked, "--nodes=2") {
			t.Errorf("asked is %q", on.asked)
		}
		on.signal(on.jobs[0], syscall.SIGKILL)
	})
}
