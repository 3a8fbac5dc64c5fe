package stats

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/gpu"
)

// The trees in testdata hold the files of one container as a kernel shows them:
// pid 100 is its first process.
func TestSampleReadsBothCgroupVersions(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for tree, want := range map[string]engine.Stats{
		"v1": {
			At: at, CPU: 40889938 * time.Nanosecond, Memory: 155648 - 16384, MemLimit: 192 * gpu.MiB,
			NetRx: 310 + 90, NetTx: 1204, DiskRead: 4096 + 8192, DiskWrite: 12288, Pids: 3, OOMKills: 2,
		},
		"v2": {
			At: at, CPU: 5123456 * time.Microsecond, Memory: 104857600 - 20971520, MemLimit: 512 * gpu.MiB,
			NetRx: 1500, NetTx: 700, DiskRead: 1048576 + 4096, DiskWrite: 2097152, Pids: 17, OOMKills: 1,
		},
		"v2-systemd": {At: at, CPU: time.Second, Memory: 1 * gpu.MiB, MemLimit: 0, NetRx: 1, NetTx: 2, Pids: 0},
	} {
		t.Run(tree, func(t *testing.T) {
			s := sampler{proc: filepath.Join("testdata", tree, "proc"), root: filepath.Join("testdata", tree, "cgroup")}
			group, err := s.find(100)
			if err != nil {
				t.Fatal(err)
			}
			g, err := s.open(100, group)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			p := &page{room: make([]byte, 7)} // which has to grow
			for range 2 {
				if got, err := g.sample(at, p); err != nil || got != want {
					t.Errorf("got %+v, %v\nwant %+v", got, err, want)
				}
			}
		})
	}
}

func TestSampleOfWhatIsGoneFails(t *testing.T) {
	s := sampler{proc: filepath.Join("testdata/v2/proc"), root: filepath.Join("testdata/v2/cgroup")}
	if _, err := s.find(101); !os.IsNotExist(err) {
		t.Errorf("a process that is gone: %v", err)
	}
	for _, gone := range []cgroup{{version: 2, cpu: "testdata/v2/cgroup/gone", memory: "testdata/v2/cgroup/gone"},
		{version: 1, cpu: "", memory: "testdata/v1/cgroup/gone"}} {
		if _, err := s.open(100, gone); err == nil {
			t.Errorf("version %d: a cgroup that is gone was opened", gone.version)
		}
	}
}

func TestGaugesForgetWhatIsNotAskedFor(t *testing.T) {
	s := sampler{proc: filepath.Join("testdata/v2/proc"), root: filepath.Join("testdata/v2/cgroup")}
	g := &gauges{}
	for _, id := range []string{"one", "two"} {
		if _, err := g.add(s, id, 100); err != nil {
			t.Fatal(err)
		}
	}
	two := g.byID["two"]
	samples := map[string]engine.Stats{}
	if unknown := g.sample([]string{"one", "three"}, samples); len(unknown) != 1 || unknown[0] != "three" ||
		len(samples) != 1 || samples["one"].Pids != 17 {
		t.Errorf("not known: %q, sampled: %+v", unknown, samples)
	}
	if _, err := two.sample(time.Now(), &g.page); err == nil {
		t.Error("the files of one that was not asked for stay open")
	}
	_ = g.byID["one"].used.Close() // as a read of a removed cgroup fails
	if unknown := g.sample([]string{"one"}, samples); len(unknown) != 1 || len(g.byID) != 0 {
		t.Errorf("one that ended is not asked for again: %q", unknown)
	}
	g.close()
}

func TestSamplingNeedsNoMemoryOfItsOwn(t *testing.T) {
	for _, tree := range []string{"v1", "v2"} {
		s := sampler{proc: filepath.Join("testdata", tree, "proc"), root: filepath.Join("testdata", tree, "cgroup")}
		group, err := s.find(100)
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.open(100, group)
		if err != nil {
			t.Fatal(err)
		}
		defer g.close()
		p := &page{}
		at := time.Now()
		if n := testing.AllocsPerRun(100, func() { _, _ = g.sample(at, p) }); n > 0 {
			t.Errorf("%s: %v allocations", tree, n)
		}
	}
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
