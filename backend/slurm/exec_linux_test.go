package slurm_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
)

// command puts a shell script into the path as one of Slurm's commands.
func command(t *testing.T, name, script string) {
	t.Helper()
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

func TestExecEndsACommandWithTheAgent(t *testing.T) {
	const variable = "SLIPWAY_TEST_PIPE" // its path, in the agent
	if path := os.Getenv(variable); path != "" {
		_, err := slurm.Exec(t.Context(), "sbatch", []string{path}, nil)
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "sbatch", `exec sleep 600 >"$1"`)
	agent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	agent.Env = append(os.Environ(), variable+"="+path)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.Open(path) // the command runs now
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := errors.Join(agent.Process.Kill(), pipe.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	if _, err := pipe.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the command lives on: %v", err)
	}
	_ = agent.Wait() // it was killed
}
