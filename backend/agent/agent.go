// Package agent manages one machine: its queue, its sessions and their containers, whether or not anybody is connected.
//
// It opens, connects and runs the packages below it, its rooms. Package sessions checks and stores a launch, package
// queue allocates its resources, and package launch starts and ends it.
//
// Wait reasons, pull progress, usage samples and recent events are not stored. A watcher that missed too many events
// starts from a snapshot.
package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/apps"
	"slipway/backend/agent/clones"
	"slipway/backend/agent/confidential"
	"slipway/backend/agent/devices"
	"slipway/backend/agent/doctor"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/health"
	"slipway/backend/agent/host"
	"slipway/backend/agent/images"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/listeners"
	"slipway/backend/agent/logs"
	"slipway/backend/agent/meter"
	"slipway/backend/agent/people"
	"slipway/backend/agent/projects"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/agent/records"
	"slipway/backend/agent/services"
	"slipway/backend/agent/sessions"
	"slipway/backend/agent/warm"
	"slipway/backend/engine"
	"slipway/backend/hostfs"
	"slipway/backend/layers"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Config configures an agent. The caller owns Engine and Store and closes them after the agent.
type Config struct {
	Name    string // of the agent, for example "local"
	Dir     string // its data folder; logs/ inside it keeps logs of ended sessions
	Version string
	Engine  engine.Engine
	Store   *store.Store
	Owner   string // of launches that name none
	UID     int    // of the person whose sessions these are
	GID     int
	// OffLimits are the places that no session may see, besides Dir and the engine's own directories.
	OffLimits offlimits.Places
	Sessions  SessionConfig
	Devices   DeviceConfig
	Host      HostConfig
	Doctor    doctor.Config
	Clock     *pace.Clock  // of sessions; nil: the wall clock
	Log       *slog.Logger // nil: slog's default
}

// SessionConfig says how sessions are treated.
type SessionConfig struct {
	Limits       host.Limits
	App          time.Duration      // until an app answers; 0: 2 min
	Idle         session.IdlePolicy // of sessions that have none of their own
	Processes    int                // the most processes and threads in a container; 0: no limit
	Admins       session.AdminSessions
	KeepFinished int          // records of ended sessions that are kept; 0: 10,000
	LogCap       gpu.Bytes    // of one kept log; 0: 64 MiB
	Arriving     layers.Quota // of the incoming images of one person, the agent's own included
	// Planner decides which sessions start where another scheduler has the resources. nil: the agent decides.
	Planner queue.Planner
	Warm    int // containers that wait for launches at most
	// NewID makes the id of a launched session. nil: a random one.
	NewID func(session.LaunchRequest) session.ID
	// Link makes the client of a guest over a fresh connection. nil: [guests.Connect].
	Link func(ctx context.Context, conn net.Conn) (guests.Client, error)
}

// DeviceConfig says which devices there are and how they are shared.
type DeviceConfig struct {
	Source gpu.Source // finds and measures the devices, owned by the caller; nil: the machine has none
	Giving gpu.Config // how shares of devices are allocated
	Guard  gpu.Policy // for sessions that stay above their share of a device's memory
	// EndProcess asks a process to end, under [gpu.PolicyEndProcess]. nil: the guard only warns.
	EndProcess func(pid int, start uint64) error
	// MPSForUsers lets people who are not admins share devices through MPS, which gives them the machine's /dev/shm.
	MPSForUsers bool
	// Alone takes the lock that all agents of this machine use while they check which devices are in use and create
	// containers with devices. It fails if another program keeps the lock too long. nil: there is no lock.
	Alone func(ctx context.Context) (release func(), err error)
}

// HostConfig describes the machine. What is nil or empty comes from the operating system.
type HostConfig struct {
	Hostname string
	Moment   func() gpu.Moment         // the clocks of accounts; nil: time asleep counts as time awake
	Boot     func() (time.Time, error) // when the machine was started
	Load     func(dataRoot string) (meter.Load, error)
	Files    hostfs.FS // its file system
	// Listen opens the ports of services; nil: [net.Listen] does.
	Listen   func(network, address string) (net.Listener, error)
	Services session.NetworkListener // where other computers use its services
}

// parts are the rooms that answer calls themselves.
type parts struct {
	session.Folders
	session.FolderTrash
	session.Images
	session.ImageTransfers
	session.Projects
	session.Apps
	session.Services
	session.Terminals
	session.SSH
	session.Files
	session.Uploads
	session.Queue
	session.Moves
	*sessions.Sessions
	*people.People
}

