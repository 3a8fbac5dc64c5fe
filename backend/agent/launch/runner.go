// Package launch brings placed sessions to where they run, watches over them,
// and ends them: one goroutine for each, which reads the record and does what its
// status calls for. What the engine has is compared with the records, too.
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

// Machine is what a launch and an end have others do.
type Machine interface {
	PlanAgain()
	PublishMachine()
	SweepNetworks()
	// Pulling tells watchers that the pull of a session has come on.
	Pulling(s session.Session)
	Started(id session.ID)
	Ended(s session.Session)
}

// Config says how sessions are launched.
type Config struct {
	Agent    string // its name
	UID, GID int    // of the person whose sessions these are
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
	// Alone creates the containers of a session with devices while no other agent
	// of the machine does. It fails with engine_create_devices-taken where another
	// has given them.
	Alone func(ctx context.Context, s session.Session,
		create func(context.Context) (containers []string, err error)) error
	Devices func() []gpu.Device
	Boot    func() (time.Time, error) // when the machine was started
	Limits  Limits
	Clock   *pace.Clock
	Log     *slog.Logger
}

// Runner launches, watches over and ends the sessions of a machine.
type Runner struct {
	config Config
	tasks  sync.WaitGroup

	mu       sync.Mutex // guards everything below
	courses  map[session.ID]*course
	pulls    map[session.ID]*session.Pull
	strays   map[string]time.Time // containers without a record, by id, since when
	left     map[string]held      // by containers that no session needs
	leftEnds uint64               // counts ends that left something behind
}

// New returns a runner of no session yet.
func New(config Config) *Runner {
	return &Runner{config: config, courses: map[session.ID]*course{}, pulls: map[session.ID]*session.Pull{},
		strays: map[string]time.Time{}, left: map[string]held{}}
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

// Steps are those of the phase that a session is in.
func (r *Runner) Steps(id session.ID) []session.Step {
	if c := r.courseOf(id); c != nil {
		return c.currentSteps()
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
