package slurm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/backend/slurm/slurmtest"
)

// says is a client whose next command prints a text, or fails with it. It returns how the command was called last.
func says(out, said string) (*slurm.Client, *[]string) {
	var called []string
	return client(func(_ context.Context, name string, args []string, _ []byte) ([]byte, error) {
		called = append([]string{name}, args...)
		if said != "" {
			return nil, &slurm.Failure{Command: name, Exit: 1, Said: said}
		}
		return []byte(out), nil
	}), &called
}

func TestAJobThatEndedIsCancelledWithoutError(t *testing.T) {
	ctx := t.Context()
	for said, want := range map[string]session.Code{
		"": "",
		"Kill job error on job id 7: Invalid job id specified":                 "",
		"Kill job error on job id 7: Job/step already completing or completed": "",
		"Kill job error on job id 7: Access/permission denied":                 session.CodeEngineInvalid,
		"Unable to contact slurm controller (connect failure)":                 session.CodeEngineUnavailable,
	} {
		c, called := says("", said)
		if err := c.Cancel(ctx, slurm.JobID(7)); session.CodeOf(err) != want ||
			!slices.Equal(*called, []string{"scancel", "7"}) {
			t.Errorf("%q: %v: %v", said, *called, err)
		}
		if err := c.Cancel(ctx, slurm.TaskID{Array: 7, Task: 3}); session.CodeOf(err) != want ||
			!slices.Equal(*called, []string{"scancel", "7_3"}) {
			t.Errorf("%q: %v: %v", said, *called, err)
		}
		if err := c.Terminate(ctx, slurm.JobID(7)); session.CodeOf(err) != want ||
			!slices.Equal(*called, []string{"scancel", "--signal=TERM", "--batch", "7"}) {
			t.Errorf("%q: %v: %v", said, *called, err)
		}
	}
}

func TestJobsAreChanged(t *testing.T) {
	ctx, job := t.Context(), slurm.JobID(7)
	c, called := says("", "")
	if err := c.Extend(ctx, job, 90*time.Second); err != nil ||
		!slices.Equal(*called, []string{"scontrol", "update", "JobId=7", "TimeLimit=2"}) {
		t.Errorf("%v: %v", *called, err)
	}
	if err := c.Nice(ctx, job, 100); err != nil ||
		!slices.Equal(*called, []string{"scontrol", "update", "JobId=7", "Nice=100"}) {
		t.Errorf("%v: %v", *called, err)
	}
	if err := c.Extend(ctx, job, 0); session.CodeOf(err) != session.CodeEngineInvalid {
		t.Error(err)
	}
	c, _ = says("", "slurm_update error: Access/permission denied")
	if err := c.Extend(ctx, job, time.Hour); session.CodeOf(err) != session.CodeEngineInvalid {
		t.Error(err)
	}
}

func TestPlacementOfAJob(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		dir := t.TempDir()
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 4, GPUs: 4})
		r := request(dir, "abc")
		r.Nodes, r.Each.GPUs = 2, 2
		one := client(c.Run)
		id, err := one.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := one.Placement(t.Context(), id)
		if err != nil || len(got) != 2 || got[1].Node != "n2" || !slices.Equal(got[1].GPUs, []int{0, 1}) {
			t.Errorf("%+v: %v", got, err)
		}
		if _, err := one.Placement(t.Context(), slurm.JobID(99)); session.CodeOf(err) != session.CodeNoContainer {
			t.Error(err)
		}
	})
}

func TestTasksOfAnArrayAreJobs(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 2, CPUs: 1, Accounts: true})
		r := request(t.TempDir(), "abc")
		r.Array = 4
		one := client(c.Run)
		id, err := one.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		task := func(n int) slurm.TaskID { return slurm.TaskID{Array: id, Task: n} }
		got, err := one.Placement(t.Context(), task(1))
		if err != nil || len(got) != 1 || got[0].Node != "n2" {
			t.Errorf("%+v: %v", got, err)
		}
		for _, n := range []int{1, 3} { // one that runs and one that waits
			if err := one.Cancel(t.Context(), task(n)); err != nil {
				t.Error(err)
			}
		}
		jobs, err := one.Jobs(t.Context())
		if err != nil || len(jobs) != 4 {
			t.Fatalf("%+v: %v", jobs, err)
		}
		for i, want := range []slurm.State{slurm.Running, slurm.Cancelled, slurm.Running, slurm.Cancelled} {
			if j := jobs[i]; j.State != want || j.Array != id || j.Task != i || j.Name != r.Name {
				t.Errorf("task %d is %+v", i, j)
			}
			if end, found, err := one.Ended(t.Context(), r.Name, i); err != nil || found != want.Ended() {
				t.Errorf("task %d ended as %+v, %v: %v", i, end, found, err)
			}
		}
		if again, err := one.Submit(t.Context(), r); again != id || err != nil || c.Made() != 4 {
			t.Errorf("again: %d, %d made: %v", again, c.Made(), err)
		}
	})
}

