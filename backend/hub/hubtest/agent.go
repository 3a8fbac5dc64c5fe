// Package hubtest has an in-memory agent for tests of the hub and the server. It has sessions, sends an event for every
// change, and fails on request.
package hubtest

import (
	"context"
	"sync"

	"slipway/backend/session"
)

// Agent is an agent without a machine. Only tests change its sessions. Its parts answer in methods with lower-case
// names; build/rpcgen generates those that callers see. The functions may be replaced before it is used.
type Agent struct {
	*base
	*sessions
	*inside
	*machine
	*services

	session.Folders
	session.FolderTrash
	// set by tests that need files and images to move
	session.Files
	session.Uploads
	session.ImageTransfers
	rest
}

// rest has the methods that Agent has nowhere else.
type rest struct{ unanswered }

func (a *Agent) Agent() session.Agent { return session.AgentOf(a, nil) }

// base is what all parts of an agent share: whether it is reached, and its events.
type base struct {
	Name     string
	Instance string // as in [session.Machine]
	Owner    string // of the caller, as the machine reports it, like Role
	Role     session.Role

	mu      sync.Mutex // guards everything below, and the data of the parts
	epoch   string
	seq     uint64
	events  []session.Event
	changed chan struct{} // closed and replaced on every change
	down    bool
	cuts    int           // how often it was set down
	muted   chan struct{} // if not nil, calls wait until it is closed
}

// New returns an agent without sessions.
func New(name string) *Agent {
	b := &base{Name: name, epoch: "epoch-1", changed: make(chan struct{})}
	machine, folders := &machine{base: b}, &folders{agent: name}
	sessions := &sessions{base: b, machine: machine, keys: map[string]session.ID{}, refused: map[string]error{},
		moved: map[session.ID]session.ID{}, chosen: map[session.ID]bool{}}
	return &Agent{base: b, sessions: sessions, machine: machine,
		services: &services{base: b},
		inside:   &inside{sessions: sessions, apps: map[session.ID][]session.App{}},
		Files:    unanswered{}, Uploads: unanswered{}, ImageTransfers: unanswered{},
		Folders: folders, FolderTrash: folders}
}

func unsupported(method string) error {
	return failed(session.CodeAgentUnsupported, method+" is not a part of this agent.")
}

func failed(code session.Code, message string) error {
	return session.NewError(code, message, "Change what the test asks for.")
}

func (a *base) unavailable() error {
	return failed(session.CodeAgentUnavailable, "The agent "+a.Name+" is not reached.")
}

// enter begins a call. It returns with mu held, unless it fails.
func (a *base) enter(ctx context.Context) error {
	a.mu.Lock()
	var err error
	for a.muted != nil && err == nil {
		err = a.wait(ctx, a.muted)
	}
	if err == nil && a.down {
		err = a.unavailable()
	}
	if err != nil {
		a.mu.Unlock()
	}
	return err
}

// wait waits until something is closed. The caller holds mu, which is released meanwhile.
func (a *base) wait(ctx context.Context, something <-chan struct{}) error {
	a.mu.Unlock()
	defer a.mu.Lock()
	select {
	case <-something:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read returns a value that mu guards.
func read[T any](a *base, value *T) T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *value
}

// do calls change with mu held.
func (a *base) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// wake is called with mu held.
func (a *base) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// tell is called with mu held.
func (a *base) tell(e session.Event) {
	a.seq++
	e.Epoch, e.Seq = a.epoch, a.seq
	a.events = append(a.events, e)
	a.wake()
}

// SetDown makes every call fail and every Watch end, until it is reset.
func (a *base) SetDown(down bool) {
	a.do(func() {
		if a.down = down; down {
			a.cuts++
		}
		a.wake()
	})
}

// SetMute makes calls wait, like those of a silent machine, until it is reset.
func (a *base) SetMute(mute bool) {
	a.do(func() {
		if a.muted != nil {
			close(a.muted)
			a.muted = nil
		}
		if mute {
			a.muted = make(chan struct{})
		}
	})
}

// Restart starts a new epoch, like a restart of the agent's process.
func (a *base) Restart(epoch string) {
	a.do(func() {
		a.epoch, a.seq, a.events = epoch, 0, nil
		a.wake()
	})
}

func (a *base) Tell(e session.Event) { a.do(func() { a.tell(e) }) }

// Machine always answers, since the hub calls it while it connects.
func (a *base) Machine(context.Context) (session.Machine, error) { return a.itself(), nil }

func (a *base) itself() session.Machine {
	return session.Machine{Agent: a.Name, Instance: a.Instance, Caller: session.Caller{Owner: a.Owner, Role: a.Role},
		Platform: session.Platform{Engine: "fake"}, Capacity: session.Capacity{CPUs: 8, Memory: 16 << 30}}
}
