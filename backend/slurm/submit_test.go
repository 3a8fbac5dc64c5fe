package slurm_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/backend/slurm/slurmtest"
	"slipway/gpu"
)

// request is a request for a session, whose folder is below dir.
func request(dir string, id session.ID) slurm.Request {
	return slurm.Request{Name: slurm.NameOf(id, 1), Comment: "slipway:i:" + string(id), Nodes: 1,
		Each: slurm.Each{CPUs: 1, Memory: gpu.GiB}, Dir: dir, Script: dir + "/job.sh", Log: dir + "/job.log"}
}

func client(run slurm.Run) *slurm.Client {
	return slurm.New(slurm.Config{Run: run, User: "lab", Log: slog.New(slog.DiscardHandler)})
}

// testSeconds runs a test on a clock of its own.
func testSeconds(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestSubmitTwiceMakesOneJob(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		dir := t.TempDir()
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4})
		began := time.Now()
		first, err := client(c.Run).Submit(t.Context(), request(dir, "abc"))
		if err != nil || time.Since(began) != 0 {
			t.Fatalf("job %d after %s: %v", first, time.Since(began), err)
		}
		again, err := client(c.Run).Submit(t.Context(), request(dir, "abc"))
		if err != nil || again != first || c.Made() != 1 {
			t.Errorf("again: job %d instead of %d, %d made: %v", again, first, c.Made(), err)
		}
		c.End(first, slurm.Completed)
		if again, err = client(c.Run).Submit(t.Context(), request(dir, "abc")); again != first || err != nil {
			t.Errorf("after its end: job %d instead of %d: %v", again, first, err)
		}
	})
}

func TestSubmitFindsAJobWhoseAnswerWasLost(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second, 9 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			testSeconds(t, func(t *testing.T) {
				fault := func(call slurmtest.Call) slurmtest.Fault {
					if call.Name == "sbatch" {
						return slurmtest.Fault{Late: late, Lost: true, Wait: 2 * time.Millisecond}
					}
					return slurmtest.Fault{}
				}
				c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4, Fault: fault})
				id, err := client(c.Run).Submit(t.Context(), request(t.TempDir(), "abc"))
				if err != nil || id != 1 || c.Made() != 1 {
					t.Errorf("job %d, %d made: %v", id, c.Made(), err)
				}
			})
		})
	}
}

func TestSubmitSaysThatThereIsNoJobAfterTwoAnswers(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		dir, lost := t.TempDir(), true
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4, Fault: func(call slurmtest.Call) slurmtest.Fault {
			if call.Name == "sbatch" && lost {
				return slurmtest.Fault{Late: -1, Lost: true}
			}
			return slurmtest.Fault{}
		}})
		began := time.Now()
		_, err := client(c.Run).Submit(t.Context(), request(dir, "abc"))
		if session.CodeOf(err) != session.CodeEngineUnavailable || time.Since(began) != 10*time.Second ||
			c.Calls("squeue") != 3 {
			t.Errorf("after %s and %d calls: %v", time.Since(began), c.Calls("squeue"), err)
		}
		lost, began = false, time.Now()
		if _, err := client(c.Run).Submit(t.Context(), request(dir, "abc")); err != nil || time.Since(began) != 0 {
			t.Errorf("again after %s: %v", time.Since(began), err)
		}
	})
}

func TestSubmitAfterAKillLooksTwiceFirst(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		dir := t.TempDir()
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4, Fault: func(call slurmtest.Call) slurmtest.Fault {
			if call.Name == "sbatch" {
				return slurmtest.Fault{Late: 8 * time.Second}
			}
			return slurmtest.Fault{}
		}})
		ctx, kill := context.WithTimeout(t.Context(), time.Second)
		defer kill()
		if _, err := client(c.Run).Submit(ctx, request(dir, "abc")); err == nil {
			t.Fatal("it was not killed")
		}
		id, err := client(c.Run).Submit(t.Context(), request(dir, "abc"))
		if id != 1 || err != nil || c.Made() != 1 {
			t.Errorf("job %d, %d made: %v", id, c.Made(), err)
		}
	})
}

func TestSubmitDoesNotRepeatAJobThatSqueueHasForgotten(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		dir := t.TempDir()
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4, Accounts: true})
		id, err := client(c.Run).Submit(t.Context(), request(dir, "abc"))
		if err != nil {
			t.Fatal(err)
		}
		c.End(id, slurm.Failed)
		time.Sleep(time.Hour)
		one := client(c.Run)
		if again, err := one.Submit(t.Context(), request(dir, "abc")); again != id || err != nil || c.Made() != 1 {
			t.Errorf("job %d instead of %d: %v", again, id, err)
		}
		end, found, err := one.Ended(t.Context(), "slipway-abc-1", 0)
		if end.State != slurm.Failed || !found || err != nil {
			t.Errorf("ended as %+v: %v", end, err)
		}
	})
}

func TestSubmitSaysWhatSlurmRefused(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		dir := t.TempDir()
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4})
		r := request(dir, "abc")
		r.Partition = "nope"
		began := time.Now()
		_, err := client(c.Run).Submit(t.Context(), r)
		want := "Slurm refused the request: Invalid partition name specified"
		if e := session.AsError(err, ""); e.Code != session.CodeEngineInvalid || e.Message != want ||
			time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); left != nil {
			t.Errorf("left behind: %v", left)
		}
	})
}

