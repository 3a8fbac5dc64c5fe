package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/gpu"
)

// recorded is a tree in testdata, with the files of one container as a kernel shows them: pid 100 is its first process.
func recorded(name string) Tree {
	return Tree{filepath.Join("testdata", name, "proc"), filepath.Join("testdata", name, "cgroup")}
}

func open(t *testing.T, tree Tree) *Gauge {
	t.Helper()
	groups, err := tree.Of("100")
	if err != nil {
		t.Fatal(err)
	}
	g, err := groups.Open(100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

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
			g := open(t, recorded(tree))
			p := &Page{room: make([]byte, 7)} // which has to grow
			for range 2 {
				if got, err := g.Sample(at, p); err != nil || got != want {
					t.Errorf("got %+v, %v\nwant %+v", got, err, want)
				}
			}
		})
	}
}

func TestSampleOfWhatIsGoneFails(t *testing.T) {
	tree := recorded("v2")
	if _, err := tree.Of("101"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a process that is gone: %v", err)
	}
	for _, paths := range []map[string]string{{"": "/gone"}, {"memory": "/gone"}} {
		if _, err := (Groups{tree, paths}).Open(100); err == nil {
			t.Errorf("groups that are gone were opened: %q", paths)
		}
	}
	g := open(t, tree)
	_ = g.used.Close() // as a read of a removed group fails
	if _, err := g.Sample(time.Now(), &Page{}); err == nil {
		t.Error("one that is gone was sampled")
	}
}

func TestSamplingNeedsNoMemoryOfItsOwn(t *testing.T) {
	for _, tree := range []string{"v1", "v2"} {
		g, p := open(t, recorded(tree)), &Page{}
		at := time.Now()
		if n := testing.AllocsPerRun(100, func() { _, _ = g.Sample(at, p) }); n > 0 {
			t.Errorf("%s: %v allocations", tree, n)
		}
	}
}

// job makes a tree in which Slurm has put process 100 into the group of a task.
func job(t *testing.T, table string, files map[string]string) Tree {
	t.Helper()
	tree := Tree{t.TempDir(), t.TempDir()}
	files["/100/cgroup"], files["/100/net/dev"] = table, "\n"
	for name, content := range files {
		path := filepath.Join(tree.Root, name)
		if name[0] == '/' {
			path = filepath.Join(tree.Proc, name)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func TestTheTaskOfAJob(t *testing.T) {
	const task = "slurm/uid_1500/job_41/step_0/task_0"
	want := engine.Stats{CPU: 3 * time.Second, Memory: 60 * gpu.MiB, MemLimit: 256 * gpu.MiB, Pids: 4, OOMKills: 2}
	mib := func(n int) string { return fmt.Sprintf("%d\n", n<<20) }
	const none = "9223372036854771712\n"
	for name, tree := range map[string]Tree{
		"version 1": job(t, "9:cpu,cpuacct:/"+task+"\n4:memory:/"+task+"\n3:pids:/\n2:blkio:/\n1:name=x:/\n0::/\n",
			map[string]string{
				"memory/" + task + "/memory.usage_in_bytes":          mib(100),
				"memory/" + task + "/memory.stat":                    "cache 1\ntotal_inactive_file " + mib(40),
				"memory/" + task + "/memory.limit_in_bytes":          none,
				"memory/slurm/uid_1500/job_41/memory.limit_in_bytes": mib(256),
				"memory/slurm/uid_1500/memory.limit_in_bytes":        mib(512),
				"memory/memory.limit_in_bytes":                       none,
				"memory/" + task + "/memory.oom_control":             "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
				"memory/" + task + "/cgroup.procs":                   "1\n2\n3\n4\n",
				"cpuacct/" + task + "/cpuacct.usage":                 "3000000000\n",
				"blkio/blkio.throttle.io_service_bytes":              "8:0 Read 77\n",
			}),
		"version 2": job(t, "0::/"+task+"\n", map[string]string{
			task + "/memory.current":           mib(100),
			task + "/memory.stat":              "anon 1\ninactive_file " + mib(40),
			task + "/memory.max":               "max\n",
			"slurm/uid_1500/job_41/memory.max": mib(256),
			task + "/memory.events":            "low 0\noom 3\noom_kill 2\n",
			task + "/cpu.stat":                 "usage_usec 3000000\nuser_usec 1\n",
			task + "/cgroup.procs":             "",
			task + "/pids.current":             "4\n",
		}),
	} {
		got, err := open(t, tree).Sample(time.Time{}, &Page{})
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
		groups, err := tree.Of("100")
		if err != nil {
			t.Fatal(err)
		}
		at := tree.Root
		if name == "version 1" {
			at = filepath.Join(tree.Root, "memory")
		}
		folder := filepath.Join(at, "slurm/uid_1500/job_41") // which has the limit
		if found := groups.Folders(); len(found) != 1 || found[at] != folder || !groups.Has("memory") {
			t.Errorf("%s: its folders are %q", name, found)
		}
	}
	if _, err := job(t, "nonsense\n7:cpu:/../x\n", map[string]string{}).Of("100"); err == nil {
		t.Error("without control groups there are some")
	}
}