type rooms struct {
	reclaim *reclaim.Watch
	meter   *meter.Meter
	folders *folders.Folders
	guests  *guests.Guests
	apps    *apps.Apps
	images  *images.Images
	logs    *logs.Logs
	secrets *confidential.Files
	launch  *launch.Runner
	queue   *queue.Queue
	serves  *services.Services
	clones  *clones.Clones
	warm    *warm.Pool
}

type deviceRooms struct {
	devices  *devices.Devices
	sampler  *devices.Sampler
	attached *devices.Attachment // how devices are handed to containers
	others   *ledger.Others
	accounts *accounts.Books
}

// Agent manages one machine. Its methods are safe for concurrent use; sessions change only while Run runs.
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

// Agent returns the agent as its own person, who is its admin, calls it.
func (a *Agent) Agent() session.Agent { return session.AgentOf(a, nil) }

func (config Config) withDefaults() Config {
	s, host := &config.Sessions, &config.Host
	config.Log = cmp.Or(config.Log, slog.Default())
	s.KeepFinished = cmp.Or(s.KeepFinished, 10_000)
	s.LogCap = cmp.Or(s.LogCap, logs.DefaultCap)
	s.App = cmp.Or(s.App, 2*time.Minute)
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
	s.Limits = s.Limits.WithDefaults()
	return config
}

