// Package launch starts placed sessions, watches over them and ends them. Each has a goroutine, its course, which reads
// the record and does what the status requires.
//
// Two phases lead to RUNNING, each a list of steps with an undo: prepare (image, pull) and start (network, create,
// start, guest). A step that fails for a reason that may pass is undone and the phase tried again, at most five times
// with growing pauses; one that would fail again ends the session at once. Every end goes through TERMINATING, with the
// reason stored first.
//
// The record is written before an action, and every action can be repeated. So after a crash, reconciling only starts a
// course for every placed session and compares the engine's list with the records. While the engine does not answer,
// running sessions keep their status, and what is being launched returns to PENDING; only a forced end does not wait
// for the engine.
package launch

import (
	"sync"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/host"
	"slipway/backend/agent/images"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/logs"
	"slipway/backend/scheduler"
	"slipway/backend/session"
)

// Config says how sessions are launched.
type Config struct {
	host.Host
	Images  *images.Images
	Folders *folders.Folders
	Guests  *guests.Guests
	Logs    *logs.Logs
	Devices *devices.Devices
	Others  *ledger.Others
	Boot    func() (time.Time, error) // when the machine was started
	Ended   func(s session.Session)
}

// Runner launches, watches over and ends the sessions of a machine.
type Runner struct {
	config    Config
	networks  *networks
	leftovers *leftovers
	tasks     sync.WaitGroup

	mu      sync.Mutex // guards everything below
	courses map[session.ID]*course
	pulls   map[session.ID]*session.Pull
}

// Open returns a runner without courses.
func Open(config Config) (*Runner, error) {
	networks, err := openNetworks(config.Host)
	return &Runner{config: config, networks: networks, courses: map[session.ID]*course{},
		pulls:     map[session.ID]*session.Pull{},
		leftovers: &leftovers{host: config.Host, strays: map[string]time.Time{}, held: map[string]held{}}}, err
}

func (r *Runner) Wait() { r.tasks.Wait() }

func (r *Runner) Busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.courses)
}

// OutOfMemory warns of processes of a kernel that were killed for memory. count is their number so far.
func (r *Runner) OutOfMemory(id session.ID, kernel string, count int) {
	if c := r.courseOf(id); c != nil {
		c.OutOfMemory(kernel, count)
	}
}

// Pull is the progress of the pull of a session's image, nil if there is none.
func (r *Runner) Pull(id session.ID) *session.Pull {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulls[id]
}

func (r *Runner) Left() []scheduler.Promise { return r.leftovers.list() }

// showPull publishes the progress of a pull, nil once it is over.
func (r *Runner) showPull(s session.Session, progress *session.Pull) {
	r.mu.Lock()
	if progress == nil {
		delete(r.pulls, s.ID)
	} else {
		r.pulls[s.ID] = progress
	}
	r.mu.Unlock()
	if progress != nil {
		r.config.PublishSession(s)
	}
}

func (r *Runner) Steps(id session.ID) []session.Step {
	if c := r.courseOf(id); c != nil {
		return c.currentSteps()
	}
	return nil
}
