package sim

import (
	"context"
	"math"

	"slipway/backend/engine"
	"slipway/gpu"
)

// guestMemory is the memory of a container's guest.
const guestMemory = 9 * gpu.MiB

// Stats implements [engine.Monitor]. CPU and memory follow the process table; network and disk are made up.
func (s *containers) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	now := s.config.Clock.Now()
	samples := map[string]engine.Stats{}
	for _, id := range ids {
		s.mu.Lock()
		c, ok := s.byID[id]
		if !ok || !c.State.Running || c.life == nil {
			s.mu.Unlock()
			continue
		}
		limit, kills, world := c.Spec.Memory, c.OOMKills, c.life.world
		s.mu.Unlock()
		use := world.Usage()
		up := now.Sub(world.Started).Seconds()
		// Caches and heaps vary by a few percent.
		sway := 1 + 0.04*math.Sin(up/7) + 0.02*math.Sin(up/1.9)
		busy := use.CPU.Seconds()
		samples[id] = engine.Stats{
			At: now, CPU: use.CPU, MemLimit: limit, Pids: use.Processes + 1, OOMKills: kills,
			Memory: min(limit, gpu.Bytes(float64(guestMemory+gpu.Bytes(use.Memory))*sway)),
			NetRx:  gpu.Bytes(900 + 40*up), NetTx: gpu.Bytes(600 + 25*up),
			DiskRead:  gpu.Bytes(2*float64(gpu.MiB) + busy*64*1024),
			DiskWrite: gpu.Bytes(64*1024 + busy*256*1024),
		}
	}
	return samples, nil
}
