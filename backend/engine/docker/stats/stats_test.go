package stats

import (
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/cgroup"
)

func TestGaugesForgetWhatIsNotAskedFor(t *testing.T) {
	tree := cgroup.Tree{Proc: "../../cgroup/testdata/v2/proc", Root: "../../cgroup/testdata/v2/cgroup"}
	g := &gauges{}
	const one, two = "1a09d0799579", "c8ae43f5b9b9" // both name the group
	for _, id := range []string{one, two} {
		if _, err := g.add(tree, id, 100); err != nil {
			t.Fatal(err)
		}
	}
	second := g.byID[two]
	samples := map[string]engine.Stats{}
	if unknown := g.sample([]string{one, "three"}, samples); len(unknown) != 1 || unknown[0] != "three" ||
		len(samples) != 1 || samples[one].Pids != 17 {
		t.Errorf("not known: %q, sampled: %+v", unknown, samples)
	}
	if _, err := second.Sample(time.Now(), &g.page); err == nil {
		t.Error("the files of one that was not asked for stay open")
	}
	g.byID[one].Close() // as a read of a removed group fails
	if unknown := g.sample([]string{one}, samples); len(unknown) != 1 || len(g.byID) != 0 {
		t.Errorf("one that ended is not asked for again: %q", unknown)
	}
	g.close()
}

func TestAGroupThatOthersShareIsNoContainers(t *testing.T) {
	g := &gauges{}
	tree := cgroup.Tree{Proc: "../../cgroup/testdata/v2/proc", Root: "../../cgroup/testdata/v2/cgroup"}
	if sample, err := g.add(tree, "another", 100); !errors.Is(err, errShared) {
		t.Errorf("what all use counts as that of one: %+v, %v", sample, err)
	}
	samples := map[string]engine.Stats{}
	if unknown := g.sample([]string{"another"}, samples); len(unknown)+len(samples) != 0 {
		t.Errorf("it is asked for again: %q, or sampled: %+v", unknown, samples)
	}
	g.close()
}

func TestStatsOfTheDaemonMeanTheSame(t *testing.T) {
	said := container.StatsResponse{Read: time.Unix(5, 0),
		Networks: map[string]container.NetworkStats{"eth0": {RxBytes: 5, TxBytes: 6}, "eth1": {RxBytes: 1}}}
	said.CPUStats.CPUUsage.TotalUsage = 7
	said.MemoryStats.Usage, said.MemoryStats.Limit = 100, 1000
	said.MemoryStats.Stats = map[string]uint64{"inactive_file": 1, "total_inactive_file": 30}
	said.PidsStats.Current = 4
	said.BlkioStats.IoServiceBytesRecursive = []container.BlkioStatEntry{{Op: "Read", Value: 8},
		{Op: "write", Value: 9}, {Op: "Total", Value: 99}}
	want := engine.Stats{At: time.Unix(5, 0), CPU: 7, Memory: 70, MemLimit: 1000, NetRx: 6, NetTx: 6, DiskRead: 8,
		DiskWrite: 9, Pids: 4}
	if got := statsFromAPI(said); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
