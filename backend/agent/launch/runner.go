// Package launch brings placed sessions to where they run, watches over them,
// and ends them: one goroutine for each, which reads the record and does what its
// status calls for. What the engine has is compared with the records, too.
//
// That goroutine is the session's course. Two phases lead to RUNNING, each an
// ordered list of steps with an undo: prepare (image, pull) and start
// (network, create, start, guest). A step that fails for a reason that may pass is
// undone and the phase tried again, at most five times with growing pauses; one
// that will fail again, such as an image that nobody has, ends the session at
// once. Each step and each phase has a time limit. While RUNNING the course
// keeps the links to the guests, the timeout of a batch, and an eye on the
// containers. A cluster session has several, the kernels, on a private network:
// they are made and started together, and one that ends takes the others
// along. Every end goes through TERMINATING, with the reason stored first: stop,
// keep the log, remove; then the record says TERMINATED, CANCELLED or ERROR.
//
// A launch without a pull costs four transactions until RUNNING: PENDING; the
// placement; PREPARED and CREATING; RUNNING.
//
// # Crashes
//
// The record is written before the deed, and every deed can be repeated: a
// container's name and labels carry session and attempt, and creating it again
// finds it. So reconciling is nothing but starting a course for every placed
// session, and comparing the engine's list with the records: containers of
// ended sessions and of earlier attempts are removed, running ones that no
// record knows are adopted from their labels. This happens at the start, when
// the engine answers again, and every minute.
//
// A container that no session needs and that cannot be removed keeps what was
// granted to it until it is gone, so that nobody is given the same.
//
// # While the engine does not answer
//
// Running sessions keep their status. What is being launched goes back to
// PENDING and waits, with the engine named as the reason; its remains are
// removed before it is tried again. Ends under way finish when the engine is
// back, unless they are forced: then the session ends at once, with a warning
// that names what is left behind.
package launch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Engine has the containers.
type Engine interface {
	Create(ctx context.Context, c engine.Container) (id string, err error)
	Start(ctx context.Context, id string) error
	Stop(ctx context.Context, id string, grace time.Duration) error
	Remove(ctx context.Context, id string) error
	List(ctx context.Context) ([]engine.State, error)
	Inspect(ctx context.Context, id string) (engine.State, error)
	Image(ctx context.Context, ref string) (session.Image, error)
}

// Records hold the sessions.
type Records interface {
	Change(id session.ID, change func(*records.Draft) error) (session.Session, error)
	Update(change func(*store.Tx) error) error
	Tell(versions []session.Session)
	Get(id session.ID) (session.Session, error)
	Live() ([]session.Session, uint64, error)
	Instance() string
	Secret() []byte
}

// Networks are the networks of sessions' containers.
type Networks interface {
	Of(s session.Session) engine.Network
	Create(ctx context.Context, s session.Session) error
	Leave(ctx context.Context, s session.Session) error
	Sweep(ctx context.Context) error
}

// Images are the images that sessions start from.
type Images interface {
	MayUse(s session.Session, image session.Image) error
	MayLogin(owner string, byAdmin bool) bool
	Fetch(ctx context.Context, ref string, logins bool, progress func(session.Pull)) error
}

// Commits makes images of sessions at their ends.
type Commits interface {
	Committing(id session.ID) (job string)
	AwaitEnd(ctx context.Context, job string) error
	CancelImageWork(ctx context.Context, job string) (session.ImageWork, error)
	Series(ctx context.Context, s session.Session) ([]session.Image, error)
	Commit(ctx context.Context, s session.Session, origin session.ImageOrigin, tell func(gpu.Bytes)) error
	DropOlder(ctx context.Context, s session.Session) (said string, err error)
}

// Health is whether the engine answers.
type Health interface {
	// Heed learns of a failure of the engine, and returns it.
	Heed(err error) error
	// Await waits until the engine answers.
	Await(ctx context.Context) error
	// During reports whether the engine did not answer at a time.
	During(at time.Time) bool
}

// Devices are those of the machine.
type Devices interface {
	List() []gpu.Device
	// Alone creates the containers of a session with devices while no other agent
	// of the machine does. It fails with engine_create_devices-taken where another
	// has given them.
	Alone(ctx context.Context, s session.Session,
		create func(context.Context) (containers []string, err error)) error
}

// Machine is what a launch and an end need of the machine, and have others do.
type Machine interface {
	// Boot is when the machine was started.
	Boot() (time.Time, error)
	PlanAgain()
	PublishMachine()
	SweepNetworks()
	// Pulling tells watchers that the pull of a session has come on.
	Pulling(s session.Session)
	Started(id session.ID)
	Ended(s session.Session)
}

// Self is whose sessions these are.
type Self struct {
	Agent    string // its name
	UID, GID int    // of the agent's own person
}

// Config says how sessions are launched.
type Config struct {
	Self
	Engine   Engine
	Records  Records
	Networks Networks
	Images   Images
	Commits  Commits
	Health   Health
	Machine  Machine
	Folders  interface {
		Mounts(s session.Session) (folders.Mounted, error)
	}
	Guests interface {
		Follow(id session.ID, listener guests.Listener) *guests.Links
	}
	Logs interface {
		Copy(ctx context.Context, id session.ID, kernel, container string) error
	}
	Devices Devices
	Limits  Limits
	Clock   *pace.Clock
	Log     *slog.Logger
}

// Runner launches, watches over and ends the sessions of a machine.
type Runner struct {
	config     Config
	containers containers
	leftovers  *leftovers
	tasks      sync.WaitGroup

	mu      sync.Mutex // guards everything below
	courses map[session.ID]*course
	pulls   map[session.ID]*session.Pull
}

// New returns a runner of no session yet.
func New(config Config) *Runner {
	return &Runner{config: config, courses: map[session.ID]*course{}, pulls: map[session.ID]*session.Pull{},
		containers: containers{self: config.Self, records: config.Records, networks: config.Networks,
			devices: config.Devices.List},
		leftovers: &leftovers{engine: config.Engine, records: config.Records, planAgain: config.Machine.PlanAgain,
			limits: config.Limits, clock: config.Clock, log: config.Log, strays: map[string]time.Time{},
			held: map[string]held{}}}
}

// Wait waits until nothing is done any more for any session.
func (r *Runner) Wait() { r.tasks.Wait() }

// Busy is for how many sessions something is done.
func (r *Runner) Busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.courses)
}

// OutOfMemory warns of processes of a kernel that the kernel of the machine killed
// for memory. count is of all so far.
func (r *Runner) OutOfMemory(id session.ID, kernel string, count int) {
	if c := r.courseOf(id); c != nil {
		listener{r, c}.OutOfMemory(kernel, count)
	}
}

// Pull is how far the pull of a session's image is, nil where there is none.
func (r *Runner) Pull(id session.ID) *session.Pull {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulls[id]
}

// Left is what containers hold that no session needs.
func (r *Runner) Left() []scheduler.Promise { return r.leftovers.list() }

// showPull notes the progress of a pull, nil once it is over, and tells of it.
func (r *Runner) showPull(s session.Session, progress *session.Pull) {
	r.mu.Lock()
	if progress == nil {
		delete(r.pulls, s.ID)
	} else {
		r.pulls[s.ID] = progress
	}
	r.mu.Unlock()
	if progress != nil {
		r.config.Machine.Pulling(s)
	}
}

// Steps are those of the phase that a session is in.
func (r *Runner) Steps(id session.ID) []session.Step {
	if c := r.courseOf(id); c != nil {
		return c.currentSteps()
	}
	return nil
}
