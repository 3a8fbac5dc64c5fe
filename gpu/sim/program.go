package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"slipway/gpu"
)

// Kind is how a program uses a device.
type Kind string

// The kinds. Training loads for some seconds, works nearly all the time and pauses every minute or so. Serving works in
// bursts whose rate wanders. Notebook works for a while and then waits for its person. Holding takes memory and does
// nothing. Drawing is a desktop.
const (
	Training Kind = "training"
	Serving  Kind = "serving"
	Notebook Kind = "notebook"
	Holding  Kind = "holding"
	Drawing  Kind = "drawing"
)

// Program is something to run on a device.
type Program struct {
	Container string // id of 64 hexadecimal digits; empty: outside of any
	Device    gpu.UUID
	Instance  gpu.UUID // set to run on a MIG instance
	Name      string   // empty: python3
	User      string   // empty: work
	Kind      Kind     // empty: Training
	Memory    gpu.Bytes
	For       time.Duration // how long it runs; 0: until it is ended
}

// Place is where a program runs.
type Place struct {
	Container string
	Device    gpu.UUID
}

// Truth is what programs of a place really did.
type Truth struct {
	Busy   time.Duration
	Memory gpu.ByteTime
	Peak   gpu.Bytes // of one program
}

type program struct {
	Program
	pid    int
	start  time.Duration // on the Boot clock
	began  time.Duration // on the Awake clock
	until  time.Duration // on the Awake clock; 0: until it is ended
	rng    *rand.Rand
	mood   float64       // level that wanders, or 1 while a burst lasts
	change time.Duration // when the mood changes next
	wish   float64       // part of this step that it would work
	hunger gpu.Bytes     // memory that it would take in this step
	memory gpu.Bytes
	busy   time.Duration // since the last sample
	level  int           // as in card
	truth  *Truth        // of its place
}

const contextMemory = 300 * gpu.MiB

const loading = 8 * time.Second

// Run starts a program now and returns the number of its process.
func (m *Machine) Run(p Program) (pid int) {
	m.change(func() { pid = m.start(p, m.now.Awake).pid })
	return pid
}

// RunGranted starts one program in container on each grant, which uses nine tenths of its memory.
func (m *Machine) RunGranted(container string, kind Kind, grants []gpu.Grant) []int {
	var pids []int
	for _, g := range grants {
		pids = append(pids, m.Run(Program{Container: container, Device: g.Device, Instance: g.Instance, Kind: kind,
			Memory: g.Memory / 10 * 9}))
	}
	return pids
}

// End ends the program of a process, if there is one.
func (m *Machine) End(pid int) { m.end(func(p *program) bool { return p.pid == pid }) }

// EndContainer ends every program of a container.
func (m *Machine) EndContainer(container string) {
	m.end(func(p *program) bool { return container != "" && p.Container == container })
}

func (m *Machine) end(which func(*program) bool) {
	m.change(func() { m.running = slices.DeleteFunc(m.running, which) })
}

// Truth returns what really happened, by place, if the configuration asks for it.
func (m *Machine) Truth() map[Place]Truth {
	m.mu.Lock()
	defer m.mu.Unlock()
	truth := make(map[Place]Truth, len(m.truth))
	for place, t := range m.truth {
		truth[place] = *t
	}
	return truth
}

func (m *Machine) start(p Program, at time.Duration) *program {
	p.Name, p.User, p.Kind = cmp.Or(p.Name, "python3"), cmp.Or(p.User, "work"), cmp.Or(p.Kind, Training)
	m.nextPID += 1 + m.nextPID*7%13
	r := &program{
		Program: p, pid: m.nextPID, start: m.now.Boot + at - m.now.Awake, began: at,
		rng: rand.New(rand.NewPCG(m.config.Seed, uint64(m.nextPID))),
	}
	if p.For > 0 {
		r.until = r.began + p.For
	}
	r.truth = &Truth{}
	if place := (Place{strings.Clone(p.Container), p.Device}); m.config.Truth {
		if m.truth[place] == nil {
			m.truth[place] = r.truth
		}
		r.truth = m.truth[place]
	}
	m.running = append(m.running, r)
	return r
}

func (p *program) want(at time.Duration) {
	age := at - p.began
	p.wish, p.hunger = 0, 0
	target := p.Memory
	if age < loading && p.Kind != Drawing {
		target = contextMemory + gpu.Bytes(float64(max(0, p.Memory-contextMemory))*age.Seconds()/loading.Seconds())
	}
	p.hunger = max(0, min(target, p.Memory)-p.memory)
	if age < loading && p.Kind != Drawing {
		p.wish = 0.04
		return
	}
	if at >= p.change {
		p.turn(at)
	}
	jitter := 0.02 * (p.rng.Float64() - 0.5)
	p.wish = min(1, max(0, p.mood+jitter))
	if p.mood == 0 {
		p.wish = 0
	}
}

func (p *program) turn(at time.Duration) {
	lasts := func(mean time.Duration) { p.change = at + step + time.Duration(p.rng.ExpFloat64()*float64(mean)) }
	switch p.Kind {
	case Training:
		if p.mood > 0.5 {
			p.mood = 0.15 // writes a checkpoint
			lasts(3 * time.Second)
		} else {
			p.mood = 0.94 + 0.04*p.rng.Float64()
			lasts(time.Minute)
		}
	case Serving:
		p.mood = min(0.8, max(0, p.mood+0.5*(p.rng.Float64()-0.45)))
		lasts(2 * time.Second)
	case Notebook:
		if p.mood > 0 {
			p.mood = 0
			lasts(70 * time.Second)
		} else {
			p.mood = 0.5 + 0.4*p.rng.Float64()
			lasts(15 * time.Second)
		}
	case Drawing:
		p.mood = 0.03 * p.rng.Float64()
		lasts(5 * time.Second)
	default:
		p.mood = 0
		lasts(time.Hour)
	}
}

func (p *program) sample(watched time.Duration) gpu.ProcessSample {
	p.level = share(p.busy, watched, p.level)
	return gpu.ProcessSample{
		PID: p.pid, Start: uint64(p.start / (10 * time.Millisecond)), Device: p.Device, Instance: p.Instance,
		Memory: new(p.memory), Util: new(p.level), Name: p.Name, User: p.User, Container: p.Container,
	}
}
