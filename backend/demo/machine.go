package demo

import (
	"context"
	"sync"
	"time"

	"slipway/backend/agent/meter"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// Machine describes a simulated machine.
type Machine struct {
	Name    string // of its agent
	Host    string // host name
	CPUs    int
	Memory  gpu.Bytes
	Cards   []sim.Card
	Desktop bool   // a desktop uses the first device
	Foreign bool   // programs of other people use devices
	Fresh   bool   // it has no past
	Seed    uint64 // of everything random
	Time    Time   // zero: real time
}

// LabAgent is the name of the agent on the lab server.
const LabAgent = "lab"

// Workstation returns the presenter's own computer, with two consumer devices.
func Workstation(o Options) Machine {
	return Machine{
		Name: "workstation", Host: "workstation", CPUs: 16, Memory: 64 * gpu.GiB, Desktop: true, Seed: o.Seed,
		Cards: []sim.Card{sim.Workstation, sim.Workstation},
	}
}

// Lab returns a server with eight data-centre devices that many people use.
func Lab(o Options) Machine {
	m := Machine{Name: LabAgent, Host: "lab-dgx-1", CPUs: 128, Memory: 1024 * gpu.GiB, Foreign: true,
		Seed: o.Seed + 1<<32} // other random numbers than on the workstation
	for range 8 {
		m.Cards = append(m.Cards, sim.Server)
	}
	return m
}

// What a simulated machine itself uses.
const (
	ownMemory = 3 * gpu.GiB
	ownCPU    = 0.2 // busy CPUs
	ownDisk   = 2048 * gpu.GiB
	freeDisk  = 1229 * gpu.GiB
	loadTime  = 5 * time.Second
)

// Load measures what the containers of a simulated machine use.
func Load(e engine.Engine, clock *pace.Clock) func(string) (meter.Load, error) {
	var mu sync.Mutex // guards before and at
	var before map[string]time.Duration
	var at time.Time
	return func(string) (load meter.Load, err error) {
		ctx, cancel := context.WithTimeout(context.Background(), loadTime)
		defer cancel()
		load.CPU, load.Memory, load.DiskTotal, load.DiskFree = ownCPU, ownMemory, ownDisk, freeDisk
		states, err := e.List(ctx)
		if err != nil {
			return load, err
		}
		ids := make([]string, len(states))
		for i, state := range states {
			ids[i] = state.ID
		}
		stats, err := e.Stats(ctx, ids)
		if err != nil {
			return load, err
		}
		mu.Lock()
		defer mu.Unlock()
		now, cpu := clock.Now(), map[string]time.Duration{}
		for id, one := range stats {
			load.Memory += one.Memory
			cpu[id] = one.CPU
			if used, known := before[id]; known && now.After(at) {
				load.CPU += max(0, (one.CPU-used).Seconds()/now.Sub(at).Seconds())
			}
		}
		before, at = cpu, now
		return load, nil
	}
}
