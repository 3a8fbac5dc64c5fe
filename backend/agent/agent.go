package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/apps"
	"slipway/backend/agent/devices"
	"slipway/backend/agent/doctor"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/health"
	"slipway/backend/agent/images"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/logs"
	"slipway/backend/agent/meter"
	"slipway/backend/agent/networks"
	"slipway/backend/agent/others"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/reclaim"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/layers"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Config says what an agent rules and with what. Engine and Store belong to the
// caller, who closes them after the agent.
type Config struct {
	Name string // of the agent, for example "local"
	// Hostname is what the machine calls itself. Empty: what the operating system says.
	Hostname string
	Dir      string // its data folder; logs/ inside it keeps logs of ended sessions
	Engine   engine.Engine
	Store    *store.Store
	Owner    string // owner of launches that name none
	// OffLimits are the places that no session may see; Dir and what the engine
	// tells of itself are added.
	OffLimits offlimits.Places
	UID       int // of the person whose sessions these are
	GID       int
	Version   string
	Log       *slog.Logger // nil: slog's default

	KeepFinished int       // records of ended sessions that are kept; 0: 10,000
	LogCap       gpu.Bytes // of one kept log; 0: 64 MiB
	Limits       launch.Limits
	// GPU finds and measures the machine's devices; it belongs to the caller.
	// nil: the machine has none.
	GPU gpu.Source
	// Giving says how shares of devices are given.
	Giving gpu.Config
	// Moment reads the clocks that accounts are kept by. nil: one that cannot
	// tell time suspended from time awake.
	Moment func() gpu.Moment
	// Guard is what happens to a session that stays above its share of a
	// device's memory.
	Guard gpu.Policy
	// EndProcess asks a process to end, under [gpu.PolicyEndProcess]. nil: none
	// can be asked, and the guard warns only.
	EndProcess func(pid int, start uint64) error
	// MPSForUsers lets people who do not rule the agent share devices through MPS,
	// by which they get the machine's /dev/shm.
	MPSForUsers bool
	// Processes is the most processes and threads in a container; 0: no limit.
	Processes int
	// Idle is the policy for sessions that have none of their own.
	Idle session.IdlePolicy
	// Link makes the client of a guest over a fresh connection. nil: package link's.
	Link func(ctx context.Context, conn net.Conn) (guests.Client, error)
	// Load measures the machine. nil: what the operating system says.
	Load func(dataRoot string) (meter.Load, error)
	// Alone takes the lock that every agent of this machine takes while it looks
	// what devices others hold and creates containers with devices of its own. It
	// fails where somebody keeps it for too long. nil: there is no such lock.
	Alone func(ctx context.Context) (release func(), err error)
	// NewID makes the id of a session that is launched. nil: a random one.
	NewID func(session.LaunchRequest) session.ID
	// Clock is what sessions go by. nil: the clock on the wall.
	Clock *pace.Clock
	// Doctor is what only the doctor needs.
	Doctor doctor.Config
	// Images bounds what one person has on the way here from other agents; the
	// agent's own person is bounded as well.
	Images layers.Quota
	// Boot is when the machine was started. nil: what the operating system says.
	Boot func() (time.Time, error)
}

// parts are those of the agent that answer calls themselves.
type parts struct {
	session.Folders
	session.Images
	session.ImageTransfers
	session.Apps
	session.Terminals
	session.SSH
	session.Files
	allowances
}

// allowances are what people may hold.
type allowances interface {
	// Allowance is the most that somebody may hold.
	Allowance(owner string) session.Allowance
	// Allowances returns what was set, by owner.
	Allowances() map[string]session.Allowance
	// SetAllowance sets what somebody may hold; nil: nothing of their own.
	SetAllowance(owner string, allowance *session.Allowance) error
	// MPSForUsers reports whether people who do not rule the agent may share
	// devices through MPS.
	MPSForUsers() bool
}

