package local

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"slipway/backend/engine"
	enginesim "slipway/backend/engine/sim"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// programs makes the simulated sessions use the simulated devices that they were granted.
type programs struct {
	mu      sync.Mutex // guards what follows
	engine  engine.Monitor
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
func (p *programs) begin(e engine.Monitor, machine *sim.Machine, clock *pace.Clock) {
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

// noReader is the failure to put the reader of devices into a folder.
func noReader(dir string, err error) error {
	return session.WrapError(err, session.CodeDiskFull, "The reader of devices cannot be put into "+dir+".",
		"Make room there, or set SLIPWAY_HOME to another folder.")
}

// programsEvery is how often what runs is compared with what should. It is shorter than the time between two samples of
// the devices.
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
