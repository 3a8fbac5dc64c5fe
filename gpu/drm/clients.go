package drm

import (
	"cmp"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/gpu"
)

// client is one opening of a device, by its fdinfo. Several files and processes may share an opening and its id.
type client struct {
	clientKey
	engines engines
	memory  gpu.Bytes // resident in the memory of the device
}

type engines map[string]engine

// engine is one counter: of nanoseconds, or of cycles out of a total.
type engine struct {
	busy, total uint64 // total is 0 where busy is nanoseconds
	capacity    uint64 // how many such engines the device has; 0: one
}

type clientKey struct{ pdev, id string }

func (c clientKey) valid() bool { return c.pdev != "" && c.id != "" }

// regions are the beginnings of the names of memory of the device itself, as opposed to the system's.
var regions = []string{"vram", "local"}

// parseClient reads fdinfo as described in the kernel's drm-usage-stats. Unknown lines are ignored.
func parseClient(info []byte) client {
	c := client{engines: engines{}}
	var resident, total, memory gpu.Bytes
	for line := range strings.Lines(string(info)) {
		key, value, ok := strings.Cut(line, ":")
		key, ok2 := strings.CutPrefix(key, "drm-")
		if value = strings.TrimSpace(value); !ok || !ok2 || value == "" {
			continue
		}
		switch {
		case key == "pdev":
			c.pdev = value
		case key == "client-id":
			c.id = value
		case strings.HasPrefix(key, "engine-capacity-"):
			c.set(key[len("engine-capacity-"):], func(e *engine) { e.capacity = count(value) })
		case strings.HasPrefix(key, "engine-"):
			c.set(key[len("engine-"):], func(e *engine) { e.busy = count(value) })
		case strings.HasPrefix(key, "total-cycles-"):
			c.set(key[len("total-cycles-"):], func(e *engine) { e.total = count(value) })
		case strings.HasPrefix(key, "cycles-"):
			c.set(key[len("cycles-"):], func(e *engine) { e.busy = count(value) })
		case own(key, "resident-"):
			resident += amount(value)
		case own(key, "total-"):
			total += amount(value)
		case own(key, "memory-"):
			memory += amount(value)
		}
	}
	c.memory = cmp.Or(resident, memory, total)
	return c
}

func (c client) set(name string, change func(*engine)) {
	e := c.engines[name]
	change(&e)
	c.engines[name] = e
}

func own(key, kind string) bool {
	region, ok := strings.CutPrefix(key, kind)
	return ok && slices.ContainsFunc(regions, func(r string) bool { return strings.HasPrefix(region, r) })
}

// count reads the number at the beginning of a value such as "123 ns".
func count(value string) uint64 {
	number, _, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// amount reads "123 KiB", "123 MiB" or "123", which is bytes.
func amount(value string) gpu.Bytes {
	scale := gpu.Bytes(1)
	switch {
	case strings.HasSuffix(value, " KiB"):
		scale = gpu.KiB
	case strings.HasSuffix(value, " MiB"):
		scale = gpu.MiB
	}
	return gpu.Bytes(min(count(value), 1<<40)) * scale
}

// scan is what was seen of one process.
type scan struct {
	files []string      // its files that are devices
	at    time.Duration // on the Awake clock
}

type findings struct {
	clients []owned
	hidden  int // processes whose files this user may not see
	err     error
}

type owned struct {
	pid int
	client
}

// scan looks through the processes of the machine for those with a device open.
func (s *Source) scan(at gpu.Moment) (f findings) {
	entries, err := os.ReadDir(filepath.Join(s.root, "proc"))
	if err != nil {
		return findings{err: err}
	}
	seen := map[clientKey]bool{}
	alive := make(map[int]scan, len(s.scans))
	pids := make([]int, 0, len(entries))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		one, ok := s.look(pid, at.Awake)
		if !ok {
			f.hidden++
			continue
		}
		alive[pid] = one
		for _, file := range one.files {
			info, err := os.ReadFile(file)
			if err != nil {
				continue // closed meanwhile
			}
			c := parseClient(info)
			if c.valid() && !seen[c.clientKey] {
				seen[c.clientKey] = true
				f.clients = append(f.clients, owned{pid, c})
			}
		}
	}
	s.scans = alive
	return f
}

func (s *Source) look(pid int, now time.Duration) (found scan, ok bool) {
	if old, ok := s.scans[pid]; ok && len(old.files) == 0 && now-old.at < rescan {
		return old, true
	}
	dir := filepath.Join(s.root, "proc", strconv.Itoa(pid))
	files, err := os.ReadDir(filepath.Join(dir, "fd"))
	if os.IsPermission(err) {
		return scan{}, false
	}
	found.at = now
	for _, file := range files {
		target, err := os.Readlink(filepath.Join(dir, "fd", file.Name()))
		if err == nil && strings.HasPrefix(target, "/dev/dri/") {
			found.files = append(found.files, filepath.Join(dir, "fdinfo", file.Name()))
		}
	}
	return found, true
}

type use struct {
	pid    int
	memory gpu.Bytes
	hasMem bool // memory is known
	util   *int // in hundredths of a percent
}

const fullUtil = 10000

func (s *Source) uses(c card, f findings, elapsed time.Duration) []use {
	byPID := map[int]*use{}
	of := func(pid int) *use {
		if byPID[pid] == nil {
			byPID[pid] = &use{pid: pid}
		}
		return byPID[pid]
	}
	for _, o := range f.clients {
		if o.pdev != c.pci {
			continue
		}
		u := of(o.pid)
		u.memory, u.hasMem = u.memory+o.memory, true
		if elapsed <= 0 {
			continue
		}
		util := o.engines.since(s.clients[o.clientKey], elapsed)
		if u.util != nil {
			util += *u.util
		}
		u.util = new(min(util, fullUtil))
	}
	for pid, memory := range s.kfdMemory(c) {
		u := of(pid)
		// What runs in AMD's compute queues is not in the engine counters, so that none there does not mean none.
		if u.util != nil && *u.util == 0 {
			u.util = nil
		}
		u.memory, u.hasMem = max(u.memory, memory), true
	}
	all := make([]use, 0, len(byPID))
	for _, u := range byPID {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b use) int { return cmp.Compare(a.pid, b.pid) })
	return all
}

// since is how busy a client was, in hundredths of a percent of the device: that of its busiest engine, because engines
// work side by side. A new client counts from zero; a counter that shrank does not count.
func (e engines) since(before engines, elapsed time.Duration) int {
	most := 0
	for name, now := range e {
		then := before[name]
		if now.busy < then.busy || now.total < then.total {
			continue
		}
		busy, total := now.busy-then.busy, uint64(elapsed)
		if now.total > 0 {
			total = now.total - then.total
			if before == nil {
				continue // cycles of all time say nothing about this period
			}
		}
		total *= max(1, now.capacity)
		most = max(most, part(busy, total))
	}
	return most
}

func part(busy, total uint64) int {
	if total == 0 || busy >= total {
		if busy == 0 {
			return 0
		}
		return fullUtil
	}
	high, low := bits.Mul64(busy, fullUtil)
	quotient, _ := bits.Div64(high, low, total)
	return int(quotient)
}
