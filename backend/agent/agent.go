// Package agent is authority over one machine: its queue, its sessions and their containers. It needs nobody to be
// connected.
//
// It opens the rooms, which are the packages below it, connects them and runs them. A launch is checked and stored by
// package sessions, placed by package queue, and brought to where it runs and back by package launch.
//
// The reason for a wait, the progress of a pull, samples of use and the events of the last while are not stored. A
// watcher that has missed too much starts from a snapshot.
package agent

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/apps"
	"slipway/backend/agent/devices"
	"slipway/backend/agent/doctor"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/health"
	"slipway/backend/agent/host"
	"slipway/backend/agent/images"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/logs"
	"slipway/backend/agent/meter"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/agent/records"
	"slipway/backend/agent/sessions"
	"slipway/backend/engine"
	"slipway/backend/layers"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Config says what an agent rules and with what. Engine and Store belong to the caller, who closes them after the
// agent.
type Config struct {
	Name    string // of the agent, for example "local"
	Dir     string // its data folder; logs/ inside it keeps logs of ended sessions
	Version string
	Engine  engine.Engine
	Store   *store.Store
	Owner   string // owner of launches that name none
	UID     int    // of the person whose sessions these are
	GID     int
	// OffLimits are the places that no session may see; Dir and what the engine tells of itself are added.
	OffLimits offlimits.Places
	Sessions  SessionConfig
	Devices   DeviceConfig
	Host      HostConfig
	// Doctor is what only the doctor needs.
	Doctor doctor.Config
	// Clock is what sessions go by. nil: the clock on the wall.
	Clock *pace.Clock
	Log   *slog.Logger // nil: slog's default
}

// SessionConfig says how sessions are treated.
type SessionConfig struct {
	Limits host.Limits
	App    time.Duration // until an app answers; 0: 30 s
	// Idle is the policy for sessions that have none of their own.
	Idle session.IdlePolicy
	// Processes is the most processes and threads in a container; 0: no limit.
	Processes    int
	KeepFinished int       // records of ended sessions that are kept; 0: 10,000
	LogCap       gpu.Bytes // of one kept log; 0: 64 MiB
	// Arriving bounds the images that one person has on the way here from other agents; the agent's own person is
	// bounded as well.
	Arriving layers.Quota
	// NewID makes the id of a session that is launched. nil: a random one.
	NewID func(session.LaunchRequest) session.ID
	// Link makes the client of a guest over a fresh connection. nil: [guests.Connect].
	Link func(ctx context.Context, conn net.Conn) (guests.Client, error)
}

// DeviceConfig says which devices there are and how they are shared.
type DeviceConfig struct {
	// Source finds and measures the machine's devices; it belongs to the caller. nil: the machine has none.
	Source gpu.Source
	// Giving says how shares of devices are given.
	Giving gpu.Config
	// Guard is what happens to a session that stays above its share of a device's memory.
	Guard gpu.Policy
	// EndProcess asks a process to end, under [gpu.PolicyEndProcess]. nil: none can be asked, and the guard warns only.
	EndProcess func(pid int, start uint64) error
	// MPSForUsers lets people who do not rule the agent share devices through MPS, by which they get the machine's
	// /dev/shm.
	MPSForUsers bool
	// Alone takes the lock that every agent of this machine takes while it looks what devices others hold and creates
	// containers with devices of its own. It fails where somebody keeps it for too long. nil: there is no such lock.
	Alone func(ctx context.Context) (release func(), err error)
}

// HostConfig says what the machine is. What is nil or empty is as the operating system says.
type HostConfig struct {
	Hostname string
	// Moment reads the clocks that accounts are kept by. nil: one that cannot tell time suspended from time awake.
	Moment func() gpu.Moment
	// Boot is when the machine was started.
	Boot func() (time.Time, error)
	// Load measures the machine.
	Load func(dataRoot string) (meter.Load, error)
}

// parts are those of the agent that answer calls themselves.
type parts struct {
	session.Folders
	session.FolderTrash
	session.Images
	session.ImageTransfers
	session.Apps
	session.Terminals
	session.SSH
	session.Files
	session.Uploads
	session.Queue
	*sessions.Sessions
	*people.People
}

// rooms are what the agent is made of.
type rooms struct {
	reclaim *reclaim.Watch
	meter   *meter.Meter
	folders *folders.Folders
	guests  *guests.Guests
	apps    *apps.Apps
	images  *images.Images
	logs    *logs.Logs
	launch  *launch.Runner
	queue   *queue.Queue
}

// deviceRooms are what the agent knows of devices, and the accounts of their use.
type deviceRooms struct {
	devices  *devices.Devices
	sampler  *devices.Sampler
	attached *devices.Attachment // how devices are handed to containers
	others   *ledger.Others
	accounts *accounts.Books
}

// Agent rules one machine. Its methods are safe for concurrent use; sessions move only while Run runs.
type Agent struct {
	parts
	rooms
	deviceRooms
	config  Config
	records *records.Records
	health  *health.Watch
	news    *news
	tasks   sync.WaitGroup // everything that Run started
}

// Agent returns the agent as its own person calls it.
func (a *Agent) Agent() session.Agent { return session.AgentOf(a, nil) }

// withDefaults fills in what need not be said.
func (config Config) withDefaults() Config {
	s, host := &config.Sessions, &config.Host
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if s.KeepFinished == 0 {
		s.KeepFinished = 10_000
	}
	if s.LogCap == 0 {
		s.LogCap = logs.DefaultCap
	}
	if s.Link == nil {
		s.Link = guests.Connect
	}
	if s.NewID == nil {
		s.NewID = func(session.LaunchRequest) session.ID { return session.NewID() }
	}
	if host.Moment == nil {
		host.Moment = devices.OwnMoment()
	}
	if host.Boot == nil {
		host.Boot = meter.BootTime
	}
	if s.App == 0 {
		s.App = 30 * time.Second
	}
	s.Limits = s.Limits.WithDefaults()
	return config
}

// Run rules the machine until ctx ends, then waits for everything that it started. Containers go on. It is called once.
func (a *Agent) Run(ctx context.Context) error {
	defer a.images.Stop()
	defer context.AfterFunc(ctx, a.images.Stop)()
	for _, room := range []interface{ Run(ctx context.Context) }{a.health, a.queue, a.meter, a.sampler, a.reclaim,
		a.folders} {
		a.tasks.Go(func() { room.Run(ctx) })
	}
	<-ctx.Done()
	a.tasks.Wait()
	a.launch.Wait()
	return context.Cause(ctx)
}

// Close ends every Watch. It is called after Run has returned.
func (a *Agent) Close() error {
	a.images.Close()
	a.news.close()
	return nil
}

// Logs reads the output of a session.
func (a *Agent) Logs(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	return a.logs.Read(ctx, id, opts)
}

// Usage returns what a session has used since a time. Of an ended session nothing is kept.
func (a *Agent) Usage(_ context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	if _, err := a.config.Store.Get(id); err != nil {
		return nil, err
	}
	return a.meter.Since(id, since), nil
}

// FindImage describes an image that is on this machine, by whatever it can be called; engine_image_not-found.
func (a *Agent) FindImage(ctx context.Context, ref string) (session.Image, error) {
	return a.images.FindImage(ctx, ref)
}

// Arrivals takes the images that a person brings. A name that is another image's stays that one's, unless the person
// says to replace it.
func (a *Agent) Arrivals(owner string) session.ImageArrivals { return a.images.Arrivals(owner) }
