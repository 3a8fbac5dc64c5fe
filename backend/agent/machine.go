package agent

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"slipway/backend/agent/doctor"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/engine"
	"slipway/backend/offlimits"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

func (a *Agent) Machine(context.Context) (session.Machine, error) {
	a.meter.Refresh()
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
	if w, ok := a.others.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := a.queue.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := a.records.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	m.Load = a.meter.Load()
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

func (a *Agent) Doctor(ctx context.Context) ([]session.Check, error) {
	disk := func(ctx context.Context) (free, total gpu.Bytes, err error) {
		m, err := a.Machine(ctx)
		return m.Load.DiskFree, m.Load.DiskTotal, err
	}
	return doctor.Doctor{Config: a.config.Doctor, Dir: a.config.Dir, Engine: a.engine, Devices: a.devices.Source,
		Disk: disk}.Check(ctx)
}

func (a *Agent) ListDirectories(ctx context.Context, path string) (session.DirectoryListing, error) {
	return folders.ListDirectories(ctx, path)
}

// Usage implements [session.Sessions]. Of an ended session nothing is kept.
func (a *Agent) Usage(_ context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	if _, err := a.store.Get(id); err != nil {
		return nil, err
	}
	return a.meter.Since(id, since), nil
}

func (a *Agent) Devices(context.Context) (session.DeviceBoard, error) {
	live, err := a.store.LiveSessions()
	if err != nil {
		return session.DeviceBoard{}, err
	}
	return a.board(live), nil
}

func (a *Agent) DeviceHistory(_ context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	return a.devices.History(device, since)
}

func (a *Agent) Accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	return a.accounts.Read(a.devices.Moment(), span)
}

// board describes the devices as they are now.
func (a *Agent) board(live []session.Session) session.DeviceBoard {
	l := ledger.New(a.devices.Now(), a.config.Giving, live, a.others.List(), a.clock.Now())
	return l.Board(a.attached.Now(), a.config.Giving.Strategy)
}

// resumeAccounts goes on with the accounts, and with what is stored beside them.
func (a *Agent) resumeAccounts() error {
	live, err := a.store.LiveSessions()
	if err != nil {
		return err
	}
	now := a.devices.Moment()
	last, _, err := a.accounts.LastCheckpoint()
	if err == nil {
		err = errors.Join(a.reclaim.Resume(now, last, live), a.devices.Resume(a.store))
	}
	if err != nil {
		a.log.Warn("idle checks and device histories begin anew", "err", err)
	}
	a.accounts.Add(a.reclaim)
	a.accounts.Add(a.devices)
	return a.accounts.Resume(now, live)
}

// samplerNeeds is what the sampler of devices needs of the agent.
type samplerNeeds struct{ *Agent }

func (a samplerNeeds) Watched() bool { return a.stream.watched() }

func (a samplerNeeds) PublishBoard(live []session.Session) {
	board := a.board(live)
	a.stream.publish(session.Event{Devices: &board})
}

func (a samplerNeeds) PlanAgain() { a.queue.Wake() }

func (a samplerNeeds) DevicesChanged(ctx context.Context) {
	_ = a.attached.Ask(ctx) // it is asked again when the engine answers
	a.queue.Wake()
}

func (a samplerNeeds) DevicesUsed(at gpu.Moment, live []session.Session, uses []gpu.Live) {
	a.reclaim.DevicesUsed(at, live, uses)
}

func (a samplerNeeds) EndSession(id session.ID, reason session.Reason, cause *session.Cause,
	still func(session.Session) bool) (session.Session, error) {
	return a.launch.EndFor(id, reason, cause, still)
}

// othersNeeds is what is needed of the agent to share its devices with others.
type othersNeeds struct{ *Agent }

func (a othersNeeds) Ledger(s session.Session, others []ledger.Other) (*ledger.Ledger, error) {
	live, _, err := a.store.Live()
	live = append(slices.DeleteFunc(live, func(l session.Session) bool { return l.ID == s.ID }), s)
	return ledger.New(a.devices.Now(), a.config.Giving, live, others, a.clock.Now()), err
}

// meterNeeds is what the meter needs of the agent.
type meterNeeds struct{ *Agent }

func (a meterNeeds) LiveSessions() ([]session.Session, error) { return a.store.LiveSessions() }

func (a meterNeeds) Watched() bool { return a.stream.watched() }

func (a meterNeeds) Publish(e session.Event) { a.stream.publish(e) }

func (a meterNeeds) PublishMachine() { a.publishMachine() }

func (a meterNeeds) DeviceLoads(grants []gpu.Grant, id session.ID) []session.DeviceLoad {
	return a.devices.Loads(grants, id)
}

func (a meterNeeds) Measured(live, running []session.Session, stats map[string]engine.Stats) {
	a.accounts.Follow(a.devices.Moment(), live)
	for _, s := range running {
		for _, k := range s.Kernels {
			if of, ok := stats[k.Container]; ok {
				a.accounts.Used(of.At, s.ID, k.Container, of.CPU)
				a.launch.OutOfMemory(s.ID, k.Name, of.OOMKills)
				a.people.SawProcesses(s, of.Pids)
			}
		}
	}
}

func (a meterNeeds) Sampled(s session.Session, u session.Usage) { a.reclaim.Sampled(u, s.Grants) }

// reclaimNeeds is what the watch for idle sessions needs of the agent.
type reclaimNeeds struct{ *Agent }

func (a reclaimNeeds) Guest(id session.ID, kernel string) reclaim.Guest {
	return a.guests.Now(id, kernel)
}

