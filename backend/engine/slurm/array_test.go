//go:build linux

package slurm_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
)

// together is sessions that were launched together, whose commands end with their number. Each writes one line to a
// file of its own in dir whenever it runs.
func together(dir string, count int) (all []engine.Wanted) {
	for i := range count {
		id := session.ID(fmt.Sprintf("%012d", i))
		command := fmt.Sprintf("echo ran | tee -a %s/%s; exit %d", dir, id, i)
		all = append(all, wanted(id, command, func(w *engine.Wanted) {
			w.Session.Launch, w.Session.Spec.Type = third, session.Batch
			w.Session.Priority = session.DefaultPriority
		}))
	}
	return all
}

func all(is func(scheduler.Decision) bool) func([]scheduler.Decision) bool {
	return func(d []scheduler.Decision) bool {
		return !slices.ContainsFunc(d, func(d scheduler.Decision) bool { return !is(d) })
	}
}

func waitsInSlurm(d scheduler.Decision) bool {
	return d.Wait != nil && d.Wait.Said[0].Say != "slurmSubmitting"
}

// finish lets sessions run and end, each with the exit code of its number.
func (p *planned) finish(list []engine.Wanted) {
	p.Helper()
	for i, w := range list {
		p.plan("a place", list[i:], nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
		number := 0
		fmt.Sscanf(string(w.Session.ID), "%d", &number) //nolint:errcheck // it is a number
		if state := p.ended(p.start(w)); state.ExitCode != number {
			p.Errorf("%s ended with %+v", w.Session.ID, state)
		}
		if err := p.engine.Remove(p.Context(), w.Kernels[0].Name); err != nil {
			p.Fatal(err)
		}
	}
}

// ran checks that each session has run once.
func (p *planned) ran(dir string, list []engine.Wanted) {
	p.Helper()
	for _, w := range list {
		if said, err := os.ReadFile(filepath.Join(dir, string(w.Session.ID))); string(said) != "ran\n" {
			p.Errorf("%s has run: %q, %v", w.Session.ID, said, err)
		}
	}
}

// arraysLeft are the files of arrays.
func (p *planned) arraysLeft() []string {
	left, err := filepath.Glob(filepath.Join(p.dir, "arrays", "*"))
	if err != nil {
		p.Fatal(err)
	}
	return left
}

func TestSessionsLaunchedTogetherAreAnArray(t *testing.T) {
	p, dir := newPlanned(t, 0), t.TempDir() // nothing starts
	list := together(dir, 5)
	p.plan("waits", list, nil, all(waitsInSlurm))
	p.cluster.change(func(on *cluster) {
		if on.calls["sbatch"] != 1 || !slices.Contains(on.asked, "--array=0-4") || len(on.jobs) != 5 {
			t.Errorf("%d calls of sbatch, the last with %q", on.calls["sbatch"], on.asked)
		}
	})
	// What changes for one changes its task alone.
	list[3].Session.Priority = session.DefaultPriority - 2
	p.plan("a change", list, nil, func([]scheduler.Decision) bool {
		var changed []string
		p.cluster.change(func(on *cluster) { changed = on.changed })
		return slices.Equal(changed, []string{"update", "JobId=1_3", "Nice=200"})
	})
	gone := list[1]
	list = slices.Delete(list, 1, 2)
	p.plan("one taken back", list, nil, func([]scheduler.Decision) bool { return p.gone(gone.Session.ID) })
	p.cluster.change(func(on *cluster) {
		if !slices.Equal(on.ended, []string{"1_1"}) {
			t.Errorf("scancel was called for %q", on.ended)
		}
		on.cpus = 2
		on.schedule()
	})
	p.again() // the agent is started again
	p.finish(list)
	p.ran(dir, list)
	if _, err := os.Stat(filepath.Join(dir, string(gone.Session.ID))); err == nil {
		t.Error("the one that was taken back has run")
	}
	if left := p.arraysLeft(); len(left) > 0 {
		t.Errorf("files of arrays are left: %q", left)
	}
}

// One that is taken back and wanted again gets a job of its own, and its old task leaves that alone.
func TestATaskIsWantedAgain(t *testing.T) {
	p, dir := newPlanned(t, 0), t.TempDir()
	list := together(dir, 3)
	p.plan("waits", list, nil, all(waitsInSlurm))
	p.plan("one taken back", list[1:], nil, func([]scheduler.Decision) bool { return p.gone(list[0].Session.ID) })
	p.plan("waits again", list, nil, all(waitsInSlurm))
	p.cluster.change(func(on *cluster) {
		on.jobs[0].state = "PENDING" // its end was forgotten
		on.cpus = 3
		on.schedule()
	})
	p.finish(list)
	p.ran(dir, list)
}

func TestOnlyWhatAsksForTheSameIsAnArray(t *testing.T) {
	p, dir := newPlanned(t, 0), t.TempDir()
	list := together(dir, 6)
	list[1].Session.Spec.Resources.CPU = 2
	list[2].Session.Launch = ""
	list[3].Session.Spec.Type = session.Interactive
	list[4].Session.Spec.Slurm = &session.Slurm{Partition: "main"}
	p.plan("waits", list, nil, all(waitsInSlurm))
	p.cluster.change(func(on *cluster) {
		var tasks []string
		for _, j := range on.jobs {
			if j.array > 0 {
				tasks = append(tasks, j.name)
			}
		}
		if len(on.jobs) != 6 || len(tasks) != 2 || on.calls["sbatch"] != 5 {
			t.Errorf("%d jobs by %d calls, tasks %q", len(on.jobs), on.calls["sbatch"], tasks)
		}
	})
}

func TestWhereASiteTakesNoArraysEachAsksByItself(t *testing.T) {
	p, dir := newPlanned(t, 2), t.TempDir()
	p.cluster.change(func(on *cluster) { on.noArrays = true })
	list := together(dir, 3)
	p.finish(list)
	p.ran(dir, list)
	if left := p.arraysLeft(); len(left) > 0 {
		t.Errorf("files of arrays are left: %q", left)
	}
}

func TestOneThatCannotBeMadeDoesNotHoldBackTheOthers(t *testing.T) {
	p, dir := newPlanned(t, 2), t.TempDir()
	list := together(dir, 3)
	list[1].Kernels[0].Mounts = []session.Mount{{Source: "/nowhere/at/all", Target: "/data"}}
	p.plan("an end", list, nil, func(d []scheduler.Decision) bool { return d[1].End != nil })
	list = slices.Delete(list, 1, 2)
	p.finish(list)
	p.ran(dir, list)
}

// An agent that is killed while it submits an array, answers that get lost and a controller that does not answer
// double and lose nothing.
func TestArraysInTrouble(t *testing.T) {
	seeds := 50
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 2))
			p, dir := newPlanned(t, 0), t.TempDir()
			list := together(dir, 2+random.IntN(4))
			for range 6 {
				for range random.IntN(40) {
					if _, err := p.planner.Plan(t.Context(), list, nil); err != nil && !engine.Unavailable(err) {
						t.Fatal(err)
					}
				}
				switch random.IntN(4) {
				case 0:
					p.cluster.change(func(on *cluster) { on.deaf = !on.deaf })
				case 1:
					p.cluster.change(func(on *cluster) { on.down = !on.down })
				default:
					p.again()
				}
			}
			p.cluster.change(func(on *cluster) { on.down, on.deaf = false, false })
			p.plan("waits", list, nil, all(waitsInSlurm))
			p.cluster.change(func(on *cluster) {
				on.cpus = 3
				on.schedule()
			})
			p.finish(list)
			p.ran(dir, list)
			p.cluster.change(func(on *cluster) {
				if len(on.jobs) != len(list) {
					var names []string
					for _, j := range on.jobs {
						names = append(names, fmt.Sprintf("%s %s %s", j.named(), j.name, j.state))
					}
					t.Errorf("%d jobs for %d sessions: %s", len(on.jobs), len(list), strings.Join(names, ", "))
				}
			})
		})
	}
}

// What was written of an array that was never submitted is written again.
func TestAnArrayThatWasNotFinished(t *testing.T) {
	p, dir := newPlanned(t, 2), t.TempDir()
	list := together(dir, 3)
	p.cluster.change(func(on *cluster) { on.down = true })
	p.await("an array", func() bool {
		if _, err := p.planner.Plan(t.Context(), list, nil); err != nil {
			t.Fatal(err)
		}
		return len(p.arraysLeft()) == 2 // its script and its mark
	})
	p.engine.Close() //nolint:errcheck // it never fails
	for _, file := range p.arraysLeft() {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	p.cluster.change(func(on *cluster) { on.down = false })
	p.again()
	p.finish(list)
	p.ran(dir, list)
	p.cluster.change(func(on *cluster) {
		if len(on.jobs) != len(list) {
			t.Errorf("there are %d jobs", len(on.jobs))
		}
	})
}
