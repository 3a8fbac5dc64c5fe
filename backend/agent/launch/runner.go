// Package launch brings placed sessions to where they run, watches over them, and ends them: one goroutine for each,
// its course, which reads the record and does what its status calls for.
//
// Two phases lead to RUNNING, each an ordered list of steps with an undo: prepare (image, pull) and start (network,
// create, start, guest). A step that fails for a reason that may pass is undone and the phase tried again, at most five
// times with growing pauses; one that will fail again ends the session at once. Every end goes through TERMINATING,
// with the reason stored first.
//
// The record is written before the deed, and every deed can be repeated, so that after a crash reconciling is nothing
// but starting a course for every placed session and comparing the engine's list with the records. While the engine
// does not answer, running sessions keep their status, and what is being launched goes back to PENDING; only an end
// that is forced does not wait for it.
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

// Open returns a runner of no session yet.
func Open(config Config) (*Runner, error) {
	networks, err := openNetworks(config.Host)
	return &Runner{config: config, networks: networks, courses: map[session.ID]*course{},
		pulls:     map[session.ID]*session.Pull{},
		leftovers: &leftovers{host: config.Host, strays: map[string]time.Time{}, held: map[string]held{}}}, err
}

// Wait waits until nothing is done any more for any session.
func (r *Runner) Wait() { r.tasks.Wait() }

// Busy is for how many sessions something is done.
func (r *Runner) Busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.courses)
}

// OutOfMemory warns of processes of a kernel that the kernel of the machine killed for memory. count is of all so far.
func (r *Runner) OutOfMemory(id session.ID, kernel string, count int) {
	if c := r.courseOf(id); c != nil {
		c.OutOfMemory(kernel, count)
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
		r.config.PublishSession(s)
	}
}

// Steps are those of the phase that a session is in.
func (r *Runner) Steps(id session.ID) []session.Step {
	if c := r.courseOf(id); c != nil {
		return c.currentSteps()
	}
	return nil
}
