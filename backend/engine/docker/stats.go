package docker

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/gpu"
)

// Stats implements [engine.Containers]. It reads the kernel's own files where
// the daemon runs on this machine, and asks the daemon otherwise.
func (e *Engine) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	facts, err := e.daemon.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, daemon.Failure(ctx, "stats", err)
	}
	samples := make(map[string]engine.Stats, len(ids))
	unknown := e.gauges.sample(ids, samples)
	var mu sync.Mutex // guards samples and failed
	var failed error
	daemon.Each(len(unknown), func(i int) {
		id := unknown[i]
		sample, ok, err := e.sampleAsked(ctx, id, facts.Here)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && !daemon.IsGone(err) {
			failed = err
		} else if ok && err == nil {
			samples[id] = sample
		}
	})
	if failed != nil {
		return nil, failed
	}
	return samples, nil
}

// sampleAsked asks the daemon for a container's process, then samples it; ok is
// false for one that does not run.
func (e *Engine) sampleAsked(ctx context.Context, id string, here bool) (engine.Stats, bool, error) {
	short, cancel := e.daemon.Brief(ctx)
	defer cancel()
	c, err := e.daemon.API.ContainerInspect(short, id)
	if err != nil {
		return engine.Stats{}, false, daemon.ContainerFailure(short, "stats", id, err)
	}
	if c.State == nil || !c.State.Running {
		return engine.Stats{}, false, nil
	}
	if here && c.State.Pid > 0 {
		if sample, err := e.gauges.add(e.sampler, id, c.State.Pid); err == nil {
			return sample, true, nil
		}
	}
	return e.sampleAPI(short, id)
}

// sampleAPI takes the daemon's own statistics.
func (e *Engine) sampleAPI(ctx context.Context, id string) (engine.Stats, bool, error) {
	reply, err := e.daemon.API.ContainerStatsOneShot(ctx, id)
	if err != nil {
		return engine.Stats{}, false, daemon.ContainerFailure(ctx, "stats", id, err)
	}
	defer reply.Body.Close() //nolint:errcheck // read to its end
	var said container.StatsResponse
	if err := json.NewDecoder(reply.Body).Decode(&said); err != nil {
		return engine.Stats{}, false, daemon.Failure(ctx, "stats", err)
	}
	if said.Read.IsZero() {
		return engine.Stats{}, false, nil // it ended meanwhile
	}
	return statsFromAPI(said), true, nil
}

func statsFromAPI(said container.StatsResponse) engine.Stats {
	memory := said.MemoryStats
	inactive := memory.Stats["inactive_file"]
	if total, ok := memory.Stats["total_inactive_file"]; ok {
		inactive = total
	}
	stats := engine.Stats{
		At:       said.Read,
		CPU:      time.Duration(said.CPUStats.CPUUsage.TotalUsage),
		Memory:   workingSet(int64(memory.Usage), int64(inactive)),
		MemLimit: gpu.Bytes(memory.Limit),
		Pids:     int(said.PidsStats.Current),
	}
	for _, network := range said.Networks {
		stats.NetRx += gpu.Bytes(network.RxBytes)
		stats.NetTx += gpu.Bytes(network.TxBytes)
	}
	for _, entry := range said.BlkioStats.IoServiceBytesRecursive {
		switch entry.Op {
		case "Read", "read":
			stats.DiskRead += gpu.Bytes(entry.Value)
		case "Write", "write":
			stats.DiskWrite += gpu.Bytes(entry.Value)
		}
	}
	return stats
}

// gauges are those of the containers that were sampled last.
type gauges struct {
	mu   sync.Mutex // guards everything below
	byID map[string]*gauge
	page page
}

// sample samples, into samples, the containers that are known from before, and
// returns the others. Whoever is not asked for any more, or has ended, is
// forgotten.
func (g *gauges) sample(ids []string, samples map[string]engine.Stats) (unknown []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.byID
	g.byID = make(map[string]*gauge, len(ids))
	for _, id := range ids {
		known := before[id]
		if known == nil {
			unknown = append(unknown, id)
			continue
		}
		delete(before, id)
		sample, err := known.sample(time.Now(), &g.page)
		if err != nil {
			known.close()
			unknown = append(unknown, id)
			continue
		}
		g.byID[id], samples[id] = known, sample
	}
	for _, gone := range before {
		gone.close()
	}
	return unknown
}

// add begins to sample a container by its first process.
func (g *gauges) add(s sampler, id string, pid int) (engine.Stats, error) {
	group, err := s.find(pid)
	if err != nil {
		return engine.Stats{}, err
	}
	opened, err := s.open(pid, group)
	if err != nil {
		return engine.Stats{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	sample, err := opened.sample(time.Now(), &g.page)
	if err != nil {
		opened.close()
		return engine.Stats{}, err
	}
	if other := g.byID[id]; other != nil {
		other.close()
	}
	if g.byID == nil {
		g.byID = map[string]*gauge{}
	}
	g.byID[id] = opened
	return sample, nil
}

// close forgets all.
func (g *gauges) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.byID {
		known.close()
	}
	g.byID = nil
}
