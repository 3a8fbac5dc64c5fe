// Package hubtest gives the hub and the server an agent in memory to be tested
// on: it keeps sessions, tells of every change, and fails when told to.
package hubtest

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"

	"slipway/backend/session"
)

// Agent is a [session.Agent] without a machine. Sessions move only when a test
// moves them. What it answers is in methods whose names begin with a small
// letter; build/rpcgen writes those that callers see. The functions may be
// replaced before it is used.
type Agent struct {
	Name     string
	Instance string // as in [session.Machine]
	// Owner and Role are what the machine says of who asks it.
	Owner string
	Role  session.Role
	// Attach and Run are given the far end of a terminal or a command.
	Attach func(session.AttachRequest, net.Conn)
	// Wrap makes the near end of a terminal of a pipe; nil: the pipe itself.
	Wrap func(net.Conn) net.Conn
	Run  func(session.ExecRequest, net.Conn)
	// Log is what Logs returns.
	Log func(context.Context, session.LogOptions) (io.ReadCloser, error)
	// SSH answers a connection to a session's ssh server, which is known by HostKey.
	SSH     func(ctx context.Context, req session.SSHRequest) (net.Conn, error)
	HostKey string
	// Dial connects to a port of a session.
	Dial func(ctx context.Context, id session.ID, port int) (net.Conn, error)
	// Probe fails where the machine cannot be probed.
	Probe func(context.Context) error
	session.Folders
	// Files and images to move are there where a test gives it some.
	session.Files
	session.ImageTransfers
	rest

	// mu guards everything below.
	mu       sync.Mutex
	epoch    string
	seq      uint64
	events   []session.Event
	changed  chan struct{} // closed and replaced by every change
	sessions []session.Session
	keys     map[string]session.ID
	images   []session.Image
	works    []session.ImageWork
	apps     map[session.ID][]session.App
	board    *session.DeviceBoard
	rows     []session.Account
	span     session.AccountSpan
	phases   []session.Phase
	refused  map[string]error // by the name of the session
	down     bool
	muted    chan struct{} // not nil: calls wait until it is closed
	launches int
	starts   int
}

// rest has the methods that Agent has nowhere else.
type rest struct{ unanswered }

var _ session.Agent = (*Agent)(nil)

// New returns an agent without sessions.
func New(name string) *Agent {
	return &Agent{Name: name, Files: unanswered{}, ImageTransfers: unanswered{}, Folders: &folders{agent: name},
		epoch: "epoch-1", changed: make(chan struct{}), keys: map[string]session.ID{}, refused: map[string]error{},
		apps: map[session.ID][]session.App{}}
}

func unsupported(method string) error {
	return failed("agent_call_unsupported", method+" is not a part of this agent.")
}

func failed(code session.Code, message string) error {
	return &session.Error{Code: code, Message: message, Hint: "Change what the test asks for."}
}

func (a *Agent) unavailable() error {
	return failed("agent_call_unavailable", "The agent "+a.Name+" is not reached.")
}

// enter begins a call. It returns with mu held, but where it fails.
func (a *Agent) enter(ctx context.Context) error {
	a.mu.Lock()
	for a.muted != nil {
		if err := a.wait(ctx, a.muted); err != nil {
			a.mu.Unlock()
			return err
		}
	}
	if a.down {
		a.mu.Unlock()
		return a.unavailable()
	}
	return nil
}

// wait needs mu, which it gives up until something is closed.
func (a *Agent) wait(ctx context.Context, something <-chan struct{}) error {
	a.mu.Unlock()
	defer a.mu.Lock()
	select {
	case <-something:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do changes something about the agent.
func (a *Agent) do(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// wake needs mu.
func (a *Agent) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// tell needs mu.
func (a *Agent) tell(e session.Event) {
	a.seq++
	e.Epoch, e.Seq = a.epoch, a.seq
	a.events = append(a.events, e)
	a.wake()
}

// put needs mu.
func (a *Agent) put(s session.Session) session.Session {
	s.Agent = a.Name
	s.Revision++
	if i := a.index(s.ID); i >= 0 {
		a.sessions[i] = s
	} else {
		a.sessions = append(a.sessions, s)
	}
	told := s
	a.tell(session.Event{Session: &told})
	return s
}

// index needs mu.
func (a *Agent) index(id session.ID) int {
	return slices.IndexFunc(a.sessions, func(s session.Session) bool { return s.ID == id })
}

// SetDown makes every call fail, and every Watch end, until it is lifted.
func (a *Agent) SetDown(down bool) {
	a.do(func() {
		a.down = down
		a.wake()
	})
}

// SetMute makes calls wait, as those of a machine do that has gone silent, until
// it is lifted.
func (a *Agent) SetMute(mute bool) {
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

// Restart begins a new epoch, as a restart of the agent's process does.
func (a *Agent) Restart(epoch string) {
	a.do(func() {
		a.epoch, a.seq, a.events = epoch, 0, nil
		a.wake()
	})
}

// Put stores a session as it is and tells of it.
func (a *Agent) Put(s session.Session) (stored session.Session) {
	a.do(func() { stored = a.put(s) })
	return stored
}

// Fill stores many sessions without telling of them.
func (a *Agent) Fill(sessions []session.Session) {
	a.do(func() { a.sessions = append(a.sessions, sessions...) })
}

// Remove forgets a session and tells of it.
func (a *Agent) Remove(id session.ID) {
	a.do(func() {
		a.sessions = slices.DeleteFunc(a.sessions, func(s session.Session) bool { return s.ID == id })
		a.tell(session.Event{Removed: &id})
	})
}

// Tell passes on an event as it is.
func (a *Agent) Tell(e session.Event) { a.do(func() { a.tell(e) }) }

// SetImages says what ListImages returns.
func (a *Agent) SetImages(images ...session.Image) { a.do(func() { a.images = images }) }

// SetApps says what a session can serve.
func (a *Agent) SetApps(id session.ID, apps ...session.App) { a.do(func() { a.apps[id] = apps }) }

// SetBoard says what Devices returns and tells of it.
func (a *Agent) SetBoard(board session.DeviceBoard) {
	a.do(func() {
		a.board = &board
		a.tell(session.Event{Devices: &board})
	})
}

// SetAccounts says what Accounts returns, whatever the span.
func (a *Agent) SetAccounts(rows ...session.Account) { a.do(func() { a.rows = rows }) }

// SetHistory says what History returns for every session.
func (a *Agent) SetHistory(phases ...session.Phase) { a.do(func() { a.phases = phases }) }

// Refuse makes Launch fail with err for sessions of that name.
func (a *Agent) Refuse(name string, err error) { a.do(func() { a.refused[name] = err }) }

// MoveWork changes the newest piece of work on images.
func (a *Agent) MoveWork(change func(*session.ImageWork)) {
	a.do(func() {
		last := &a.works[len(a.works)-1]
		change(last)
		last.Revision++
		a.wake()
	})
}

// Works returns the pieces of work on images, oldest first.
func (a *Agent) Works() (all []session.ImageWork) {
	a.do(func() { all = slices.Clone(a.works) })
	return all
}

// Launches counts the sessions that Launch has created.
func (a *Agent) Launches() (n int) {
	a.do(func() { n = a.launches })
	return n
}

// Starts counts the apps that StartApp has started.
func (a *Agent) Starts() (n int) {
	a.do(func() { n = a.starts })
	return n
}

// Span is the last span of accounts that was asked for.
func (a *Agent) Span() (span session.AccountSpan) {
	a.do(func() { span = a.span })
	return span
}