// Agent rules one machine. Its methods are safe for concurrent use; sessions
// move only while Run runs.
type Agent struct {
	parts
	config  Config
	clock   *pace.Clock
	limits  launch.Limits
	engine  engine.Engine
	store   *store.Store
	records *records.Records
	log     *slog.Logger
	stream  *stream
	health  *health.Watch
	meter   *meter.Meter

	devices  *devices.Devices
	sampler  *devices.Sampler
	attached *devices.Attachment // how devices are handed to containers
	others   *others.Others
	accounts *accounts.Books
	reclaim  *reclaim.Watch
	folders  *folders.Folders
	apps     *apps.Apps
	guests   *guests.Guests
	logs     *logs.Logs
	networks *networks.Networks
	people   *people.People
	images   *images.Images
	launch   *launch.Runner
	queue    *queue.Queue
	sweep    chan struct{} // of capacity 1: a network may be left over
	closed   chan struct{}
	once     sync.Once
	tasks    sync.WaitGroup // everything that Run started
}

var _ session.Agent = (*Agent)(nil)

// withDefaults fills in what need not be said.
func (config Config) withDefaults() Config {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.KeepFinished == 0 {
		config.KeepFinished = 10_000
	}
	if config.LogCap == 0 {
		config.LogCap = logs.DefaultCap
	}
	if config.Link == nil {
		config.Link = func(ctx context.Context, conn net.Conn) (guests.Client, error) { return link.Connect(ctx, conn) }
	}
	if config.NewID == nil {
		config.NewID = func(session.LaunchRequest) session.ID { return session.NewID() }
	}
	if config.Moment == nil {
		config.Moment = devices.OwnMoment()
	}
	if config.Boot == nil {
		config.Boot = meter.BootTime
	}
	return config
}