// Open opens an agent, which answers questions and accepts launches from now on. The engine may still be unavailable.
//
// Rooms that need each other get functions that look up the other room when called, since some of them are opened
// later.
func Open(config Config) (*Agent, error) {
	a := &Agent{config: config.withDefaults()}
	a.news = newNews(a, rand.Text())
	h, err := a.openHost()
	if err == nil {
		err = a.openMachine(h)
	}
	if err == nil {
		err = a.openLaunch(h)
	}
	if err == nil {
		err = a.openServices(h)
	}
	if err == nil {
		err = a.resumeAccounts()
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Agent) openHost() (h host.Host, err error) {
	c := &a.config
	if a.accounts, err = accounts.Open(c.Store, c.Clock, c.Log); err != nil {
		return h, err
	}
	a.devices = devices.New(c.Devices.Source, c.Host.Moment)
	a.attached = &devices.Attachment{Engine: c.Engine, Devices: a.devices, Log: c.Log, Call: c.Sessions.Limits.Call}
	a.health = health.New(health.Config{Engine: c.Engine, News: a.news, Reconcile: a.reconcile,
		Changed: func(container engine.State) { a.launch.ContainerChanged(container) },
		Clock:   c.Clock, Log: c.Log, Call: c.Sessions.Limits.Call, Every: c.Sessions.Limits.Reconcile})
	a.records = records.New(records.Config{Store: c.Store, Clock: c.Clock, Ended: a.accounts.Ending,
		Peak: func(id session.ID) gpu.Bytes { return a.meter.Peak(id) }, Tell: a.publishVersions,
		Trouble: a.news.PublishMachine,
		Dress:   func(s session.Session) session.Session { return a.Dress(s) }})
	return host.Host{Agent: c.Name, Owner: c.Owner, UID: c.UID, GID: c.GID, Engine: c.Engine, Records: a.records,
		Health: a.health, Limits: c.Sessions.Limits, Clock: c.Clock, Log: c.Log, News: a.news}, nil
}

// reconcile compares records and containers, and asks how devices are attached to containers.
func (a *Agent) reconcile(ctx context.Context) error {
	if err := a.launch.Reconcile(ctx); err != nil {
		return err
	}
	return a.attached.Ask(ctx)
}

// openMachine opens what measures and shares the machine, and what people reach in sessions and folders.
func (a *Agent) openMachine(h host.Host) (err error) {
	c := &a.config
	a.People, err = people.Open(people.Config{Host: h, Processes: c.Sessions.Processes,
		MPSForUsers: c.Devices.MPSForUsers, Admins: c.Sessions.Admins, Giving: c.Devices.Giving, Devices: a.devices,
		OffLimits: a.offLimits})
	if err != nil {
		return err
	}
	a.reclaim, err = reclaim.Open(reclaim.Config{Host: h, Moment: a.devices.Moment, Policy: c.Sessions.Idle,
		Guest: a.guestNow, EndSession: a.endSession, TimeLimit: c.Sessions.Planner})
	a.sampler = devices.NewSampler(a.devices, devices.Config{Host: h, Attached: a.attached, Books: a.accounts,
		Guard: c.Devices.Guard, EndProcess: c.Devices.EndProcess, EndSession: a.endSession,
		Used: a.reclaim.DevicesUsed})
	a.others = ledger.NewOthers(ledger.Config{Host: h, Devices: a.devices, Giving: c.Devices.Giving,
		Alone: c.Devices.Alone})
	a.meter = meter.New(meter.Config{Host: h, Dir: c.Dir, Load: c.Host.Load, Devices: a.devices.Loads,
		Measured: a.measured, Sampled: a.reclaim.Sampled})
	a.folders = folders.New(folders.Config{Host: h, Dir: filepath.Join(c.Dir, "folders"), Machine: c.Host.Files,
		OffLimits: a.offLimits, Opened: a.Opened})
	a.guests = guests.New(guests.Config{Host: h, Use: a.reclaim, Connect: c.Sessions.Link})
	a.apps = apps.New(apps.Config{Host: h, Use: a.reclaim, Limit: c.Sessions.App,
		Guest: func(ctx context.Context, id session.ID) (apps.Guest, error) { return a.guests.Guest(ctx, id, "") }})
	files := guests.NewFiles(guests.FilesConfig{Guests: a.guests, Use: a.reclaim,
		Folder: func(id session.FolderID) (guests.Tree, error) { return a.folders.Files(id) }})
	a.Terminals, a.SSH, a.Apps, a.Files, a.Uploads = a.guests, a.guests, a.apps, files, files
	a.Folders, a.FolderTrash = a.folders, a.folders
	return err
}

// guestNow returns the guest of a kernel if it is connected, else nil.
func (a *Agent) guestNow(id session.ID, kernel string) reclaim.Guest {
	if guest := a.guests.Now(id, kernel); guest != nil {
		return guest
	}
	return nil
}

// endSession is [host.EndSession] for rooms that are opened before launch.
func (a *Agent) endSession(id session.ID, ending host.Ending) (session.Session, error) {
	return a.launch.EndSession(id, ending)
}

func (a *Agent) measured(live, running []session.Session, stats map[string]engine.Stats) {
	a.accounts.Follow(a.devices.Moment(), live)
	for _, s := range running {
		for _, k := range s.Kernels {
			if of, ok := stats[k.Container]; ok {
				a.accounts.Used(of.At, s.ID, k.Container, of.CPU)
				a.launch.OutOfMemory(s.ID, k.Name, of.OOMKills)
				a.SawProcesses(s, of.Pids)
			}
		}
	}
}

// openLaunch opens the rooms that take a session from its launch to its end.
func (a *Agent) openLaunch(h host.Host) (err error) {
	c := &a.config
	a.images, err = images.Open(images.Config{Host: h, Dir: filepath.Join(c.Dir, "transfers"), Free: diskFree,
		Quota: c.Sessions.Arriving, People: a.People, TakeHome: a.folders.TakeHome, WriteKept: a.apps.WriteKept,
		Unreserve: func(ctx context.Context) func() { return a.warm.Free(ctx) }})
	if err != nil {
		return err
	}
	a.Images, a.ImageTransfers = a.images, a.images
	a.clones, err = clones.Open(clones.Config{Host: h, Dir: filepath.Join(c.Dir, "git"), Folders: a.folders})
	if err != nil {
		return err
	}
	a.Projects = struct {
		*projects.Projects
		*clones.Clones
	}{projects.New(a.folders, a.images, a.hasDevice), a.clones}
	a.logs, err = logs.Open(logs.Config{Host: h, Dir: filepath.Join(c.Dir, "logs"), Cap: c.Sessions.LogCap,
		Changed: a.news.next})
	if err != nil {
		return err
	}
	live, err := c.Store.LiveSessions()
	if err != nil {
		return err
	}
	if a.secrets, err = confidential.Open(filepath.Join(c.Dir, "confidential"), live, c.Log); err != nil {
		return err
	}
	a.launch, err = launch.Open(launch.Config{Host: h, Images: a.images, Folders: a.folders, Guests: a.guests,
		Confidential: a.secrets, Logs: a.logs, Devices: a.devices, Others: a.others, Boot: c.Host.Boot,
		Ended: func(s session.Session) { a.queue.Ended(s) }})
	reserves := launch.Reserves{Of: a.launch}
	a.warm = warm.New(warm.Config{Host: h, Most: c.Sessions.Warm, Machine: a.power, Fits: launch.Reservable,
		Reserve: reserves.Reserve, Release: reserves.Release})
	a.queue = queue.New(queue.Config{Host: h, Giving: c.Devices.Giving, Others: a.others, Launch: a.launch,
		People: a.People, Devices: a.devices, Attached: a.attached, Busy: a.meter.Busy,
		Purge: func() error { return a.Purge() }, Planner: c.Sessions.Planner})
	a.Sessions = sessions.New(sessions.Config{Host: h, KeepFinished: c.Sessions.KeepFinished, NewID: c.Sessions.NewID,
		Folders: a.folders, Queue: a.queue, Images: a.images, Launch: a.launch, People: a.People, Idle: a.reclaim,
		Confidential: a.secrets, Warm: a.warm,
		Removed: func(s session.Session) {
			a.logs.Remove(s.ID)
			a.meter.Remove(s.ID)
			a.secrets.Drop(s.ID)
			a.news.Publish(session.Event{Removed: &s.ID, Owner: s.Owner})
		}})
	a.Queue = struct {
		*queue.Queue
		*reclaim.Watch
		*warm.Pool
	}{a.queue, a.reclaim, a.warm}
	a.Moves = struct {
		sessions.Handovers
		launch.Parkings
	}{sessions.Handovers{Of: a.Sessions}, launch.Parkings{Of: a.launch}}
	return err
}

// power is what decides whether containers wait for launches.
func (a *Agent) power() warm.Machine {
	a.meter.Refresh()
	state := a.health.State()
	return warm.Machine{Up: state.Up, Battery: warm.OnBattery(warm.PowerSupplies), Memory: state.Info.Memory,
		Free: state.Info.Memory - a.meter.Load().Memory}
}

// openServices opens what keeps models served.
func (a *Agent) openServices(h host.Host) error {
	c := &a.config
	ports, err := listeners.Open(listeners.Config{Dir: c.Dir, Store: c.Store, Network: c.Host.Services,
		Listen: c.Host.Listen, Clock: c.Clock, Log: c.Log})
	if err != nil {
		return err
	}
	a.serves, err = services.Open(services.Config{Host: h, Sessions: a.Sessions, LastLines: a.lastLines,
		Accounts: a.accounts, Listeners: ports, DeviceMemory: a.largestDevice, Sample: a.meter.Newest,
		Dial: a.guests.Dial})
	a.Services = a.serves
	return err
}

// resumeAccounts resumes the accounts and what is stored with them.
func (a *Agent) resumeAccounts() error {
	books := a.config.Store
	live, err := books.LiveSessions()
	if err != nil {
		return err
	}
	now := a.devices.Moment()
	last, _, err := a.accounts.LastCheckpoint()
	if err == nil {
		err = errors.Join(a.reclaim.Resume(now, last, live), a.devices.Resume(books))
	}
	if err != nil {
		a.config.Log.Warn("idle checks and device histories start over", "err", err)
	}
	a.accounts.Add(a.reclaim)
	a.accounts.Add(a.devices)
	return a.accounts.Resume(now, live)
}

func (a *Agent) offLimits() offlimits.Places {
	info := a.health.State().Info
	places := a.config.OffLimits
	places.Machine = a.config.Host.Files
	places.Own = append(slices.Clip(places.Own), a.config.Dir)
	places.Engine, places.Socket = info.DataRoot, info.Socket
	return places
}

// diskFree returns the free space of the disk that a directory is on.
func diskFree(dir string) (gpu.Bytes, error) {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return gpu.Bytes(usage.Free), nil
}

// Run runs the agent until ctx ends, then waits for what it started. Containers keep running. It is called once.
func (a *Agent) Run(ctx context.Context) error {
	defer a.images.Stop()
	defer context.AfterFunc(ctx, a.images.Stop)()
	for _, room := range []interface{ Run(ctx context.Context) }{a.health, a.queue, a.meter, a.sampler, a.reclaim,
		a.folders, a.images, a.serves, a.clones, a.warm} {
		a.tasks.Go(func() { room.Run(ctx) })
	}
	<-ctx.Done()
	a.tasks.Wait()
	a.launch.Wait()
	if a.accounts.Active() {
		_ = a.accounts.Checkpoint(a.devices.Moment(), true) // it logs its failure
	}
	return context.Cause(ctx)
}

// Close ends every Watch. It is called after Run has returned.
func (a *Agent) Close() error {
	a.images.Close()
	a.news.close()
	return nil
}
