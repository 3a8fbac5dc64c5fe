package agent

import (
	"context"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/devices"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/meter"
	"slipway/backend/agent/networks"
	"slipway/backend/agent/others"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/engine"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// needs are what rooms need of each other where two need one another: they are
// made with the rooms and filled in when all are there.
type needs struct {
	news    *news
	ending  *ending
	health  *healthNeeds
	sampler *samplerNeeds
	meter   *meterNeeds
	reclaim *reclaimNeeds
	sweep   chan struct{} // of capacity 1: a network may be left over
}

func newNeeds() *needs {
	n := &news{stream: newStream(randomHex()), closed: make(chan struct{})}
	e := &ending{}
	return &needs{news: n, ending: e, health: &healthNeeds{news: n}, sampler: &samplerNeeds{news: n, ending: e},
		meter: &meterNeeds{news: n}, reclaim: &reclaimNeeds{news: n, ending: e}, sweep: make(chan struct{}, 1)}
}

// ending ends sessions for reasons that nobody asked for.
type ending struct{ launch *launch.Runner }

func (e *ending) EndSession(id session.ID, reason session.Reason, cause *session.Cause,
	still func(session.Session) bool) (session.Session, error) {
	return e.launch.EndFor(id, reason, cause, still)
}

// samplerNeeds is what the sampler of devices needs of the agent.
type samplerNeeds struct {
	*news
	*ending
	attached *devices.Attachment
	reclaim  *reclaim.Watch
}

func (n *samplerNeeds) DevicesChanged(ctx context.Context) {
	_ = n.attached.Ask(ctx) // it is asked again when the engine answers
	n.PlanAgain()
}

func (n *samplerNeeds) DevicesUsed(at gpu.Moment, live []session.Session, uses []gpu.Live) {
	n.reclaim.DevicesUsed(at, live, uses)
}

// othersNeeds is what is needed of the agent to share its devices with others.
type othersNeeds struct {
	store   *store.Store
	devices *devices.Devices
	giving  gpu.Config
	clock   *pace.Clock
}

func (n othersNeeds) Ledger(s session.Session, others []ledger.Other) (*ledger.Ledger, error) {
	live, _, err := n.store.Live()
	live = append(slices.DeleteFunc(live, func(l session.Session) bool { return l.ID == s.ID }), s)
	return ledger.New(n.devices.Now(), n.giving, live, others, n.clock.Now()), err
}

// meterNeeds is what the meter needs of the agent.
type meterNeeds struct {
	*news
	store    *store.Store
	devices  *devices.Devices
	accounts *accounts.Books
	launch   *launch.Runner
	people   *people.People
	reclaim  *reclaim.Watch
}

func (n *meterNeeds) LiveSessions() ([]session.Session, error) { return n.store.LiveSessions() }

func (n *meterNeeds) DeviceLoads(grants []gpu.Grant, id session.ID) []session.DeviceLoad {
	return n.devices.Loads(grants, id)
}

func (n *meterNeeds) Measured(live, running []session.Session, stats map[string]engine.Stats) {
	n.accounts.Follow(n.devices.Moment(), live)
	for _, s := range running {
		for _, k := range s.Kernels {
			if of, ok := stats[k.Container]; ok {
				n.accounts.Used(of.At, s.ID, k.Container, of.CPU)
				n.launch.OutOfMemory(s.ID, k.Name, of.OOMKills)
				n.people.SawProcesses(s, of.Pids)
			}
		}
	}
}

func (n *meterNeeds) Sampled(s session.Session, u session.Usage) { n.reclaim.Sampled(u, s.Grants) }

// reclaimNeeds is what the watch for idle sessions needs of the agent.
type reclaimNeeds struct {
	*news
	*ending
	guests *guests.Guests
}

func (n *reclaimNeeds) Guest(id session.ID, kernel string) reclaim.Guest {
	return n.guests.Now(id, kernel)
}

// healthNeeds is what the watch of the engine needs of the agent.
type healthNeeds struct {
	*news
	launch   *launch.Runner
	attached *devices.Attachment
	networks *networks.Networks
}

func (n *healthNeeds) Reconcile(ctx context.Context) error {
	if err := n.launch.Reconcile(ctx); err != nil {
		return err
	}
	return n.attached.Ask(ctx)
}

func (n *healthNeeds) Sweep(ctx context.Context) error { return n.networks.Sweep(ctx) }

func (n *healthNeeds) ContainerChanged(state engine.State) { n.launch.ContainerChanged(state) }

// directories says which directories of the machine sessions and folders may have.
type directories struct {
	*people.People
	offLimits func() offlimits.Places
}

func (d directories) OffLimits() offlimits.Places { return d.offLimits() }

// launchDevices are the devices of the machine, which other agents use as well.
type launchDevices struct {
	devices *devices.Devices
	others  *others.Others
}

func (d launchDevices) List() []gpu.Device { return d.devices.Now().Devices }

func (d launchDevices) Alone(ctx context.Context, s session.Session,
	create func(context.Context) ([]string, error)) error {
	return d.others.Create(ctx, s, create)
}

// launchNeeds is what launches and ends need of the agent.
type launchNeeds struct {
	*news
	boot  func() (time.Time, error)
	meter *meter.Meter
	sweep chan<- struct{}
}

func (n launchNeeds) Boot() (time.Time, error) { return n.boot() }

func (n launchNeeds) SweepNetworks() {
	pace.Signal(n.sweep)
}

func (n launchNeeds) Started(session.ID) { n.meter.Wake() }

func (n launchNeeds) Ended(s session.Session) {
	n.queue.Ended(s)
	n.meter.Forget(s.ID)
}

// asked is what people ask of the queue and of the watch for idle sessions.
type asked struct {
	*queue.Queue
	*reclaim.Watch
}

// diskFree is the room on the disk of a folder.
func diskFree(dir string) (gpu.Bytes, error) {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return gpu.Bytes(usage.Free), nil
}
