package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/gpu"
)

// tree makes files with their content below a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestControlGroups(t *testing.T) {
	const job = "slurm/uid_1500/job_41/step_0/task_0"
	const table1 = "9:cpu,cpuacct:/" + job + "\n4:memory:/" + job + "\n2:pids:/" + job + "\n1:name=systemd:/x\n0::/\n"
	want := engine.Stats{CPU: 3 * time.Second, Memory: 60 * gpu.MiB, MemLimit: 256 * gpu.MiB, Pids: 4, OOMKills: 2}
	mib := func(n int) string { return fmt.Sprintf("%d\n", n<<20) }
	for name, g := range map[string]groups{
		"version 1": parseGroups(table1,
			tree(t, map[string]string{
				"memory/" + job + "/cgroup.procs":                    "",
				"memory/" + job + "/memory.usage_in_bytes":           mib(100),
				"memory/" + job + "/memory.stat":                     "cache 1\ntotal_inactive_file " + mib(40),
				"memory/" + job + "/memory.limit_in_bytes":           "9223372036854771712\n",
				"memory/slurm/uid_1500/job_41/memory.limit_in_bytes": mib(256),
				"memory/slurm/uid_1500/memory.limit_in_bytes":        mib(512),
				"memory/memory.limit_in_bytes":                       "9223372036854771712\n",
				"memory/" + job + "/memory.oom_control":              "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
				"cpuacct/" + job + "/cgroup.procs":                   "",
				"cpuacct/" + job + "/cpuacct.usage":                  "3000000000\n",
				"pids/" + job + "/cgroup.procs":                      "",
				"pids/" + job + "/pids.current":                      "4\n",
			})),
		"version 2": parseGroups("0::/"+job+"\n", tree(t, map[string]string{
			job + "/cgroup.controllers":        "memory pids\n",
			job + "/memory.current":            mib(100),
			job + "/memory.stat":               "anon 1\ninactive_file " + mib(40),
			job + "/memory.max":                "max\n",
			"slurm/uid_1500/job_41/memory.max": mib(256),
			job + "/memory.events":             "low 0\noom 3\noom_kill 2\n",
			job + "/cpu.stat":                  "usage_usec 3000000\nuser_usec 1\n",
			job + "/pids.current":              "4\n",
		})),
	} {
		got, err := g.stats(0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got.At = time.Time{}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if _, err := parseGroups("nonsense\n7:memory:/../x\n", t.TempDir()).stats(0); err == nil {
		t.Error("without control groups there is a sample")
	}
}
