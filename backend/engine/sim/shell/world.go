// Package shell is the inside of a simulated session: a confined file system, common utilities, and a shell, with or
// without a terminal. It runs no program of the host.
package shell

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/pace"
)

// World is what the processes of one simulated container share.
type World struct {
	FS          *FS
	Hostname    string
	User        string
	CPUs        int
	Memory      int64 // limit in bytes
	GPUs        GPUs  // nil: none
	Started     time.Time
	Clock       *pace.Clock             // nil: the one on the wall
	Servers     map[string]http.Handler // programs of the image that serve pages; nil: missing in this build
	OutOfMemory func()                  // called, without a lock, when a process exceeded Memory

	mu    sync.Mutex // guards what follows
	next  int
	procs map[int]*Process
	ports map[int]*listener
	spent time.Duration // CPU time of processes that have ended
}

// Process is one line of the process table.
type Process struct {
	PID     int
	Command string
	TTY     string
	Started time.Time
	load    float64 // busy CPUs
	memory  int64
	onGPUs  []int // numbers that its programs on devices have on the machine; guarded by World.mu
	kill    func()
}

// idleLoad is the share of a CPU that every process uses.
const idleLoad = 0.002

// baseMemory is the memory of an idle process.
const baseMemory = 3 << 20

// guestPID is the number of the first process, the guest.
const guestPID = 1

// Begin adds a process to the table; kill ends it.
func (w *World) Begin(command, tty string, kill func()) *Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.procs == nil {
		w.procs = map[int]*Process{}
		w.next = guestPID + 6
	}
	w.next++
	p := &Process{PID: w.next, Command: command, TTY: tty, Started: w.now(), memory: baseMemory, kill: kill}
	w.procs[p.PID] = p
	return p
}

func (w *World) End(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.procs[p.PID]; ok {
		delete(w.procs, p.PID)
		w.spent += p.cpu(w.now())
	}
}

func (p *Process) cpu(now time.Time) time.Duration {
	return time.Duration(float64(now.Sub(p.Started)) * (p.load + idleLoad))
}

// Load sets the load of p in CPUs and bytes. It returns false and calls OutOfMemory if the container's limit is lower.
func (w *World) Load(p *Process, load float64, memory int64) bool {
	w.mu.Lock()
	held := int64(0)
	for _, other := range w.procs {
		if other != p {
			held += other.memory
		}
	}
	fits := held+baseMemory+memory <= w.Memory
	if fits {
		p.load, p.memory = load, baseMemory+memory
	}
	w.mu.Unlock()
	if !fits && w.OutOfMemory != nil {
		w.OutOfMemory()
	}
	return fits
}

func (w *World) now() time.Time { return w.Clock.Now() }

// Kill ends a process; it reports whether there was one.
func (w *World) Kill(pid int) bool {
	w.mu.Lock()
	p, ok := w.procs[pid]
	w.mu.Unlock()
	if ok {
		p.kill()
	}
	return ok
}

// Processes returns the process table, sorted by PID.
func (w *World) Processes() []Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	table := []Process{{PID: guestPID, Command: "/.slipway/guest init", TTY: "?", Started: w.Started,
		memory: baseMemory}}
	for _, p := range w.procs {
		table = append(table, *p)
	}
	slices.SortFunc(table, func(a, b Process) int { return a.PID - b.PID })
	return table
}

// Usage is the resource use of a world.
type Usage struct {
	CPU       time.Duration // CPU time since the start
	Memory    int64         // bytes
	Processes int
}

func (w *World) Usage() Usage {
	now := w.now()
	w.mu.Lock()
	spent := w.spent
	w.mu.Unlock()
	u := Usage{CPU: spent}
	for _, p := range w.Processes() {
		u.Memory += p.memory
		u.CPU += p.cpu(now)
		u.Processes++
	}
	u.Memory = min(u.Memory, w.Memory)
	return u
}

func baseName(program string) string { return program[strings.LastIndex(program, "/")+1:] }