func TestEndsAreAskedOfAccounting(t *testing.T) {
	ctx := t.Context()
	c, called := says("12\x1fTIMEOUT\x1f0:0\x1f1\x1f2\x1fn1\n", "")
	end, found, err := c.Ended(ctx, "slipway-abc-1", 0)
	if err != nil || !found || end.State != slurm.Timeout || (*called)[0] != "sacct" {
		t.Errorf("%+v, %v: %v", end, found, err)
	}
	for out, said := range map[string]string{"": "", "12\x1fRUNNING\x1f0:0\x1f1\x1fUnknown\x1fn1\n": "",
		"off": "Slurm accounting storage is disabled"} {
		if c, _ = says(out, said); true {
			if end, found, err := c.Ended(ctx, "slipway-abc-1", 0); err != nil || found {
				t.Errorf("%q: %+v, %v", out, end, err)
			}
		}
	}
	c, _ = says("", "Unable to contact slurmdbd")
	if _, _, err := c.Ended(ctx, "slipway-abc-1", 0); session.CodeOf(err) != session.CodeEngineUnavailable {
		t.Error(err)
	}
}

func TestASiteWithoutAccounting(t *testing.T) {
	c := slurmtest.New(slurmtest.Config{Nodes: 3, CPUs: 4, GPUs: 8})
	site, err := client(c.Run).Site(t.Context())
	if err != nil || site.Accounting || site.Version != "22.05.8" || len(site.Partitions) != 1 ||
		site.Partitions[0].Shapes[0].GPUs[0].Count != 8 || c.Calls("") != 3 {
		t.Errorf("%+v: %v", site, err)
	}
}

func TestASiteWithAccounting(t *testing.T) {
	down := ""
	one := client(func(_ context.Context, name string, args []string, _ []byte) ([]byte, error) {
		called := strings.Join(append([]string{name}, args...), " ")
		switch {
		case down != "" && strings.HasPrefix(called, down):
			return nil, &slurm.Failure{Command: name, Exit: 1, Said: "Connection refused"}
		case called == "scontrol show config":
			return []byte("AccountingStorageType = accounting_storage/slurmdbd\n"), nil
		case strings.HasPrefix(called, "sacctmgr --noheader --parsable2 show associations user=lab "):
			return []byte("bio||normal||||| \n"), nil
		case strings.HasPrefix(called, "sacctmgr --noheader --parsable2 show qos "):
			return []byte("normal|0||||\n"), nil
		}
		return nil, nil
	})
	site, err := one.Site(t.Context())
	if err != nil || !site.Accounting || len(site.Associations) != 1 || len(site.QOS) != 1 {
		t.Errorf("%+v: %v", site, err)
	}
	for _, down = range []string{"sacctmgr --noheader --parsable2 show qos", "sacctmgr"} {
		if site, err = one.Site(t.Context()); err != nil || site.Accounting || site.Associations != nil {
			t.Errorf("without %s: %+v: %v", down, site, err)
		}
	}
	for _, down = range []string{"scontrol show config", "scontrol --oneliner show partition", "sinfo"} {
		if _, err = one.Site(t.Context()); session.CodeOf(err) != session.CodeEngineUnavailable {
			t.Errorf("without %s: %v", down, err)
		}
	}
}

func TestAnAnswerThatCannotBeReadIsAnError(t *testing.T) {
	ctx := t.Context()
	c, _ := says("12\x1f12\x1fN/A\x1fslipway-abc-1", "")
	if _, err := c.Jobs(ctx); session.CodeOf(err) != session.CodeEngineInternal {
		t.Error(err)
	}
	if _, err := c.Placement(ctx, slurm.JobID(12)); session.CodeOf(err) != session.CodeEngineInternal {
		t.Error(err)
	}
	if _, _, err := c.Ended(ctx, "slipway-abc-1", 0); session.CodeOf(err) != session.CodeEngineInternal {
		t.Error(err)
	}
}

func TestACommandThatDoesNotAnswer(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Fault: func(slurmtest.Call) slurmtest.Fault {
			return slurmtest.Fault{Wait: time.Hour}
		}})
		began := time.Now()
		if _, err := client(c.Run).Jobs(t.Context()); session.CodeOf(err) != session.CodeEngineTimeout ||
			time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, errGone)
		defer stop()
		if _, err := client(c.Run).Jobs(ctx); !errors.Is(err, errGone) {
			t.Error(err)
		}
	})
}