func TestSubmitSaysWhatASiteRefusedInItsOwnWords(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4, Fault: func(call slurmtest.Call) slurmtest.Fault {
			if call.Name == "sbatch" {
				return slurmtest.Fault{Says: "Name a project.\nUnspecified error"}
			}
			return slurmtest.Fault{}
		}})
		began := time.Now()
		_, err := client(c.Run).Submit(t.Context(), request(t.TempDir(), "abc"))
		if session.CodeOf(err) != session.CodeEngineInvalid || time.Since(began) != 10*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestSubmitDoesNotCallWhileAnotherDoes(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		dir := t.TempDir()
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4, Fault: func(slurmtest.Call) slurmtest.Fault {
			return slurmtest.Fault{Wait: time.Second}
		}})
		one := client(c.Run)
		done := make(chan error, 1)
		go func() {
			_, err := one.Submit(t.Context(), request(dir, "abc"))
			done <- err
		}()
		synctest.Wait()
		if _, err := one.Submit(t.Context(), request(dir, "abc")); session.CodeOf(err) != session.CodeEngineConflict {
			t.Errorf("meanwhile: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSubmitCallsNothingWithoutAMark(t *testing.T) {
	c := slurmtest.New(slurmtest.Config{Nodes: 1, CPUs: 1})
	dir := filepath.Join(t.TempDir(), "none")
	_, err := client(c.Run).Submit(t.Context(), request(dir, "abc"))
	if session.CodeOf(err) != session.CodeFileFailed || c.Calls("") != 0 {
		t.Errorf("%d calls: %v", c.Calls(""), err)
	}
}

// A controller that stops, answers late or not at all, and agents that are killed and start again at any moment make
// each job once, and lose none. Every other one is an array.
func TestSubmitDoublesAndLosesNoJob(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		testSeconds(t, func(t *testing.T) { submitInTrouble(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// world is a controller that stops now and then, with what is random.
type world struct {
	random *rand.Rand
	up     time.Time // until when it is stopped
}

// fault is what happens to a call. The controller does what reached it within 9 seconds after it was up when the call
// came, so a job that two answers 10 seconds apart do not know does not come later.
func (w *world) fault(call slurmtest.Call) slurmtest.Fault {
	if w.random.IntN(10) == 0 && time.Now().After(w.up) {
		w.up = time.Now().Add(time.Duration(w.random.IntN(150)) * time.Second)
	}
	stopped := max(0, time.Until(w.up))
	fault := slurmtest.Fault{Late: stopped, Wait: stopped + time.Duration(w.random.IntN(3000))*time.Millisecond}
	switch w.random.IntN(5) {
	case 0: // it gets lost on the way
		fault = slurmtest.Fault{Late: -1, Lost: true, Wait: time.Duration(w.random.IntN(20)) * time.Second}
	case 1: // the answer gets lost
		fault.Lost = true
		fault.Wait = time.Duration(w.random.IntN(20)) * time.Second
	}
	if call.Name == "sbatch" && fault.Late >= 0 {
		fault.Late += time.Duration(w.random.IntN(9000)) * time.Millisecond
	}
	return fault
}

func submitInTrouble(t *testing.T, seed uint64) {
	const sessions = 5
	w := &world{random: rand.New(rand.NewPCG(seed, 1))}
	c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 1, Fault: w.fault, MinJobAge: 1000 * time.Hour})
	jobs := 0
	for i := range sessions {
		id := session.ID(fmt.Sprintf("s%d", i))
		asked := request(t.TempDir(), id)
		asked.Array = i % 2 * 3
		jobs += max(1, asked.Array)
		for agent, submitted := client(c.Run), false; !submitted; {
			ctx, kill := context.WithTimeout(t.Context(), time.Hour)
			if w.random.IntN(2) == 0 {
				agent = client(c.Run) // it starts again, and will be killed
				ctx, kill = context.WithTimeout(ctx, time.Duration(w.random.IntN(60_000))*time.Millisecond)
			}
			number, err := agent.Submit(ctx, asked)
			if submitted = err == nil; submitted {
				named := slices.ContainsFunc(c.Jobs(), func(j slurmtest.Job) bool {
					return j.ID == number && j.Name == string(slurm.NameOf(id, 1))
				})
				if !named {
					t.Errorf("session %s has no job %d", id, number)
				}
			} else if session.CodeOf(err) == session.CodeEngineInvalid {
				t.Errorf("refused: %v", err)
			}
			kill()
		}
	}
	time.Sleep(10 * time.Minute) // what is on its way arrives
	if c.Made() != jobs {
		t.Errorf("%d jobs were made instead of %d", c.Made(), jobs)
	}
}

func TestTestOnly(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4})
		start, err := client(c.Run).Test(t.Context(), request("/home/lab", "abc"))
		if err != nil || !start.Equal(time.Now().Truncate(time.Second)) || c.Made() != 0 {
			t.Errorf("starts at %s, %d made: %v", start, c.Made(), err)
		}
		r := request("/home/lab", "abc")
		r.Each.CPUs = 20
		if _, err = client(c.Run).Test(t.Context(), r); session.CodeOf(err) != session.CodeEngineInvalid {
			t.Error(err)
		}
	})
}

func TestACommandThatIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := client(nil).Jobs(t.Context())
	if session.CodeOf(err) != session.CodeEngineUnavailable {
		t.Error(err)
	}
}
