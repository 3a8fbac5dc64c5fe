// Package meter measures what the machine and its sessions use.
package meter

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

// How often sessions are sampled, how long samples are kept, and the age after which one every ten seconds is enough.
const (
	sampleWatched = 2 * time.Second
	sampleAlone   = 10 * time.Second // also of the machine's load, while no session runs
	keepSamples   = time.Hour
	keepDense     = 5 * time.Minute
	storeEvery    = 5 * time.Minute // what a crash of the agent may lose
)

// Load is one measurement of the machine.
type Load struct {
	session.Load
	Busy map[int]float64 // of each CPU by number, 0 to 1
}

// Config configures a Meter.
type Config struct {
	host.Host
	Dir string // with the samples in usage/, and on the disk that is measured if the engine names none
	// Load measures the machine. nil: according to the operating system.
	Load func(dataRoot string) (Load, error)
	// Devices returns what a session uses of its devices.
	Devices func(grants []gpu.Grant, id session.ID) []session.DeviceLoad
	// Measured is called with what the containers of running sessions used. live are all live sessions.
	Measured func(live, running []session.Session, stats map[string]engine.Stats)
	// Sampled is called with what a session used in all of its containers.
	Sampled func(u session.Usage, grants session.Grants)
}

// Meter keeps what was measured. Its methods are safe for concurrent use.
type Meter struct {
	config Config
	wake   chan struct{} // of capacity 1: sample now

	mu      sync.Mutex // guards everything below
	load    Load
	at      time.Time // of load
	samples map[session.ID][]session.Usage
	last    map[session.ID]engine.Stats
	kept    map[session.ID]time.Time // when the samples of a session were last stored
}

// New returns a meter that has measured nothing yet.
func New(config Config) *Meter {
	if config.Load == nil {
		config.Load = new(probe).load
	}
	return &Meter{config: config, samples: map[session.ID][]session.Usage{}, last: map[session.ID]engine.Stats{},
		kept: map[session.ID]time.Time{}, wake: make(chan struct{}, 1)}
}

func (m *Meter) Wake() { pace.Signal(m.wake) }

// Busy is how busy each CPU is, 0 to 1, as last measured.
func (m *Meter) Busy() map[int]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load.Busy
}

// Peak returns the most memory that a live session has used at one time; 0: nothing was measured.
func (m *Meter) Peak(id session.ID) gpu.Bytes {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := m.samples[id]; len(all) > 0 {
		return all[len(all)-1].MemoryPeak
	}
	return 0
}

// Newest returns the last sample of a live session since the agent started.
func (m *Meter) Newest(id session.ID) (sample session.Usage, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := m.samples[id]; len(all) > 0 {
		return all[len(all)-1], true
	}
	return session.Usage{}, false
}

// add keeps a sample and returns it as the use since the previous one.
func (m *Meter) add(id session.ID, s engine.Stats, gpus []session.DeviceLoad) session.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.samples[id]
	if !known {
		before = m.read(id) // of before a restart
	}
	u := session.Usage{
		Session: id, At: s.At.UTC(), Memory: s.Memory, MemoryPeak: s.Memory, MemLimit: s.MemLimit, NetRx: s.NetRx,
		NetTx: s.NetTx, DiskRead: s.DiskRead, DiskWrite: s.DiskWrite, Pids: s.Pids, GPUs: gpus,
	}
	if last, ok := m.last[id]; ok && s.At.After(last.At) && s.CPU >= last.CPU {
		u.CPU = float64(s.CPU-last.CPU) / float64(s.At.Sub(last.At))
	}
	if len(before) > 0 {
		u.MemoryPeak = max(u.MemoryPeak, before[len(before)-1].MemoryPeak)
	}
	m.last[id] = s
	m.samples[id] = thin(append(before, u), s.At)
	if m.config.Clock.Since(m.kept[id]) >= storeEvery {
		m.store(id)
	}
	return u
}

// thin drops what is older than an hour, and all but one in ten seconds of what is not recent. samples are in order.
func thin(samples []session.Usage, now time.Time) []session.Usage {
	older := func(age time.Duration) int {
		at, _ := slices.BinarySearchFunc(samples, now.Add(-age),
			func(u session.Usage, t time.Time) int { return u.At.Compare(t) })
		return at
	}
	samples = samples[older(keepSamples):]
	// One sample crosses the border at a time, so only the pair that straddles it is checked.
	if i := older(keepDense) - 1; i > 0 && samples[i].At.Sub(samples[i-1].At) < sampleAlone-sampleWatched/2 {
		samples = slices.Delete(samples, i, i+1)
	}
	return samples
}

