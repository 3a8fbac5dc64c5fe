package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/backend/slurm/slurmtest"
)

// poll runs a poller for the rest of the test, and counts its calls.
func poll(t *testing.T, c *slurmtest.Controller) (*slurm.Client, *slurm.Poller, *atomic.Int64) {
	t.Helper()
	var changes atomic.Int64
	one := client(c.Run)
	p := slurm.NewPoller(one, func() { changes.Add(1) })
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	synctest.Wait()
	return one, p, &changes
}

// within counts the calls of squeue during a time.
func within(c *slurmtest.Controller, d time.Duration) int {
	before := c.Calls("squeue")
	time.Sleep(d)
	synctest.Wait()
	return c.Calls("squeue") - before
}

func TestThePollerAsksOftenOnlyWhileAJobWaits(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 1, CPUs: 1})
		one, p, changes := poll(t, c)
		if n := within(c, time.Hour); n != 60 {
			t.Errorf("%d calls an hour while there is no job", n)
		}
		dir := t.TempDir()
		for i := range 2 {
			if _, err := one.Submit(t.Context(), request(dir, session.ID(fmt.Sprint("s", i)))); err != nil {
				t.Fatal(err)
			}
		}
		p.Wake()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		s := p.Snapshot()
		if len(s.Jobs) != 2 || s.Jobs[0].State != slurm.Running || s.Jobs[1].State != slurm.Pending ||
			time.Since(s.At) > 5*time.Second || s.Err != nil {
			t.Errorf("it knows %+v", s)
		}
		if n := within(c, time.Hour); n != 240 {
			t.Errorf("%d calls an hour while a job waits", n)
		}
		if n := one.CallsPerHour(); n < 230 || n > 250 {
			t.Errorf("%d calls are counted", n)
		}
		c.End(1, slurm.Completed)
		time.Sleep(time.Minute)
		if n := within(c, time.Hour); n != 60 {
			t.Errorf("%d calls an hour while a job runs", n)
		}
		if int(changes.Load()) != c.Calls("squeue")-2 { // two of Submit
			t.Errorf("%d changes of %d calls", changes.Load(), c.Calls("squeue"))
		}
	})
}

func TestManyWakeUpsAreFewCalls(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 1, CPUs: 1})
		_, p, _ := poll(t, c)
		before := c.Calls("squeue")
		for range 100 {
			p.Wake()
			time.Sleep(100 * time.Millisecond)
		}
		if n := c.Calls("squeue") - before; n > 2 {
			t.Errorf("%d calls in 10 seconds", n)
		}
	})
}

func TestThePollerAsksLessWhileCallsFail(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		var down atomic.Bool
		c := slurmtest.New(slurmtest.Config{Nodes: 1, CPUs: 1, Fault: func(slurmtest.Call) slurmtest.Fault {
			if down.Load() {
				return slurmtest.Fault{Says: "Unable to contact slurm controller (connect failure)"}
			}
			return slurmtest.Fault{}
		}})
		one, p, _ := poll(t, c)
		if _, err := one.Submit(t.Context(), request(t.TempDir(), "abc")); err != nil {
			t.Fatal(err)
		}
		if s, err := p.Fresh(t.Context()); err != nil || len(s.Jobs) != 1 {
			t.Fatalf("%+v: %v", s, err)
		}
		down.Store(true)
		if n := within(c, time.Hour); n < 12 || n > 16 {
			t.Errorf("%d calls an hour", n)
		}
		s := p.Snapshot()
		if session.CodeOf(s.Err) != session.CodeEngineUnavailable || len(s.Jobs) != 1 || time.Since(s.At) < time.Hour {
			t.Errorf("it knows %+v", s)
		}
		p.Wake()
		if n := within(c, 20*time.Second); n > 1 {
			t.Errorf("%d calls after a wake-up", n)
		}
		down.Store(false)
		if n := within(c, 5*time.Minute); n < 1 || p.Snapshot().Err != nil {
			t.Errorf("%d calls after it is up: %v", n, p.Snapshot().Err)
		}
	})
}

func TestThePollerLeavesASlowControllerInPeace(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 1, CPUs: 1, Fault: func(slurmtest.Call) slurmtest.Fault {
			return slurmtest.Fault{Wait: 6 * time.Second}
		}})
		poll(t, c)
		if n := within(c, time.Hour); n < 28 || n > 29 { // one each 6 s and 20 times 6 s
			t.Errorf("%d calls an hour", n)
		}
	})
}

func TestAJobThatNeverStartsIsNotWaitedFor(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		one, _ := says(strings.Join([]string{"1", "1", "N/A", "slipway-abc-1", "PENDING", "JobHeldUser", "N/A", "N/A",
			"", "1:00", "0:00", "all", "normal", "lab", "1", ""}, "\x1f")+"\n", "")
		p := slurm.NewPoller(one, func() {})
		ctx, stop := context.WithTimeout(t.Context(), time.Hour-time.Second)
		defer stop()
		p.Run(ctx)
		if n := one.CallsPerHour(); n != 60 {
			t.Errorf("%d calls an hour", n)
		}
	})
}

func TestFreshIsWhatACallSaysThatBeganAfterwards(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 1, CPUs: 1, Fault: func(slurmtest.Call) slurmtest.Fault {
			return slurmtest.Fault{Wait: time.Second}
		}})
		_, p, _ := poll(t, c) // whose first call is on its way
		began := time.Now()
		if s, err := p.Fresh(t.Context()); err != nil || s.At.Before(began.Add(time.Second)) {
			t.Errorf("asked at %s, answered at %s: %v", began, s.At, err)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, errGone)
		defer stop()
		if _, err := p.Fresh(ctx); !errors.Is(err, errGone) {
			t.Error(err)
		}
	})
}

var errGone = errors.New("gone")
