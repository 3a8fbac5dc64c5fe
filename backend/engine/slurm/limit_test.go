//go:build linux

package slurm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestATimeLimitIsSeenAndExtended(t *testing.T) {
	p := newPlanned(t, 1)
	one, two := wanted(first, ""), wanted(second, "")
	p.plan("a place", []engine.Wanted{one, two}, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
	s := placed(one)
	var until time.Time
	p.await("what Slurm says of the job", func() bool {
		until = p.planner.Until(s)
		return !until.IsZero()
	})
	if left := time.Until(until); left < 59*time.Minute || left > time.Hour {
		t.Fatalf("Slurm ends it in %s", left)
	}
	if at := p.planner.Until(two.Session); !at.IsZero() {
		t.Errorf("Slurm ends one that waits at %s", at)
	}
	if err := p.planner.Extend(t.Context(), s, until.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p.cluster.change(func(on *cluster) {
		if !slices.Equal(on.changed, []string{"update", "JobId=1", "TimeLimit=120"}) {
			t.Errorf("asked is %q", on.changed)
		}
		on.refuse = "slurm_update error: Access/permission denied"
	})
	err := p.planner.Extend(t.Context(), s, until.Add(time.Hour))
	if said := session.AsError(err, ""); said.Code != session.CodeEngineInvalid ||
		!strings.Contains(said.Message, until.UTC().Format("15:04")) ||
		!strings.HasSuffix(said.Message, "Access/permission denied") || !strings.Contains(said.Hint, "admins") {
		t.Errorf("%+v", said)
	}
}

// A launcher that is open asks again and again.
func TestTheSameQuestionIsAskedOnceAMinute(t *testing.T) {
	p := newPlanned(t, 1)
	spec := wanted(first, "").Session.Spec
	asked := func() (n int) {
		p.cluster.change(func(on *cluster) { n = on.calls["sbatch"] })
		return n
	}
	for range 3 {
		if wrong := p.planner.Check(t.Context(), spec); len(wrong) > 0 {
			t.Fatalf("wrong is %+v", wrong)
		}
	}
	if n := asked(); n != 1 {
		t.Errorf("sbatch was called %d times", n)
	}
	spec.Resources.CPU++
	p.cluster.change(func(on *cluster) { on.refuse = "sbatch: error: CPU count specification invalid" })
	for range 2 {
		if wrong := p.planner.Check(t.Context(), spec); len(wrong) != 1 || wrong[0].Field != "resources.cpu" {
			t.Errorf("wrong is %+v", wrong)
		}
	}
	if n := asked(); n != 2 {
		t.Errorf("sbatch was called %d times", n)
	}
}

func TestTheScriptIsWhatSlurmIsAsked(t *testing.T) {
	p := newPlanned(t, 1)
	spec := wanted(first, "").Session.Spec
	spec.Cluster, spec.Accelerator = 2, gpu.Request{Devices: 2}
	spec.Slurm = &session.Slurm{Partition: "main", GPUType: "h200", Time: session.Duration(4 * time.Hour)}
	script := p.planner.Script(t.Context(), spec)
	for _, line := range []string{"#!/bin/sh\n", "#SBATCH --partition=main\n", "#SBATCH --gres=gpu:h200:2\n",
		"#SBATCH --time=240\n", "#SBATCH --nodes=2\n", "#SBATCH --job-name=slipway-SESSION-1\n",
		"exec srun --kill-on-bad-exit=1 "} {
		if !strings.Contains(script, line) {
			t.Errorf("%q is not in\n%s", line, script)
		}
	}
	spec.Accelerator = gpu.Request{Memory: gpu.GiB}
	if script := p.planner.Script(t.Context(), spec); script != "" {
		t.Errorf("what cannot be asked is\n%s", script)
	}
}
