package stats

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// sampler reads statistics of processes' cgroups from the kernel's files, which
// takes microseconds where the daemon's own statistics take a second.
type sampler struct {
	proc string // where procfs is mounted
	root string // where cgroup hierarchies are mounted
}

// cgroup is where the counters of one container are. With version 2 all
// directories are the same.
type cgroup struct {
	version                  int
	cpu, memory, pids, block string
}

// find returns the cgroup of a process from /proc/<pid>/cgroup. A machine that
// mounts version 1 for some controllers keeps the others' counters there.
func (s sampler) find(pid int) (cgroup, error) {
	data, err := os.ReadFile(filepath.Join(s.proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return cgroup{}, err
	}
	paths := controllerPaths(data)
	if _, ok := paths["memory"]; !ok {
		unified, ok := paths[""]
		if !ok {
			return cgroup{}, fmt.Errorf("process %d has no memory cgroup", pid)
		}
		dir := filepath.Join(s.root, unified)
		return cgroup{version: 2, cpu: dir, memory: dir, pids: dir, block: dir}, nil
	}
	dir := func(controller string) string {
		below, ok := paths[controller]
		if !ok {
			return ""
		}
		return filepath.Join(s.root, controller, below)
	}
	return cgroup{version: 1, cpu: dir("cpuacct"), memory: dir("memory"), pids: dir("pids"), block: dir("blkio")}, nil
}

// controllerPaths maps each controller to its path; "" is version 2's.
func controllerPaths(data []byte) map[string]string {
	paths := map[string]string{}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		below := path.Clean("/" + parts[2])
		for _, controller := range strings.Split(parts[1], ",") {
			paths[controller] = below
		}
	}
	return paths
}