// Open returns an agent that answers questions and accepts launches. The engine
// need not answer yet.
func Open(_ context.Context, config Config) (*Agent, error) {
	config = config.withDefaults()
	books, err := accounts.Open(config.Store, config.Clock, config.Log)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		config: config, clock: config.Clock, limits: config.Limits.WithDefaults(), engine: config.Engine,
		store: config.Store, log: config.Log,
		stream:   newStream(randomHex()),
		devices:  devices.New(config.GPU, config.Moment),
		accounts: books,
		sweep:    make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	a.health = health.New(health.Config{Engine: a.engine, Machine: engineNeeds{a}, Clock: a.clock, Log: a.log,
		Sweep: a.sweep, Call: a.limits.Call, Every: a.limits.Reconcile})
	a.records = records.New(records.Config{Store: a.store, Clock: a.clock, Ended: a.accounts.Ending,
		Tell: a.publishVersions, Dress: a.dress, Trouble: a.publishMachine})
	a.people, err = people.Open(people.Config{Owner: config.Owner, Processes: config.Processes,
		MPSForUsers: config.MPSForUsers, Giving: config.Giving, Records: a.records,
		Devices: func() []gpu.Device { return a.devices.Now().Devices }, OffLimits: a.offLimits,
		Changed: func() {
			a.queue.Wake()
			a.publishMachine()
		}, Log: a.log})
	if err != nil {
		return nil, err
	}
	a.allowances = a.people
	a.reclaim, err = reclaim.Open(reclaim.Config{Agent: reclaimNeeds{a}, Sessions: a.records, Store: a.store,
		Clock: a.clock, Moment: a.devices.Moment, Log: a.log, Policy: config.Idle})
	if err != nil {
		return nil, err
	}
	a.attached = &devices.Attachment{Engine: a.engine, Devices: a.devices, Log: a.log, Call: a.limits.Call}
	a.sampler = devices.NewSampler(a.devices, devices.Config{Agent: samplerNeeds{a}, Sessions: a.records,
		Store: a.store, Books: a.accounts, Clock: a.clock, Log: a.log, Call: a.limits.Call, Guard: config.Guard,
		EndProcess: config.EndProcess})
	a.others = others.New(others.Config{Machine: othersNeeds{a}, Engine: a.engine, Health: a.health, Clock: a.clock,
		Log: a.log, Call: a.limits.Call, Alone: config.Alone})
	a.meter = meter.New(meter.Config{Agent: meterNeeds{a}, Engine: a.engine, Health: a.health, Clock: a.clock,
		Log: a.log, Dir: config.Dir, Load: config.Load, Call: a.limits.Call})
	a.folders = folders.New(folders.Config{Dir: filepath.Join(config.Dir, "folders"), UID: config.UID,
		GID: config.GID, Agent: config.Name, Owner: config.Owner, Records: a.records, Machine: directories{a.people, a.offLimits},
		Clock: a.clock, Log: a.log})
	a.guests = guests.New(guests.Config{Engine: a.engine, Records: a.records, Health: a.health, Use: a.reclaim,
		Connect: config.Link, Lasting: launch.Lasting, Limit: a.limits.Guest})
	a.Terminals, a.SSH = a.guests, a.guests
	a.Files = guests.NewFiles(guests.FilesConfig{Guests: a.guests, Use: a.reclaim,
		Folder: func(id session.FolderID) (guests.Tree, error) { return a.folders.Files(id) }})
	a.apps = apps.New(apps.Config{Guest: func(ctx context.Context, id session.ID) (apps.Guest, error) {
		return a.guests.Guest(ctx, id, "")
	}, Engine: a.engine, Records: a.records, Use: a.reclaim, Limit: a.limits.App, Root: config.UID == 0})
	a.Folders, a.Apps = a.folders, a.apps
	a.images, err = images.Open(images.Config{Dir: filepath.Join(config.Dir, "transfers"), Free: diskFree,
		Quota: config.Images, Owner: config.Owner, Engine: config.Engine, Records: a.records, People: a.people,
		Health: a.health, Limits: images.Limits{Call: a.limits.Call, PullStall: a.limits.PullStall,
			Commit: a.limits.Commit, Remove: a.limits.Remove}, Clock: a.clock, Log: a.log})
	if err != nil {
		return nil, err
	}
	a.Images, a.ImageTransfers = a.images, a.images
	a.logs, err = logs.Open(logs.Config{Dir: filepath.Join(config.Dir, "logs"), Cap: config.LogCap,
		Engine: a.engine, Records: a.records, Health: a.health, Changed: a.stream.next, Log: a.log})
	if err != nil {
		return nil, err
	}
	a.networks, err = networks.Open(networks.Config{Agent: config.Name, Engine: config.Engine, Records: a.store,
		Limit: a.limits.Call, Log: a.log})
	if err != nil {
		return nil, err
	}
	a.launch = a.newRunner()
	a.queue = a.newQueue()
	if err := a.resumeAccounts(); err != nil {
		return nil, err
	}
	return a, nil
}

// Run rules the machine until ctx ends, then waits for everything that it
// started. Containers go on. It is called once.
func (a *Agent) Run(ctx context.Context) error {
	defer a.images.Stop()
	defer context.AfterFunc(ctx, a.images.Stop)()
	a.tasks.Go(func() { a.health.Run(ctx) })
	a.tasks.Go(func() { a.queue.Run(ctx) })
	a.tasks.Go(func() { a.meter.Run(ctx) })
	a.tasks.Go(func() { a.sampler.Run(ctx) })
	a.tasks.Go(func() { a.reclaim.Run(ctx) })
	a.tasks.Go(func() { a.folders.Run(ctx) })
	<-ctx.Done()
	a.tasks.Wait()
	a.launch.Wait()
	return context.Cause(ctx)
}

// Close ends every Watch. It is called after Run has returned.
func (a *Agent) Close() error {
	a.images.Close()
	a.once.Do(func() { close(a.closed) })
	return nil
}

// signal puts a token into a channel of capacity 1 unless one is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func randomHex() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see the documentation of crypto/rand
	return hex.EncodeToString(b[:])
}

// dress adds to a stored session what is known and not stored.
func (a *Agent) dress(s session.Session) session.Session {
	switch s.Status {
	case session.Pending:
		s.Wait = a.queue.Wait(s.ID)
	case session.Pulling:
		s.Pull = a.launch.Pull(s.ID)
	case session.Running:
		s.Idle = a.reclaim.Checks(s.ID)
	}
	return s
}
