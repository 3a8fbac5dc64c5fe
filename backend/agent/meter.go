package agent

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/mem"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// How often sessions are sampled while someone watches and otherwise, how long
// samples are kept, and the age after which only one in ten seconds is.
const (
	sampleWatched = 2 * time.Second
	sampleAlone   = 10 * time.Second
	sampleIdle    = 10 * time.Second // the machine's load, while no session runs
	keepSamples   = time.Hour
	keepDense     = 5 * time.Minute
)

// Load is one measurement of the machine.
type Load struct {
	session.Load
	Busy map[int]float64 // of each CPU by number, 0 to 1
}

// meter keeps what was measured.
type meter struct {
	mu      sync.Mutex // guards everything below
	load    Load
	at      time.Time // of load
	samples map[session.ID][]session.Usage
	last    map[session.ID]engine.Stats
	changed chan struct{}
}

func newMeter() *meter {
	return &meter{samples: map[session.ID][]session.Usage{}, last: map[session.ID]engine.Stats{},
		changed: make(chan struct{}, 1)}
}

func (m *meter) busy() map[int]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.load.Busy
}

func (m *meter) forget(id session.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.samples, id)
	delete(m.last, id)
}

// add keeps a sample, with what the session makes of its devices, and returns
// it as use since the sample before.
func (m *meter) add(id session.ID, s engine.Stats, gpus []session.DeviceLoad) session.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := session.Usage{
		Session: id, At: s.At.UTC(), Memory: s.Memory, MemLimit: s.MemLimit, NetRx: s.NetRx, NetTx: s.NetTx,
		DiskRead: s.DiskRead, DiskWrite: s.DiskWrite, Pids: s.Pids, GPUs: gpus,
	}
	if last, ok := m.last[id]; ok && s.At.After(last.At) && s.CPU >= last.CPU {
		u.CPU = float64(s.CPU-last.CPU) / float64(s.At.Sub(last.At))
	}
	m.last[id] = s
	m.samples[id] = thin(append(m.samples[id], u), s.At)
	return u
}

// thin drops what is older than an hour, and of what has just left the dense
// part all but one sample in ten seconds. samples is in the order of time.
func thin(samples []session.Usage, now time.Time) []session.Usage {
	older := func(age time.Duration) int {
		at, _ := slices.BinarySearchFunc(samples, now.Add(-age),
			func(u session.Usage, t time.Time) int { return u.At.Compare(t) })
		return at
	}
	samples = samples[older(keepSamples):]
	// One sample crosses the border at a time: looking at the pair that
	// straddles it is enough.
	if i := older(keepDense) - 1; i > 0 && samples[i].At.Sub(samples[i-1].At) < sampleAlone-sampleWatched/2 {
		samples = slices.Delete(samples, i, i+1)
	}
	return samples
}

// since returns the samples of a session that are newer than a time.
func (m *meter) since(id session.ID, since time.Time) []session.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.samples[id]
	first := len(all)
	for first > 0 && all[first-1].At.After(since) {
		first--
	}
	return append([]session.Usage{}, all[first:]...)
}

// Usage implements [session.Sessions]. Of an ended session nothing is kept.
func (a *Agent) Usage(_ context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	if _, err := a.store.Get(id); err != nil {
		return nil, err
	}
	return a.meter.since(id, since), nil
}

