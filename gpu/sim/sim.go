// Package sim simulates a machine with devices: programs load data, work, pause and end; devices fill up, draw power
// with a lag, heat and count energy; programs of other people come and go. Everything follows from the seed, what is
// run, and the time that is passed in, so a run can be repeated. For tests it keeps the truth beside what it reports.
package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"slipway/gpu"
)

// Config describes a simulated machine.
type Config struct {
	Seed    uint64
	Cards   []Card            // empty: one [Workstation]
	Clock   func() gpu.Moment // required; it may run faster than time
	Foreign bool              // programs of other people come and go
	Desktop bool              // a desktop draws on the first device
	Truth   bool              // what really happens is added up, see [Machine.Truth]; it grows with each container
}

// Card is a model of device.
type Card struct {
	Model     string
	Memory    gpu.Bytes
	Idle      gpu.MilliWatt
	Limit     gpu.MilliWatt
	Instances []string // MIG profiles; their memory is read from the name ("1g.10gb")
}

// Models of cards.
var (
	Workstation = Card{Model: "GeForce RTX 4090", Memory: 24 * gpu.GiB, Idle: 22_000, Limit: 450_000}
	Server      = Card{Model: "H100 80GB HBM3", Memory: 80 * gpu.GiB, Idle: 71_000, Limit: 700_000}
)

// Machine is a simulated machine with devices. Its methods are safe for concurrent use.
type Machine struct {
	config Config

	mu      sync.Mutex // guards what follows; Clock is called without it
	cards   []*card
	running []*program
	rng     *rand.Rand // for the programs of other people
	now     gpu.Moment
	sampled time.Duration // the Boot clock at the last sample
	driver  int           // how often the driver was loaded
	nextPID int
	arrival time.Duration // when the next foreign program comes, on the Awake clock
	broken  error
	closed  bool
	truth   map[Place]*Truth
	here    []*program // the programs on one card, while it is moved
}

var _ gpu.Source = (*Machine)(nil)

// step is the grain of the simulation.
const step = 100 * time.Millisecond

// Open starts a simulated machine at the time that the clock shows.
func Open(config Config) *Machine {
	if len(config.Cards) == 0 {
		config.Cards = []Card{Workstation}
	}
	now := config.Clock()
	m := &Machine{
		config: config, now: now, sampled: now.Boot, driver: 1, nextPID: 2000,
		rng: rand.New(rand.NewPCG(config.Seed, 0)), truth: map[Place]*Truth{},
	}
	for i, c := range config.Cards {
		m.cards = append(m.cards, newCard(config.Seed, i, c))
	}
	m.arrival = now.Awake + m.pause(4*time.Minute)
	if config.Desktop {
		m.start(Program{Device: m.cards[0].device.UUID, Name: "Xorg", User: "root", Kind: Drawing,
			Memory: 380 * gpu.MiB}, now.Awake)
	}
	return m
}

// Inventory lists the devices.
func (m *Machine) Inventory(context.Context) ([]gpu.Device, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return nil, err
	}
	var devices []gpu.Device
	for _, c := range m.cards {
		d := c.device
		d.Instances, d.Lost = slices.Clone(d.Instances), c.lost
		if d.Lost == nil || d.Lost.Kind != gpu.LossUnlisted {
			devices = append(devices, d)
		}
	}
	return devices, nil
}

// Sample moves the machine to the time of its clock, reads it and starts a new period.
func (m *Machine) Sample(context.Context) (gpu.Sample, error) { return m.read(true) }

// Look is [Machine.Sample] without a new period: the next sample averages as if Look was not called.
func (m *Machine) Look(context.Context) (gpu.Sample, error) { return m.read(false) }

func (m *Machine) read(begin bool) (s gpu.Sample, err error) {
	to := m.config.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(); err != nil {
		return gpu.Sample{}, err
	}
	m.advance(to)
	s = gpu.Sample{At: m.now, Since: m.sampled,
		Epoch: gpu.Epoch{Boot: m.now.BootID, Driver: fmt.Sprint("sim-", m.driver)}}
	for _, p := range m.running {
		s.Processes = append(s.Processes, p.sample(m.card(p.Device).watched))
		if begin {
			p.busy = 0
		}
	}
	for _, c := range m.cards {
		if c.lost != nil {
			s.Gone = append(s.Gone, gpu.LostDevice{UUID: c.device.UUID, Loss: *c.lost})
			continue
		}
		s.Devices = append(s.Devices, c.sample())
		if begin {
			c.busy, c.watched = 0, 0
		}
	}
	if begin {
		m.sampled = m.now.Boot
	}
	return s, nil
}

// card finds a device, or an empty one for a program on a device that the machine does not have.
func (m *Machine) card(uuid gpu.UUID) *card {
	for _, c := range m.cards {
		if c.device.UUID == uuid {
			return c
		}
	}
	return &card{}
}

// Close ends the machine. Sampling it again is an error.
func (m *Machine) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func (m *Machine) usable() error {
	if m.closed {
		return &gpu.Error{Code: gpu.CodeSourceUnavailable, Message: "The simulated devices are closed."}
	}
	return m.broken
}

// Break makes the machine fail with err until it is called with nil. Time and programs continue.
func (m *Machine) Break(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}

// Lose removes a device, with every program on it; nil brings it back.
func (m *Machine) Lose(device gpu.UUID, loss *gpu.Loss) {
	m.change(func() {
		m.card(device).lost = loss
		if loss != nil {
			m.running = slices.DeleteFunc(m.running, func(p *program) bool { return p.Device == device })
		}
	})
}

// Reload loads the driver again: every program on a device ends and counters of energy restart at 0.
func (m *Machine) Reload() {
	m.change(func() {
		m.driver++
		m.running = nil
		for _, c := range m.cards {
			c.energy = 0
		}
	})
}

func (m *Machine) change(do func()) {
	to := m.config.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(to)
	do()
}

func (m *Machine) advance(to gpu.Moment) {
	if to.BootID != m.now.BootID {
		m.now, m.sampled = to, to.Boot
		m.arrival = to.Awake + m.pause(4*time.Minute)
		m.running = nil
		for _, c := range m.cards {
			c.energy, c.watched = 0, 0
		}
		return
	}
	for at := m.now.Awake.Truncate(step) + step; at <= to.Awake; at += step {
		m.comeAndGo(at)
		for _, c := range m.cards {
			m.step(c, at)
		}
	}
	if to.Boot > m.now.Boot {
		m.now = to
	}
}

func (m *Machine) pause(mean time.Duration) time.Duration {
	return time.Duration(m.rng.ExpFloat64() * float64(mean)).Truncate(step)
}

func (m *Machine) comeAndGo(at time.Duration) {
	m.running = slices.DeleteFunc(m.running, func(p *program) bool { return p.until > 0 && at >= p.until })
	if !m.config.Foreign || at < m.arrival {
		return
	}
	m.arrival = at + m.pause(6*time.Minute)
	c := m.cards[m.rng.IntN(len(m.cards))]
	name := []string{"python3", "blender", "ollama", "ffmpeg"}[m.rng.IntN(4)]
	p := m.start(Program{
		Device: c.device.UUID, Name: name, User: "another", Kind: []Kind{Training, Serving, Notebook}[m.rng.IntN(3)],
		Memory: gpu.Bytes(1+m.rng.IntN(6)) * c.device.Memory / 24,
	}, at)
	p.until = at + time.Minute + m.pause(4*time.Minute)
}
