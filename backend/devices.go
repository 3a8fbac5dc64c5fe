package backend

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"slipway/backend/demo"
	"slipway/backend/engine"
	enginesim "slipway/backend/engine/sim"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/clock"
	"slipway/gpu/devices"
	"slipway/gpu/procs"
	"slipway/gpu/sim"
)

// libraryVariable names the environment variable that holds the path of NVIDIA's
// library, libnvidia-ml.so.1, where it is none of the usual ones.
const libraryVariable = "SLIPWAY_NVML_LIBRARY"

// openDevices opens what finds and measures the devices of this machine, which
// are simulated where its sessions are: those of pretended, or two where that is
// nil. On simulated ones p runs the programs. library is the path of NVIDIA's; "": a
// usual one.
func openDevices(l *Local, pretended *demo.Machine, p *programs, library string, log *slog.Logger) error {
	if l.Kind != EngineSim {
		machine, err := devices.Open(devices.Config{Dir: l.Dir, Library: library, Log: log.With("part", "devices")})
		if err != nil {
			return &session.Error{Code: "accelerator_open_no-space",
				Message: "The reader of devices cannot be put into " + l.Dir + ".",
				Hint:    "Make room there, or set SLIPWAY_HOME to another folder.", Err: err}
		}
		l.Devices, l.endProcess = machine, procs.NewTable(procs.Config{}).End
		l.parts = append(l.parts, machine)
		return nil
	}
	config := sim.Config{Seed: 1, Cards: []sim.Card{sim.Workstation, sim.Workstation}, Clock: clock.Now, Desktop: true}
	if pretended != nil {
		config.Seed, config.Cards, config.Desktop, config.Foreign = pretended.Seed, pretended.Cards, pretended.Desktop,
			pretended.Foreign
		config.Clock = l.Moment
	}
	machine := sim.Open(config)
	l.Devices, l.endProcess = machine, func(pid int, _ uint64) error {
		machine.End(pid)
		return nil
	}
	p.begin(l.Engine, machine, l.Clock)
	l.programs = p
	l.parts = append(l.parts, machine)
	return nil
}

// programs makes the simulated sessions use the simulated devices that they
// were granted. It implements [enginesim.Devices].
type programs struct {
	mu      sync.Mutex // guards what follows
	engine  engine.Engine
	machine *sim.Machine
	clock   *pace.Clock
	running map[string]bool // containers with a program that nobody started, by id
	started map[string]int  // how many programs were started in a container, by id
}

var _ enginesim.Devices = (*programs)(nil)

func newPrograms() *programs {
	return &programs{running: map[string]bool{}, started: map[string]int{}}
}

// begin gives the programs a machine. What was started before has none.
func (p *programs) begin(e engine.Engine, machine *sim.Machine, clock *pace.Clock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engine, p.machine, p.clock = e, machine, clock
}

func (p *programs) Look(ctx context.Context) ([]gpu.Device, gpu.Sample, error) {
	p.mu.Lock()
	machine := p.machine
	p.mu.Unlock()
	if machine == nil {
		return nil, gpu.Sample{}, nil
	}
	devices, err := machine.Inventory(ctx)
	if err != nil {
		return nil, gpu.Sample{}, err
	}
	sample, err := machine.Look(ctx)
	return devices, sample, err
}

func (p *programs) Compute(container, name string, grants []gpu.Grant) (pids []int, end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	machine := p.machine
	if machine == nil {
		return nil, func() {}
	}
	if p.running[container] {
		machine.EndContainer(container)
		delete(p.running, container)
	}
	memory := func(g gpu.Grant) gpu.Bytes { return g.Memory / 10 * 9 }
	if p.started[container]++; p.started[container] > 1 {
		memory = func(g gpu.Grant) gpu.Bytes { return g.Memory / 40 } // what the first one left
	}
	for _, g := range grants {
		pids = append(pids, machine.Run(sim.Program{Container: container, Device: g.Device, Instance: g.Instance,
			Name: name, Kind: sim.Training, Memory: memory(g)}))
	}
	return pids, sync.OnceFunc(func() {
		for _, pid := range pids {
			machine.End(pid)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.started[container]--; p.started[container] == 0 {
			delete(p.started, container)
		}
	})
}

// programsEvery is how often what runs is compared with what should. It is
// shorter than the time between two samples of the devices.
const programsEvery = time.Second

// run follows the containers until ctx ends.
func (p *programs) run(ctx context.Context) {
	for {
		if states, err := p.engine.List(ctx); err == nil {
			p.compare(states)
		}
		timer := p.clock.Often(programsEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// compare starts and ends programs, so that those run whose containers do.
func (p *programs) compare(states []engine.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	should := map[string][]gpu.Grant{}
	for _, state := range states {
		if grants := grantsOf(state); state.Running && len(grants) > 0 {
			should[state.ID] = grants
		}
	}
	for id := range p.running {
		if should[id] == nil {
			p.machine.EndContainer(id)
			delete(p.running, id)
		}
	}
	for _, state := range states { // in an order that is always the same
		if grants := should[state.ID]; grants != nil && !p.running[state.ID] && p.started[state.ID] == 0 {
			p.machine.RunGranted(state.ID, kindOf(state.Labels[engine.LabelSession]), grants)
			p.running[state.ID] = true
		}
	}
}

// grantsOf reads the devices that a container was granted from its labels.
func grantsOf(state engine.State) []gpu.Grant {
	var grants session.Grants
	if json.Unmarshal([]byte(state.Labels[engine.LabelGrants]), &grants) != nil {
		return nil
	}
	return grants.GPUs
}

// kindOf chooses what a session's programs are like: always the same for one.
func kindOf(id string) sim.Kind {
	kinds := []sim.Kind{sim.Training, sim.Notebook, sim.Serving}
	sum := 0
	for _, b := range []byte(id) {
		sum += int(b)
	}
	return kinds[sum%len(kinds)]
}
