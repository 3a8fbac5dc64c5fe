// Package stats samples running containers, from the kernel's files where the daemon runs on this machine.
package stats

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/cgroup"
	"slipway/backend/engine/docker/daemon"
	"slipway/gpu"
)

// Reader samples containers of one daemon. It is safe for concurrent use.
type Reader struct {
	daemon *daemon.Daemon
	gauges gauges
}

// New returns a reader for the containers of a daemon.
func New(d *daemon.Daemon) *Reader {
	return &Reader{daemon: d}
}

func (r *Reader) Close() { r.gauges.close() }

// Stats returns one sample for each running container, by id. Containers that cannot be read are absent.
func (r *Reader) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	facts, err := r.daemon.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, daemon.Failure(ctx, err)
	}
	samples := make(map[string]engine.Stats, len(ids))
	unknown := r.gauges.sample(ids, samples)
	asked, err := daemon.Each(unknown, daemon.IsGone, func(id string) (sampled, error) {
		stats, err := r.sampleAsked(ctx, id, facts.Here)
		return sampled{id, stats}, err
	})
	for _, one := range asked {
		if one.stats != nil {
			samples[one.id] = *one.stats
		}
	}
	return samples, err
}

// sampled is a sample of one container; nil if it does not run.
type sampled struct {
	id    string
	stats *engine.Stats
}

// sampleAsked asks the daemon for a container's process and samples it; nil if it does not run.
func (r *Reader) sampleAsked(ctx context.Context, id string, here bool) (*engine.Stats, error) {
	short, cancel := r.daemon.Brief(ctx)
	defer cancel()
	c, err := r.daemon.API.ContainerInspect(short, id)
	if err != nil {
		return nil, daemon.ContainerFailure(short, id, err)
	}
	if c.State == nil || !c.State.Running {
		return nil, nil
	}
	if here && c.State.Pid > 0 {
		sample, err := r.gauges.add(cgroup.Machine(), id, c.State.Pid)
		switch {
		case err == nil:
			return &sample, nil
		case errors.Is(err, errShared):
			return nil, nil
		}
	}
	return r.sampleAPI(short, id)
}

func (r *Reader) sampleAPI(ctx context.Context, id string) (*engine.Stats, error) {
	reply, err := r.daemon.API.ContainerStatsOneShot(ctx, id)
	if err != nil {
		return nil, daemon.ContainerFailure(ctx, id, err)
	}
	defer reply.Body.Close() //nolint:errcheck // read to its end
	var said container.StatsResponse
	err = json.NewDecoder(reply.Body).Decode(&said)
	switch {
	case errors.Is(err, io.EOF), err == nil && said.Read.IsZero():
		return nil, nil // it ended meanwhile
	case err != nil:
		return nil, daemon.Failure(ctx, err)
	}
	return new(statsFromAPI(said)), nil
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
		Memory:   gpu.Bytes(max(int64(memory.Usage)-int64(inactive), 0)),
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
	mu   sync.Mutex               // guards everything below
	byID map[string]*cgroup.Gauge // nil where the container has no group of its own
	page cgroup.Page
}

// sample samples known containers and returns the others. It forgets containers that ended or are not in ids.
func (g *gauges) sample(ids []string, samples map[string]engine.Stats) (unknown []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.byID
	g.byID = make(map[string]*cgroup.Gauge, len(ids))
	for _, id := range ids {
		gauge, known := before[id]
		if !known {
			unknown = append(unknown, id)
			continue
		}
		delete(before, id)
		if gauge == nil {
			g.byID[id] = nil
			continue
		}
		sample, err := gauge.Sample(time.Now(), &g.page)
		if err != nil {
			gauge.Close()
			unknown = append(unknown, id)
			continue
		}
		g.byID[id], samples[id] = gauge, sample
	}
	closeAll(before)
	return unknown
}

// errShared says that a container has no control group of its own, so what it uses is not known.
var errShared = errors.New("the container has no control group of its own")

func (g *gauges) add(t cgroup.Tree, id string, pid int) (engine.Stats, error) {
	groups, err := t.Of(strconv.Itoa(pid))
	if err != nil {
		return engine.Stats{}, err
	}
	if !groups.Named(id) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.put(id, nil)
		return engine.Stats{}, errShared
	}
	opened, err := groups.Open(pid)
	if err != nil {
		return engine.Stats{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	sample, err := opened.Sample(time.Now(), &g.page)
	if err != nil {
		opened.Close()
		return engine.Stats{}, err
	}
	g.put(id, opened)
	return sample, nil
}

// put keeps the gauge of a container in place of the one that is there. The caller holds the lock.
func (g *gauges) put(id string, gauge *cgroup.Gauge) {
	if other := g.byID[id]; other != nil {
		other.Close()
	}
	if g.byID == nil {
		g.byID = map[string]*cgroup.Gauge{}
	}
	g.byID[id] = gauge
}

func (g *gauges) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	closeAll(g.byID)
	g.byID = nil
}

func closeAll(all map[string]*cgroup.Gauge) {
	for _, gauge := range all {
		if gauge != nil {
			gauge.Close()
		}
	}
}
