package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
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
		if err := c.Cancel(ctx, 7); session.CodeOf(err) != want || !slices.Equal(*called, []string{"scancel", "7"}) {
			t.Errorf("%q: %v: %v", said, *called, err)
		}
		if err := c.CancelTask(ctx, 7, 3); session.CodeOf(err) != want ||
			!slices.Equal(*called, []string{"scancel", "7_3"}) {
			t.Errorf("%q: %v: %v", said, *called, err)
		}
		if err := c.Terminate(ctx, 7); session.CodeOf(err) != want ||
			!slices.Equal(*called, []string{"scancel", "--signal=TERM", "--full", "7"}) {
			t.Errorf("%q: %v: %v", said, *called, err)
		}
	}
}

func TestJobsAreChanged(t *testing.T) {
	ctx := t.Context()
	c, called := says("", "")
	if err := c.Extend(ctx, 7, 90*time.Second); err != nil ||
		!slices.Equal(*called, []string{"scontrol", "update", "JobId=7", "TimeLimit=2"}) {
		t.Errorf("%v: %v", *called, err)
	}
	if err := c.Nice(ctx, 7, 100); err != nil ||
		!slices.Equal(*called, []string{"scontrol", "update", "JobId=7", "Nice=100"}) {
		t.Errorf("%v: %v", *called, err)
	}
	if err := c.Extend(ctx, 7, 0); session.CodeOf(err) != session.CodeEngineInvalid {
		t.Error(err)
	}
	c, _ = says("", "slurm_update error: Access/permission denied")
	if err := c.Extend(ctx, 7, time.Hour); session.CodeOf(err) != session.CodeEngineInvalid {
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
		if _, err := one.Placement(t.Context(), 99); session.CodeOf(err) != session.CodeNoContainer {
			t.Error(err)
		}
	})
}

func TestEndsAreAskedOfAccounting(t *testing.T) {
	ctx := t.Context()
	c, called := says("12\x1fTIMEOUT\x1f0:0\x1f1\x1f2\x1fn1\n", "")
	end, found, err := c.Ended(ctx, "slipway-abc-1")
	if err != nil || !found || end.State != slurm.Timeout || (*called)[0] != "sacct" {
		t.Errorf("%+v, %v: %v", end, found, err)
	}
	for out, said := range map[string]string{"": "", "12\x1fRUNNING\x1f0:0\x1f1\x1fUnknown\x1fn1\n": "",
		"off": "Slurm accounting storage is disabled"} {
		if c, _ = says(out, said); true {
			if end, found, err := c.Ended(ctx, "slipway-abc-1"); err != nil || found {
				t.Errorf("%q: %+v, %v", out, end, err)
			}
		}
	}
	c, _ = says("", "Unable to contact slurmdbd")
	if _, _, err := c.Ended(ctx, "slipway-abc-1"); session.CodeOf(err) != session.CodeEngineUnavailable {
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
	if _, err := c.Placement(ctx, 12); session.CodeOf(err) != session.CodeEngineInternal {
		t.Error(err)
	}
	if _, _, err := c.Ended(ctx, "slipway-abc-1"); session.CodeOf(err) != session.CodeEngineInternal {
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

// command puts a shell script into the path as one of Slurm's commands.
func command(t *testing.T, name, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it has no shell")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestExecRunsACommand(t *testing.T) {
	t.Setenv("SQUEUE_FORMAT", "%i")
	t.Setenv("SLURM_CONF", "/etc/slurm.conf")
	command(t, "squeue", `cat; echo "$# $1 $2 $SQUEUE_FORMAT $SLURM_CONF $SLURM_TIME_FORMAT $LC_ALL"; echo noise >&2`)
	out, err := slurm.Exec(t.Context(), "squeue", []string{"a b", "c"}, []byte("in "))
	if want := "in 2 a b c  /etc/slurm.conf %s C\n"; string(out) != want || err != nil {
		t.Errorf("%q instead of %q: %v", out, want, err)
	}
}

func TestExecReturnsWhatACommandSaysOfItsFailure(t *testing.T) {
	command(t, "sbatch", `echo 12; printf 'sbatch: error: No.\007\nsbatch: error: Not at all.\n' >&2; exit 3`)
	_, err := slurm.Exec(t.Context(), "sbatch", nil, nil)
	failure, ok := errors.AsType[*slurm.Failure](err)
	if !ok || failure.Exit != 3 || failure.Said != "No.\nNot at all." || failure.Command != "sbatch" {
		t.Errorf("%+v: %v", failure, err)
	}
}

func TestExecReadsTheAnswerOfATestOnStandardError(t *testing.T) {
	command(t, "sbatch", `echo "sbatch: Job 12 to start at 1700000000 using 1 processors on nodes n1 in all" >&2`)
	start, err := client(nil).Test(t.Context(), request("/home/lab", "abc"))
	if err != nil || !start.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("starts at %s: %v", start, err)
	}
}

func TestExecBoundsWhatACommandPrints(t *testing.T) {
	command(t, "squeue", `yes slipway`)
	began := time.Now()
	out, err := slurm.Exec(t.Context(), "squeue", nil, nil)
	if err == nil || out != nil {
		t.Errorf("%d bytes after %s", len(out), time.Since(began))
	}
	if _, err = client(nil).Jobs(t.Context()); session.CodeOf(err) != session.CodeEngineInternal {
		t.Error(err)
	}
	command(t, "sbatch", `head -c 100000 /dev/zero | tr '\0' e >&2; exit 1`)
	_, err = slurm.Exec(t.Context(), "sbatch", nil, nil)
	failure, ok := errors.AsType[*slurm.Failure](err)
	if !ok || len(failure.Said) > 4096 || !strings.HasPrefix(failure.Said, "ee") {
		t.Error(err)
	}
}

func TestExecEndsACommandWithItsContext(t *testing.T) {
	command(t, "squeue", `exec sleep 600`)
	ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errGone)
	defer stop()
	if _, err := slurm.Exec(ctx, "squeue", nil, nil); !errors.Is(err, errGone) {
		t.Error(err)
	}
}
