package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"slipway/backend/engine"
	"slipway/gpu"
)

// Gauge reads the counters of one container. It keeps the kernel's files open, because opening costs more than reading;
// files of a removed cgroup cannot be read any more. It is not safe for concurrent use.
type Gauge struct {
	version int
	// Version 2: limits are memory.max and events memory.events; version 1: memory.limit_in_bytes and
	// memory.oom_control. cpu, pids, processes and block may be nil.
	cpu, used, memory, events, pids, processes, block, network *os.File

	limits []*os.File // of the group and those above it, into which Slurm puts its tasks
}

// unlimited is above any real limit: version 1 writes the largest multiple of a page for "no limit".
const unlimited = math.MaxInt64 >> 1

// opener opens files and keeps the errors.
type opener []error

func (o *opener) must(dir, name string) *os.File {
	file, err := os.Open(filepath.Join(dir, name))
	*o = append(*o, err)
	return file
}

// may returns the first of the files that there is, nil if there is none.
func (o *opener) may(dir string, names ...string) *os.File {
	for _, name := range names {
		if file, err := os.Open(filepath.Join(dir, name)); dir != "" && err == nil {
			return file
		}
	}
	return nil
}

// Open opens the counters of the groups. Of the network it has those of a process.
func (g Groups) Open(pid int) (*Gauge, error) {
	var o opener
	dir := g.dir("memory")
	to := &Gauge{version: g.version(), memory: o.must(dir, "memory.stat"), pids: o.may(g.dir("pids"), "pids.current"),
		network: o.must(filepath.Join(g.tree.Proc, strconv.Itoa(pid)), "net/dev")}
	if to.version == 1 {
		to.cpu = o.may(g.dir("cpuacct"), "cpuacct.usage")
		to.used = o.must(dir, "memory.usage_in_bytes")
		to.events = o.must(dir, "memory.oom_control")
		if g.paths["blkio"] == g.paths["memory"] { // else it counts what others read
			to.block = o.may(g.dir("blkio"), "blkio.throttle.io_service_bytes_recursive",
				"blkio.throttle.io_service_bytes")
		}
	} else {
		to.cpu = o.must(dir, "cpu.stat")
		to.used = o.must(dir, "memory.current")
		to.events = o.must(dir, "memory.events")
		to.block = o.may(dir, "io.stat")
	}
	if to.pids == nil { // Slurm makes no groups of version 1 that count them
		to.processes = o.may(dir, "cgroup.procs")
	}
	for _, at := range g.upward(dir) {
		if file := o.may(at, g.limit()); file != nil {
			to.limits = append(to.limits, file)
		}
	}
	if err := errors.Join(o...); err != nil {
		to.Close()
		return nil, err
	}
	return to, nil
}

func (g *Gauge) Close() {
	files := append(g.limits, g.cpu, g.used, g.memory, g.events, g.pids, g.processes, g.block, g.network)
	for _, file := range files {
		if file != nil {
			file.Close() //nolint:errcheck // it was only read
		}
	}
}

// Page is a buffer for the kernel's files. Samples that are taken one after the other share it.
type Page struct {
	room []byte
	err  error // the last one of a read
}

// read returns a whole file, valid until the next read, nil after an error.
func (p *Page) read(file *os.File) []byte {
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

// Sample reads all counters.
func (g *Gauge) Sample(at time.Time, p *Page) (engine.Stats, error) {
	stats := engine.Stats{At: at}
	p.err = nil
	inactive := "inactive_file"
	if g.version == 1 {
		inactive = "total_inactive_file"
		if g.cpu != nil {
			stats.CPU = time.Duration(p.number(g.cpu))
		}
	} else {
		stats.CPU = time.Duration(p.value(g.cpu, "usage_usec")) * time.Microsecond
	}
	// The working set is without the file cache that would be freed first.
	stats.Memory = gpu.Bytes(max(p.number(g.used)-p.value(g.memory, inactive), 0))
	stats.OOMKills = int(p.value(g.events, "oom_kill"))
	least := int64(unlimited)
	for _, file := range g.limits {
		least = min(least, p.number(file))
	}
	if least < unlimited {
		stats.MemLimit = gpu.Bytes(least)
	}
	stats.NetRx, stats.NetTx = networkBytes(p.read(g.network))
	if p.err != nil {
		return engine.Stats{}, p.err
	}
	if g.pids != nil { // not every kernel has what follows
		stats.Pids = int(p.number(g.pids))
	} else if g.processes != nil {
		stats.Pids = bytes.Count(p.read(g.processes), []byte{'\n'})
	}
	if g.block != nil && g.version == 1 {
		stats.DiskRead, stats.DiskWrite = blockBytes(p.read(g.block))
	} else if g.block != nil {
		stats.DiskRead, stats.DiskWrite = ioBytes(p.read(g.block))
	}
	return stats, nil
}

// number reads a file with one number, or "max".
func (p *Page) number(file *os.File) int64 {
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
func (p *Page) value(file *os.File, name string) int64 {
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
