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

// programs lets simulated sessions use the simulated devices that they were granted.
type programs struct {
	mu      sync.Mutex // guards the fields below
	engine  engine.Monitor
	machine *sim.Machine
	clock   *pace.Clock
	running map[string]bool // by container: it has a program that starts by itself
	started map[string]int  // by container: how many programs were started in it
}

var _ enginesim.Devices = (*programs)(nil)

func newPrograms() *programs {
	return &programs{running: map[string]bool{}, started: map[string]int{}}
}

// begin sets the machine. Programs that were started before use no devices.
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
		memory = func(g gpu.Grant) gpu.Bytes { return g.Memory / 40 } // the first program uses most of it
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

// programsEvery is how often the programs are updated: more often than the devices are sampled.
const programsEvery = time.Second

// run updates the programs until ctx ends.
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

// compare starts and ends programs so that each running container has one.
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
	for _, state := range states { // always in the same order
		if grants := should[state.ID]; grants != nil && !p.running[state.ID] && p.started[state.ID] == 0 {
			p.machine.RunGranted(state.ID, kindOf(state.Labels[engine.LabelSession]), grants)
			p.running[state.ID] = true
		}
	}
}

// grantsOf returns the devices in the labels of a container.
func grantsOf(state engine.State) []gpu.Grant {
	var grants session.Grants
	if json.Unmarshal([]byte(state.Labels[engine.LabelGrants]), &grants) != nil {
		return nil
	}
	return grants.GPUs
}

// kindOf returns the kind of programs of a session, which follows from its id.
func kindOf(id string) sim.Kind {
	kinds := []sim.Kind{sim.Training, sim.Notebook, sim.Serving}
	sum := 0
	for _, b := range []byte(id) {
		sum += int(b)
	}
	return kinds[sum%len(kinds)]
}