func (a reclaimNeeds) EndSession(id session.ID, reason session.Reason, cause *session.Cause,
	still func(session.Session) bool) (session.Session, error) {
	return a.launch.EndFor(id, reason, cause, still)
}

func (a reclaimNeeds) PublishSession(s session.Session) {
	if a.stream.watched() {
		s = a.dress(s)
		a.stream.publish(session.Event{Session: &s})
	}
}

func (a *Agent) Keep(_ context.Context, id session.ID, length session.Duration) (session.Session, error) {
	return a.reclaim.Keep(id, length)
}

func (a *Agent) SimulateIdle(_ context.Context, id session.ID,
	policy session.IdlePolicy) (session.IdleSimulation, error) {
	return a.reclaim.Simulate(id, policy)
}

// engineNeeds is what the watch of the engine needs of the agent.
type engineNeeds struct{ *Agent }

func (a engineNeeds) Reconcile(ctx context.Context) error {
	if err := a.launch.Reconcile(ctx); err != nil {
		return err
	}
	return a.attached.Ask(ctx)
}

func (a engineNeeds) Sweep(ctx context.Context) error { return a.networks.Sweep(ctx) }

func (a engineNeeds) ContainerChanged(state engine.State) { a.launch.ContainerChanged(state) }

func (a engineNeeds) PublishMachine() { a.publishMachine() }

func (a engineNeeds) PlanAgain() { a.queue.Wake() }

// offLimits are the directories that no session may see.
func (a *Agent) offLimits() offlimits.Places {
	info := a.health.State().Info
	places := a.config.OffLimits
	places.Own = append(slices.Clip(places.Own), a.config.Dir)
	places.Engine, places.Socket = info.DataRoot, info.Socket
	return places
}

// directories says which directories of the machine sessions and folders may have.
type directories struct {
	*people.People
	offLimits func() offlimits.Places
}

func (d directories) OffLimits() offlimits.Places { return d.offLimits() }

// diskFree is the room on the disk of a folder.
func diskFree(dir string) (gpu.Bytes, error) {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return gpu.Bytes(usage.Free), nil
}

// newRunner returns what launches and ends sessions.
func (a *Agent) newRunner() *launch.Runner {
	return launch.New(launch.Config{
		Self: launch.Self{Agent: a.config.Name, UID: a.config.UID, GID: a.config.GID}, Engine: a.engine,
		Records: a.records, Networks: a.networks, Images: a.images, Commits: a.images, Health: a.health,
		Machine: launchNeeds{a}, Folders: a.folders, Guests: a.guests, Logs: a.logs, Devices: launchDevices{a},
		Limits: a.limits, Clock: a.clock, Log: a.log,
	})
}

// launchDevices are the devices of the machine, which other agents use as well.
type launchDevices struct{ *Agent }

func (a launchDevices) List() []gpu.Device { return a.devices.Now().Devices }

func (a launchDevices) Alone(ctx context.Context, s session.Session,
	create func(context.Context) ([]string, error)) error {
	return a.others.Create(ctx, s, create)
}

// launchNeeds is what launches and ends need of the agent.
type launchNeeds struct{ *Agent }

func (a launchNeeds) Boot() (time.Time, error) { return a.config.Boot() }

func (a launchNeeds) PlanAgain() { a.queue.Wake() }

func (a launchNeeds) PublishMachine() { a.publishMachine() }

func (a launchNeeds) SweepNetworks() { signal(a.sweep) }

func (a launchNeeds) Pulling(s session.Session) {
	s = a.dress(s)
	a.stream.publish(session.Event{Session: &s})
}

func (a launchNeeds) Started(session.ID) { a.meter.Wake() }

func (a launchNeeds) Ended(s session.Session) {
	a.queue.Ended(s)
	a.meter.Forget(s.ID)
}

// newQueue returns what places sessions.
func (a *Agent) newQueue() *queue.Queue {
	return queue.New(queue.Config{
		Owner: a.config.Owner, Giving: a.config.Giving, Records: a.records, Health: a.health, Others: a.others,
		Launch: a.launch, People: a.people, Machine: queueNeeds{a}, Devices: a.devices.Now, Attached: a.attached.Now,
		Busy: a.meter.Busy, Purge: a.purge, Pause: a.limits.Pause, Clock: a.clock, Log: a.log,
	})
}

// queueNeeds is what the queue needs of the agent.
type queueNeeds struct{ *Agent }

func (a queueNeeds) Publish(e session.Event) { a.stream.publish(e) }

func (a queueNeeds) PublishMachine() { a.publishMachine() }

// purgeSlack is how many more records of ended sessions there may be than are
// kept, so that removing them happens seldom. At most purgeMost go at a time.
const (
	purgeSlack = 100
	purgeMost  = 1000
)

// purge removes the records of ended sessions that are too many, and their logs.
func (a *Agent) purge() error {
	count, err := a.store.Finished()
	if err != nil || count < a.config.KeepFinished+purgeSlack {
		return err
	}
	surplus, err := a.store.Surplus(a.config.KeepFinished, purgeMost)
	if err != nil || len(surplus) == 0 {
		return err
	}
	var removed []session.Session
	err = a.records.Update(func(tx *store.Tx) (err error) {
		removed, err = tx.Purge(surplus)
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range removed {
		a.logs.Remove(s.ID)
		a.stream.publish(session.Event{Removed: &s.ID, Owner: s.Owner})
	}
	return nil
}