func (m *Meter) Since(id session.ID, since time.Time) []session.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, known := m.samples[id]
	if !known {
		all = m.read(id)
	}
	first := len(all)
	for first > 0 && all[first-1].At.After(since) {
		first--
	}
	return append([]session.Usage{}, all[first:]...)
}

// Run samples the machine and its sessions until ctx ends: often while somebody watches, seldom otherwise, and not at
// all while there is no watcher and no session runs.
func (m *Meter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		running := m.SampleSessions(ctx)
		watched := m.config.Watched()
		if watched || running {
			m.sampleMachine()
		}
		if watched {
			m.config.PublishMachine()
		}
		interval := sampleAlone
		switch {
		case watched && running:
			interval = sampleWatched
		case !watched && !running:
			interval = time.Hour
		}
		host.Wait(ctx, m.config.Clock.Often(interval), m.wake)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.samples {
		m.store(id)
	}
}

// SampleSessions samples every running session, publishes that, and reports whether there is one.
func (m *Meter) SampleSessions(ctx context.Context) bool {
	live, err := m.config.Records.LiveSessions()
	if err != nil {
		m.config.Log.Warn("usage cannot be sampled", "err", err)
		return false
	}
	var ids []string
	var running []session.Session
	for _, s := range live {
		// One that is being ended is sampled too, for its last seconds.
		if s.Status == session.Running || s.Status == session.Terminating && s.StartedAt != nil {
			ids = append(ids, s.Containers()...)
			running = append(running, s)
		}
	}
	if len(ids) == 0 || !m.config.Health.State().Up {
		return len(ids) > 0
	}
	stats, err := engine.Ask(ctx, m.config.Limits.Call, "stats",
		func(ctx context.Context) (map[string]engine.Stats, error) { return m.config.Engine.Stats(ctx, ids) })
	if err != nil {
		if ctx.Err() == nil {
			m.config.Log.Warn("usage cannot be sampled", "err", m.config.Health.Heed(err))
		}
		return true
	}
	m.config.Measured(live, running, stats)
	var samples []session.Usage
	for _, s := range running {
		if sum, ok := sumOf(s, stats); ok {
			u := m.add(s.ID, sum, m.config.Devices(s.Grants.GPUs, s.ID))
			m.config.Sampled(u, s.Grants)
			samples = append(samples, u)
		}
	}
	if len(samples) > 0 && m.config.Watched() {
		m.config.Publish(session.Event{Usage: samples})
	}
	return true
}

// sumOf is what all kernels of a session use together, false unless each was measured, as counters must not fall.
func sumOf(s session.Session, stats map[string]engine.Stats) (sum engine.Stats, ok bool) {
	for _, k := range s.Kernels {
		of, ok := stats[k.Container]
		if !ok {
			return sum, false
		}
		if of.At.After(sum.At) {
			sum.At = of.At
		}
		sum.CPU, sum.Memory, sum.MemLimit = sum.CPU+of.CPU, sum.Memory+of.Memory, sum.MemLimit+of.MemLimit
		sum.NetRx, sum.NetTx = sum.NetRx+of.NetRx, sum.NetTx+of.NetTx
		sum.DiskRead, sum.DiskWrite = sum.DiskRead+of.DiskRead, sum.DiskWrite+of.DiskWrite
		sum.Pids, sum.OOMKills = sum.Pids+of.Pids, sum.OOMKills+of.OOMKills
	}
	return sum, len(s.Kernels) > 0
}

func (m *Meter) sampleMachine() {
	load, err := m.config.Load(cmp.Or(m.config.Health.State().Info.DataRoot, m.config.Dir))
	if err != nil {
		m.config.Log.Debug("the machine's load is not known", "err", err)
	}
	m.mu.Lock()
	m.load, m.at = load, m.config.Clock.Now()
	m.mu.Unlock()
}

func (m *Meter) Load() session.Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load.Load
}

// Refresh measures the machine unless that was done a moment ago.
func (m *Meter) Refresh() {
	m.mu.Lock()
	stale := m.config.Clock.Since(m.at) > sampleAlone
	m.mu.Unlock()
	if stale {
		m.sampleMachine()
	}
}
