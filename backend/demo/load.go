package demo

import (
	"context"
	"sync"
	"time"

	"slipway/backend/agent/meter"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/gpu"
)

// What a simulated machine needs for itself.
const (
	ownMemory = 3 * gpu.GiB
	ownCPU    = 0.2 // busy CPUs
	ownDisk   = 2048 * gpu.GiB
	freeDisk  = 1229 * gpu.GiB
	loadTime  = 5 * time.Second
)

// Load measures what the containers of a simulated machine use. The computer
// that simulates it has nothing to do with it.
func Load(e engine.Monitor, clock *pace.Clock) func(string) (meter.Load, error) {
	m := &loadMeter{engine: e, clock: clock}
	return m.load
}

type loadMeter struct {
	engine engine.Monitor
	clock  *pace.Clock

	mu  sync.Mutex // guards cpu and at
	cpu map[string]time.Duration
	at  time.Time
}

func (m *loadMeter) load(string) (meter.Load, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	load := meter.Load{}
	load.CPU, load.Memory, load.DiskTotal, load.DiskFree = ownCPU, ownMemory, ownDisk, freeDisk
	states, err := m.engine.List(ctx)
	if err != nil {
		return load, err
	}
	ids := make([]string, len(states))
	for i, state := range states {
		ids[i] = state.ID
	}
	stats, err := m.engine.Stats(ctx, ids)
	if err != nil {
		return load, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, cpu := m.clock.Now(), map[string]time.Duration{}
	for id, one := range stats {
		load.Memory += one.Memory
		cpu[id] = one.CPU
		if before, known := m.cpu[id]; known && now.After(m.at) {
			load.CPU += max(0, (one.CPU-before).Seconds()/now.Sub(m.at).Seconds())
		}
	}
	m.cpu, m.at = cpu, now
	return load, nil
}
