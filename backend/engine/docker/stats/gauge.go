package stats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/gpu"
)

// gauge reads the counters of one container. It keeps the kernel's files open, because opening costs more than reading;
// files of a removed cgroup cannot be read any more. It is not safe for concurrent use.
type gauge struct {
	version int
	// Version 2: limit is memory.max and events memory.events; version 1: memory.limit_in_bytes and memory.oom_control.
	// pids and block may be nil.
	cpu, used, limit, memory, events, pids, block, network *os.File
}

// unlimited is above any real limit: version 1 writes the largest multiple of a page for "no limit".
const unlimited = math.MaxInt64 >> 1

func (s sampler) open(pid int, c cgroup) (*gauge, error) {
	g := &gauge{version: c.version}
	var errs []error
	must := func(into **os.File, dir, name string) {
		if dir == "" {
			errs = append(errs, fs.ErrNotExist)
			return
		}
		file, err := os.Open(filepath.Join(dir, name))
		*into = file
		errs = append(errs, err)
	}
	may := func(into **os.File, dir string, names ...string) {
		for _, name := range names {
			if file, err := os.Open(filepath.Join(dir, name)); dir != "" && err == nil && *into == nil {
				*into = file
			} else if err == nil {
				errs = append(errs, file.Close())
			}
		}
	}
	if c.version == 1 {
		must(&g.cpu, c.cpu, "cpuacct.usage")
		must(&g.used, c.memory, "memory.usage_in_bytes")
		must(&g.limit, c.memory, "memory.limit_in_bytes")
		must(&g.events, c.memory, "memory.oom_control")
		may(&g.block, c.block, "blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes")
	} else {
		must(&g.cpu, c.cpu, "cpu.stat")
		must(&g.used, c.memory, "memory.current")
		must(&g.limit, c.memory, "memory.max")
		must(&g.events, c.memory, "memory.events")
		may(&g.block, c.block, "io.stat")
	}
	must(&g.memory, c.memory, "memory.stat")
	may(&g.pids, c.pids, "pids.current")
	must(&g.network, filepath.Join(s.proc, strconv.Itoa(pid)), "net/dev")
	if err := errors.Join(errs...); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *gauge) close() {
	for _, file := range []*os.File{g.cpu, g.used, g.limit, g.memory, g.events, g.pids, g.block, g.network} {
		if file != nil {
			file.Close() //nolint:errcheck // it was only read
		}
	}
}

// page is a buffer for the kernel's files.
type page struct {
	room []byte
	err  error // the last one of a read
}

// read returns a whole file, valid until the next read, nil after an error.
func (p *page) read(file *os.File) []byte {
	if p.room == nil {
		p.room = make([]byte, 8<<10)
	}
	for n := 0; ; {
		more, err := file.ReadAt(p.room[n:], int64(n))
		n += more
		switch {
		case errors.Is(err, io.EOF):
			return p.room[:n]
		case err != nil:
			p.err = err
			return nil
		}
		p.room = append(p.room, make([]byte, len(p.room))...)
	}
}

func (g *gauge) sample(at time.Time, p *page) (engine.Stats, error) {
	stats := engine.Stats{At: at}
	p.err = nil
	inactive := "inactive_file"
	if g.version == 1 {
		inactive = "total_inactive_file"
		stats.CPU = time.Duration(p.number(g.cpu))
	} else {
		stats.CPU = time.Duration(p.value(g.cpu, "usage_usec")) * time.Microsecond
	}
	stats.Memory = workingSet(p.number(g.used), p.value(g.memory, inactive))
	stats.MemLimit, stats.OOMKills = limitOf(p.number(g.limit)), int(p.value(g.events, "oom_kill"))
	stats.NetRx, stats.NetTx = networkBytes(p.read(g.network))
	if p.err != nil {
		return engine.Stats{}, p.err
	}
	if g.pids != nil { // not every kernel has what follows
		stats.Pids = int(p.number(g.pids))
	}
	if g.block != nil && g.version == 1 {
		stats.DiskRead, stats.DiskWrite = blockBytes(p.read(g.block))
	} else if g.block != nil {
		stats.DiskRead, stats.DiskWrite = ioBytes(p.read(g.block))
	}
	return stats, nil
}

// workingSet is the memory in use without the file cache that would be freed first.
func workingSet(used, inactive int64) gpu.Bytes { return gpu.Bytes(max(used-inactive, 0)) }

// limitOf is a memory limit, 0 for none.
func limitOf(limit int64) gpu.Bytes {
	if limit >= unlimited {
		return 0
	}
	return gpu.Bytes(limit)
}

// number reads a file with one number, or "max".
func (p *page) number(file *os.File) int64 {
	data := bytes.TrimSpace(p.read(file))
	if string(data) == "max" {
		return math.MaxInt64
	}
	n, ok := decimal(data)
	if !ok && p.err == nil {
		p.err = fmt.Errorf("%s holds no number", file.Name())
	}
	return n
}

// value reads the number after a name at the start of a line; 0 if there is none.
func (p *page) value(file *os.File, name string) int64 {
	for line := range bytes.Lines(p.read(file)) {
		if len(line) > len(name) && line[len(name)] == ' ' && string(line[:len(name)]) == name {
			n, _ := decimal(bytes.TrimSpace(line[len(name)+1:]))
			return n
		}
	}
	return 0
}

// decimal reads a number that is not negative, at most MaxInt64.
func decimal(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > (math.MaxInt64-9)/10 {
			return math.MaxInt64, true
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(text) > 0
}

// ioBytes sums io.stat of version 2: "8:0 rbytes=1 wbytes=2 …".
func ioBytes(data []byte) (read, written gpu.Bytes) {
	for field := range bytes.FieldsSeq(data) {
		key, value, _ := bytes.Cut(field, []byte{'='})
		n, _ := decimal(value)
		switch string(key) {
		case "rbytes":
			read += gpu.Bytes(n)
		case "wbytes":
			written += gpu.Bytes(n)
		}
	}
	return read, written
}

// blockBytes sums version 1: "8:0 Read 1" and "8:0 Write 2".
func blockBytes(data []byte) (read, written gpu.Bytes) {
	for line := range bytes.Lines(data) {
		device, rest, _ := bytes.Cut(line, []byte{' '})
		what, value, of := bytes.Cut(bytes.TrimSpace(rest), []byte{' '})
		n, ok := decimal(value)
		switch {
		case !of || !ok || len(device) == 0:
		case string(what) == "Read":
			read += gpu.Bytes(n)
		case string(what) == "Write":
			written += gpu.Bytes(n)
		}
	}
	return read, written
}

func networkBytes(data []byte) (received, sent gpu.Bytes) {
	for line := range bytes.Lines(data) {
		name, rest, ok := bytes.Cut(line, []byte{':'})
		if !ok || string(bytes.TrimSpace(name)) == "lo" {
			continue
		}
		at := 0
		for field := range bytes.FieldsSeq(rest) {
			switch n, _ := decimal(field); at {
			case 0:
				received += gpu.Bytes(n)
			case 8:
				sent += gpu.Bytes(n)
			}
			at++
		}
	}
	return received, sent
}

// sampler reads the kernel's files, which takes microseconds; the daemon's own statistics take a second.
type sampler struct {
	proc string // where procfs is mounted
	root string // where cgroup hierarchies are mounted
}

// cgroup has the directories of one container's counters. With version 2 they are the same.
type cgroup struct {
	version                  int
	cpu, memory, pids, block string
}

// find reads /proc/<pid>/cgroup. A machine that mounts version 1 for some controllers has the memory counters there.
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

// controllerPaths maps each controller to its path; "" is version 2.
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