// runMeter samples the machine and its sessions until ctx ends: often while
// someone watches, seldom otherwise, and nothing at all while nobody watches
// and nothing runs.
func (a *Agent) runMeter(ctx context.Context) {
	for ctx.Err() == nil {
		running := a.sampleSessions(ctx)
		watched := a.stream.watched()
		if watched || running {
			a.sampleMachine()
		}
		if watched {
			a.publishMachine()
		}
		interval := sampleAlone
		switch {
		case watched && running:
			interval = sampleWatched
		case !watched && !running:
			interval = time.Hour
		case watched:
			interval = sampleIdle
		}
		timer := a.clock.Often(interval)
		select {
		case <-timer.C:
		case <-a.stream.first:
			signal(a.devices.changed)
		case <-a.meter.changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// sampleSessions samples every running session, tells watchers, and reports
// whether there is one.
func (a *Agent) sampleSessions(ctx context.Context) bool {
	live, err := a.liveSessions()
	if err != nil {
		a.log.Warn("usage cannot be sampled", "err", err)
		return false
	}
	var ids []string
	var running []session.Session
	for _, s := range live {
		// One that is being ended is sampled too: its last seconds count.
		if s.Status == session.Running || s.Status == session.Terminating && s.StartedAt != nil {
			ids = append(ids, allContainers(s)...)
			running = append(running, s)
		}
	}
	if len(ids) == 0 || !a.health.State().Up {
		return len(ids) > 0
	}
	var stats map[string]engine.Stats
	err = engine.Within(ctx, a.limits.Call, "stats", func(ctx context.Context) (err error) {
		stats, err = a.engine.Stats(ctx, ids)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("usage cannot be sampled", "err", a.heed(err))
		}
		return true
	}
	a.accounts.Follow(a.devices.moment(), live)
	var samples []session.Usage
	for _, s := range running {
		for _, k := range s.Kernels {
			if of, ok := stats[k.Container]; ok {
				a.accounts.Used(of.At, s.ID, k.Container, of.CPU)
				a.sawOOM(s.ID, k.Name, of.OOMKills)
				a.sawProcesses(s, of.Pids)
			}
		}
		if sum, ok := sumOf(s, stats); ok {
			u := a.meter.add(s.ID, sum, a.devices.loads(s.Grants.GPUs, s.ID))
			a.idle.sampled(u, s.Grants)
			samples = append(samples, u)
		}
	}
	if len(samples) > 0 && a.stream.watched() {
		a.stream.publish(session.Event{Usage: samples})
	}
	return true
}

// sumOf is what all kernels of a session use together. It reports false unless
// each was measured: a part of them would look like a fall of the counters.
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

// sampleMachine measures the machine.
func (a *Agent) sampleMachine() {
	info := a.health.State().Info
	root := info.DataRoot
	if root == "" {
		root = a.config.Dir
	}
	load, err := a.config.Load(root)
	if err != nil {
		a.log.Debug("the machine's load is not known", "err", err)
	}
	a.meter.mu.Lock()
	a.meter.load, a.meter.at = load, a.clock.Now()
	a.meter.mu.Unlock()
}

func (a *Agent) Machine(context.Context) (session.Machine, error) {
	a.meter.mu.Lock()
	stale := a.clock.Since(a.meter.at) > sampleAlone
	a.meter.mu.Unlock()
	if stale {
		a.sampleMachine()
	}
	return a.machine()
}

// machine describes the machine with the load as last measured.
func (a *Agent) machine() (session.Machine, error) {
	state := a.health.State()
	info := state.Info
	m := session.Machine{
		Agent: a.config.Name, Instance: a.store.Instance(), Engine: info.Name, EngineVersion: info.Version,
		Version:  a.config.Version,
		Hostname: cmp.Or(a.config.Hostname, hostname()), OS: info.OS, Arch: info.Arch, CPUs: info.CPUs,
		Memory: info.Memory, Warnings: append([]session.Warning{}, info.Warnings...),
		Owner: a.config.Owner, Role: session.RoleAdmin, Allowance: a.Allowance(a.config.Owner),
	}
	if !state.Known {
		m.OS, m.Arch = runtime.GOOS, runtime.GOARCH
	}
	if w, ok := a.health.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := a.crowdWarning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := a.auditWarning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := a.records.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	a.meter.mu.Lock()
	m.Load = a.meter.load.Load
	a.meter.mu.Unlock()
	live, _, err := a.store.Live()
	for _, s := range live {
		if s.Status.HoldsResources() {
			m.UsedCPUs += len(s.Grants.CPUs)
			m.UsedMemory += s.Grants.Memory
		}
	}
	return m, err
}

// publishMachine tells watchers of the machine as it is now.
func (a *Agent) publishMachine() {
	if !a.stream.watched() {
		return
	}
	m, err := a.machine()
	if err != nil {
		a.log.Warn("the machine cannot be described", "err", err)
		return
	}
	a.stream.publish(session.Event{Machine: &m})
}

// bootTime is when the operating system says that it was started.
func bootTime() (time.Time, error) {
	seconds, err := host.BootTime()
	return time.Unix(int64(seconds), 0), err
}

// probe asks the operating system for the machine's load.
type probe struct {
	mu   sync.Mutex // guards last
	last []cpu.TimesStat
}

func newProbe() *probe { return &probe{} }

// load measures the load since the call before. Where only a part can be
// measured, it returns that part and the first failure.
func (p *probe) load(dataRoot string) (Load, error) {
	var l Load
	times, err := cpu.Times(true)
	if err == nil {
		p.mu.Lock()
		l.Busy = busySince(p.last, times)
		p.last = times
		p.mu.Unlock()
		for _, busy := range l.Busy {
			l.CPU += busy
		}
	}
	memory, memErr := mem.VirtualMemory()
	if memErr == nil {
		l.Memory = gpu.Bytes(memory.Total - memory.Available)
	}
	usage, diskErr := disk.Usage(dataRoot)
	if diskErr == nil {
		l.DiskFree, l.DiskTotal = gpu.Bytes(usage.Free), gpu.Bytes(usage.Total)
	}
	for _, e := range []error{err, memErr, diskErr} {
		if e != nil {
			return l, e
		}
	}
	return l, nil
}

// busySince is how busy each CPU was between two readings of its times.
func busySince(before, now []cpu.TimesStat) map[int]float64 {
	if len(before) != len(now) {
		return nil
	}
	busy := make(map[int]float64, len(now))
	for i := range now {
		idle := (now[i].Idle + now[i].Iowait) - (before[i].Idle + before[i].Iowait)
		total := sum(now[i]) - sum(before[i])
		if total > 0 {
			busy[i] = min(1, max(0, 1-idle/total))
		}
	}
	return busy
}

// sum adds what a CPU did; guests' time is part of user and nice.
func sum(t cpu.TimesStat) float64 {
	return t.User + t.System + t.Idle + t.Nice + t.Iowait + t.Irq + t.Softirq + t.Steal
}
