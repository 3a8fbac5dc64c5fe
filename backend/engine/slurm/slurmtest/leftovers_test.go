package slurmtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// leftovers are what a cluster with that state directory has outside of it on this machine.
func leftovers(t *testing.T, state string) []string {
	t.Helper()
	group := fmt.Sprintf("slipway-slurm-%x", sha256.Sum256([]byte(state)))[:len("slipway-slurm-")+8]
	found, err := filepath.Glob("/sys/fs/cgroup/*/" + group)
	if err != nil {
		t.Fatal(err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		if groups, err := os.ReadFile(path); err == nil && strings.Contains(string(groups), group) {
			found = append(found, path)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), state) {
		found = append(found, "mounts")
	}
	if _, err := os.Stat(state); err == nil {
		found = append(found, state)
	}
	return found
}

// TestClusterLeavesNothing has a second cluster beside the first, whose start is killed.
func TestClusterLeavesNothing(t *testing.T) {
	script := RequireSlurm(t).script
	state := filepath.Join(t.TempDir(), "state")
	rig := func(ctx context.Context, args ...string) (string, error) {
		command := exec.CommandContext(ctx, script, args...)
		command.Env = append(os.Environ(), "SLIPWAY_SLURM="+state)
		began := time.Now()
		out, err := output(command)
		t.Logf("%s: %s", args, time.Since(began).Round(time.Millisecond))
		return strings.TrimSpace(string(out)), err
	}
	t.Cleanup(func() { _, _ = rig(context.Background(), "down") })
	killed, kill := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer kill()
	if _, err := rig(killed, "up"); err == nil {
		t.Log("the cluster was up before it could be killed")
	}
	if _, err := rig(t.Context(), "up"); err != nil {
		t.Fatal(err)
	}
	if got, err := rig(t.Context(), "exec", Login, "srun", "--nodes=2", "--mem=50", "hostname"); err != nil ||
		!strings.Contains(got, Node1) || !strings.Contains(got, Node2) {
		t.Errorf("a job on both nodes says %q, %v", got, err)
	}
	if got := leftovers(t, state); len(got) < 3 {
		t.Errorf("the cluster has only %s", got)
	}
	if _, err := rig(t.Context(), "down"); err != nil {
		t.Error(err)
	}
	if got := leftovers(t, state); got != nil {
		t.Errorf("what is left is %s", got)
	}
}
