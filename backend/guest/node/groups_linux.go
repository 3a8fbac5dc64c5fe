package node

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/gpu"
)

// groupRoot is where control groups are mounted on every node of Slurm.
const groupRoot = "/sys/fs/cgroup"

// groups are a process's control groups.
type groups struct {
	root string            // where they are mounted
	dirs map[string]string // by controller, or all as "" with version 2
}

// controllers are those of version 1 that the runner reads or shows to the container.
var controllers = []string{"memory", "cpu", "cpuacct", "cpuset", "pids", "blkio"}

// ownGroups finds the control groups of this process, without those that cannot be read.
func ownGroups() groups {
	table, err := nodeFile("/proc/self/cgroup")
	if err != nil {
		return groups{}
	}
	return parseGroups(string(table), groupRoot)
}

// parseGroups parses /proc/PID/cgroup, see cgroups(7).
func parseGroups(table, root string) groups {
	found := groups{root, map[string]string{}}
	for line := range strings.Lines(table) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if fields[0] == "0" {
			found.put("", filepath.Join(root, fields[2]), "cgroup.controllers")
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			for _, used := range controllers {
				if controller == used {
					found.put(controller, filepath.Join(root, controller, fields[2]), "cgroup.procs")
				}
			}
		}
	}
	return found
}

// put adds a folder if it has a file that all such folders have.
func (g groups) put(controller, dir, file string) {
	if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
		g.dirs[controller] = dir
	}
}

// groupFolders returns the folders of the job's control groups by where a container shows them.
func groupFolders() map[string]string {
	folders := map[string]string{}
	for controller, dir := range ownGroups().dirs {
		if at := filepath.Join(groupRoot, controller); at != dir {
			folders[at] = dir
		}
	}
	return folders
}

// oomKills returns how many processes of the job's task the kernel has killed for memory.
func (g groups) oomKills() int {
	if dir, ok := g.dirs["memory"]; ok {
		return int(number(dir, "memory.oom_control", "oom_kill"))
	}
	return int(number(g.dirs[""], "memory.events", "oom_kill"))
}

// stats returns a sample of the job's task. Of the network it has that of the given process.
func (g groups) stats(pid int) (engine.Stats, error) {
	s := engine.Stats{At: time.Now(), OOMKills: g.oomKills()}
	s.NetRx, s.NetTx = networkBytes(fmt.Sprintf("/proc/%d/net/dev", pid))
	switch dir, all := g.dirs["memory"], g.dirs[""]; {
	case dir != "":
		used, cached := number(dir, "memory.usage_in_bytes", ""), number(dir, "memory.stat", "total_inactive_file")
		s.Memory = gpu.Bytes(max(0, used-cached))
		s.MemLimit = leastLimit(dir, filepath.Join(g.root, "memory"), "memory.limit_in_bytes")
		s.CPU = time.Duration(number(g.dirs["cpuacct"], "cpuacct.usage", ""))
		s.Pids = int(number(g.dirs["pids"], "pids.current", ""))
	case all != "":
		used, cached := number(all, "memory.current", ""), number(all, "memory.stat", "inactive_file")
		s.Memory = gpu.Bytes(max(0, used-cached))
		s.MemLimit = leastLimit(all, g.root, "memory.max")
		s.CPU = time.Duration(number(all, "cpu.stat", "usage_usec")) * time.Microsecond
		s.Pids = int(number(all, "pids.current", ""))
	default:
		return engine.Stats{}, errors.New("this node has no control groups")
	}
	if s.Pids == 0 { // Slurm makes no groups of version 1 that count them
		s.Pids = processes(cmp.Or(g.dirs["memory"], g.dirs[""]))
	}
	return s, nil
}

// processes is the number of processes in a group.
func processes(dir string) int {
	data, err := nodeFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return 0
	}
	return bytes.Count(data, []byte{'\n'})
}

// leastLimit is the smallest limit of a group and those above it, below which Slurm puts its tasks; 0: none.
func leastLimit(dir, root, file string) gpu.Bytes {
	least := int64(math.MaxInt64)
	for ; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		if limit := number(dir, file, ""); limit > 0 {
			least = min(least, limit)
		}
		if dir == root {
			break
		}
	}
	const unlimited = math.MaxInt64 >> 1 // version 1 writes the largest multiple of a page
	if least > unlimited {
		return 0
	}
	return gpu.Bytes(least)
}

// number returns the number in a file of the kernel, after a word if one is given; 0 if there is none.
func number(dir, file, word string) int64 {
	if dir == "" {
		return 0
	}
	data, err := nodeFile(filepath.Join(dir, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if word == "" && len(fields) == 1 || word != "" && len(fields) == 2 && fields[0] == word {
			value, _ := strconv.ParseInt(fields[len(fields)-1], 10, 64) // "max" is no limit
			return value
		}
	}
	return 0
}

// networkBytes returns what was received and sent on all interfaces except the loopback, see proc(5).
func networkBytes(table string) (received, sent gpu.Bytes) {
	data, err := nodeFile(table)
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(data)) {
		name, counters, ok := strings.Cut(line, ":")
		fields := strings.Fields(counters)
		if !ok || len(fields) < 9 || strings.TrimSpace(name) == "lo" {
			continue
		}
		in, _ := strconv.ParseInt(fields[0], 10, 64) // 0 if the kernel writes something else
		out, _ := strconv.ParseInt(fields[8], 10, 64)
		received, sent = received+gpu.Bytes(in), sent+gpu.Bytes(out)
	}
	return received, sent
}
