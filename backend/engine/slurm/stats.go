package slurm

import (
	"context"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
)

// statsTime is how long a node may take to measure a kernel, and statsMost how many are asked at a time.
const (
	statsTime = 2 * time.Second
	statsMost = 32
)

// Stats asks the nodes of running containers, each for the use of its own control group.
func (e *Engine) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, statsTime)
	defer cancel()
	var (
		mu      sync.Mutex // guards samples
		samples = map[string]engine.Stats{}
		all     sync.WaitGroup
		turns   = make(chan struct{}, statsMost)
	)
	v := e.jobs.view()
	for _, id := range ids {
		r, k, err := e.runs.find(id)
		if err != nil {
			continue
		}
		if state, err := e.stateOf(limited, r, k, v); err != nil || !state.Running {
			continue
		}
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if sample, err := node.ReadStats(limited, r.dir, k.Kernel); err == nil {
				mu.Lock()
				defer mu.Unlock()
				samples[id] = sample
			}
		})
	}
	all.Wait()
	return samples, ended(ctx)
}
