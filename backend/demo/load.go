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

// Load measures what the containers of a simulated machine use. The computer that simulates it has nothing to do with
// it.
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
		var ids []string
		for _, state := range states {
			ids = append(ids, state.ID)
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
