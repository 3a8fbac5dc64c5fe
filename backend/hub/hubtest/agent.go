// Package hubtest gives the hub and the server an agent in memory to be tested
// on: it keeps sessions, tells of every change, and fails when told to.
package hubtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Agent is a [session.Agent] without a machine. Sessions move only when a test
// moves them. The functions may be replaced before it is used.
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
	// Images moves images; nil: there are none.
	Images Images
	// SSH answers a connection to a session's ssh server, which is known by HostKey.
	SSH     func(ctx context.Context, req session.SSHRequest) (net.Conn, error)
	HostKey string
	// Dial connects to a port of a session.
	Dial func(ctx context.Context, id session.ID, port int) (net.Conn, error)
	// Files answers for files; it has none until a test gives it some.
	session.Files
	session.Folders
	Probe func(context.Context) error

	// mu guards everything below.
	mu       sync.Mutex
	epoch    string
	seq      uint64
	events   []session.Event
	changed  chan struct{} // closed and replaced by every change
	sessions []session.Session
	keys     map[string]session.ID
	images   []session.Image
	works    works
	apps     map[session.ID][]session.App
	board    *session.DeviceBoard
	accounts []session.Account
	span     session.AccountSpan
	phases   []session.Phase
	refused  map[string]error // by the name of the session
	down     bool
	muted    chan struct{} // not nil: calls wait until it is closed
	launches int
	starts   int
}

var _ session.Agent = (*Agent)(nil)

// New returns an agent without sessions.
func New(name string) *Agent {
	return &Agent{Name: name, Files: noFiles{}, Folders: &folders{agent: name}, epoch: "epoch-1",
		changed: make(chan struct{}), keys: map[string]session.ID{}, refused: map[string]error{},
		apps: map[session.ID][]session.App{}}
}

func (a *Agent) unavailable() error {
	return &session.Error{Code: "agent_call_unavailable", Message: "The agent " + a.Name + " is not reached.",
		Hint: "Wait, or look at its machine."}
}

func notFound(id session.ID) error {
	return &session.Error{Code: "session_read_not-found", Message: fmt.Sprintf("There is no session %s.", id),
		Hint: "List the sessions."}
}

// SetDown makes every call fail, and every Watch end, until it is lifted.
func (a *Agent) SetDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
	a.wake()
}

// SetMute makes previews and lists wait, as those of a machine do that has gone
// silent, until it is lifted.
func (a *Agent) SetMute(mute bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.muted != nil {
		close(a.muted)
		a.muted = nil
	}
	if mute {
		a.muted = make(chan struct{})
	}
}

// listen waits while the agent is mute.
func (a *Agent) listen(ctx context.Context) error {
	a.mu.Lock()
	muted := a.muted
	a.mu.Unlock()
	if muted == nil {
		return nil
	}
	select {
	case <-muted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Restart begins a new epoch, as a restart of the agent's process does.
func (a *Agent) Restart(epoch string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epoch, a.seq, a.events = epoch, 0, nil
	a.wake()
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

// Put stores a session as it is and tells of it.
func (a *Agent) Put(s session.Session) session.Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.put(s)
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

// Fill stores many sessions without telling of them.
func (a *Agent) Fill(sessions []session.Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions = append(a.sessions, sessions...)
}

// Remove forgets a session and tells of it.
func (a *Agent) Remove(id session.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions = slices.DeleteFunc(a.sessions, func(s session.Session) bool { return s.ID == id })
	a.tell(session.Event{Removed: &id})
}

// Tell passes on an event as it is.
func (a *Agent) Tell(e session.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell(e)
}

// SetImages says what ListImages returns.
func (a *Agent) SetImages(images ...session.Image) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.images = images
}

// SetApps says what a session can serve.
func (a *Agent) SetApps(id session.ID, apps ...session.App) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.apps[id] = apps
}

// Launches counts the sessions that Launch has created.
func (a *Agent) Launches() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.launches
}

// Starts counts the apps that StartApp has started.
func (a *Agent) Starts() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.starts
}

// index needs mu.
func (a *Agent) index(id session.ID) int {
	return slices.IndexFunc(a.sessions, func(s session.Session) bool { return s.ID == id })
}

func (a *Agent) Machine(context.Context) (session.Machine, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine(), nil
}

func (a *Agent) machine() session.Machine {
	return session.Machine{Agent: a.Name, Instance: a.Instance, Owner: a.Owner, Role: a.Role, Engine: "fake", CPUs: 8,
		Memory: 16 << 30}
}

func (a *Agent) Preview(ctx context.Context, _ string, spec session.Spec) (session.Preview, error) {
	if err := a.listen(ctx); err != nil {
		return session.Preview{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return session.Preview{}, a.unavailable()
	}
	m := a.machine()
	p := session.Preview{Spec: spec.WithDefaults(),
		Errors: spec.Validate(time.Now(), session.Limits{CPUs: m.CPUs, Memory: m.Memory})}
	if share := p.Spec.Accelerator.Shares; share%gpu.DefaultQuantum != 0 {
		p.Errors = append(p.Errors, session.FieldError{Field: "accelerator", Code: session.CodeRoundedAccelerator,
			Message: "Shares are given in multiples of 0.1.", Hint: "Ask for such a one."})
	}
	for _, image := range a.images {
		if slices.Contains(image.Refs, spec.Image) {
			p.Image = &image
		}
	}
	return p, nil
}

func (a *Agent) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	p, err := a.Preview(ctx, req.Owner, req.Spec)
	if err != nil {
		return session.Session{}, err
	}
	if len(p.Errors) > 0 {
		return session.Session{}, &session.Error{Code: session.CodeInvalid, Message: p.Errors[0].Message,
			Hint: p.Errors[0].Hint, Fields: p.Errors}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if id, ok := a.keys[req.Key]; ok && req.Key != "" {
		return a.sessions[a.index(id)], nil
	}
	if err := a.refused[req.Spec.Name]; err != nil {
		return session.Session{}, err
	}
	s := session.Session{ID: session.NewID(), Name: req.Spec.Name, Owner: req.Owner, Spec: p.Spec,
		Status: session.Pending, Result: session.ResultUndefined, CreatedAt: time.Now(),
		Priority: session.DefaultPriority}
	if req.Spec.Priority != nil {
		s.Priority = *req.Spec.Priority
	}
	for _, other := range a.sessions {
		if slices.Contains(req.Spec.After, other.Name) || slices.Contains(req.Spec.After, string(other.ID)) {
			s.DependsOn = append(s.DependsOn, other.ID)
		}
	}
	if s.Name == "" {
		s.Name = session.RandomName()
	}
	if req.Key != "" {
		a.keys[req.Key] = s.ID
	}
	a.launches++
	return a.put(s), nil
}

func (a *Agent) Get(_ context.Context, id session.ID) (session.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.get(id)
}

// get needs mu.
func (a *Agent) get(id session.ID) (session.Session, error) {
	if a.down {
		return session.Session{}, a.unavailable()
	}
	if i := a.index(id); i >= 0 {
		return a.sessions[i], nil
	}
	return session.Session{}, notFound(id)
}

func (a *Agent) List(ctx context.Context, filter session.Filter) ([]session.Session, error) {
	if err := a.listen(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, a.unavailable()
	}
	found := make([]session.Session, 0, len(a.sessions))
	for _, s := range a.sessions {
		if !(filter.Live && !s.Status.Live() || filter.Finished && s.Status.Live()) {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(x, y session.Session) int { return y.CreatedAt.Compare(x.CreatedAt) })
	found = found[min(filter.Offset, len(found)):]
	if filter.Limit > 0 && len(found) > filter.Limit {
		found = found[:filter.Limit]
	}
	return found, nil
}

func (a *Agent) Rename(_ context.Context, id session.ID, name string) (session.Session, error) {
	if wrong := session.ValidateName(name); wrong != nil {
		return session.Session{}, &session.Error{Code: session.CodeInvalid, Message: wrong.Message, Hint: wrong.Hint,
			Fields: []session.FieldError{*wrong}}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.get(id)
	if err != nil {
		return s, err
	}
	s.Name = name
	return a.put(s), nil
}

func (a *Agent) SetTags(_ context.Context, id session.ID, tags []string) (session.Session, error) {
	clean, err := session.CleanTags(tags)
	if err != nil {
		return session.Session{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.get(id)
	if err != nil {
		return s, err
	}
	s.Tags = clean
	return a.put(s), nil
}

// Terminate implements [session.Agent]; the session is TERMINATED at once.
func (a *Agent) Terminate(_ context.Context, id session.ID, forced bool) (session.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.get(id)
	if err != nil {
		return s, err
	}
	s.Status, s.Reason = session.Terminated, session.ReasonUser
	if forced {
		s.Reason = session.ReasonForced
	}
	return a.put(s), nil
}

func (a *Agent) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	for {
		a.mu.Lock()
		if a.down {
			a.mu.Unlock()
			return a.unavailable()
		}
		var batch []session.Event
		if after.Epoch != a.epoch || after.Seq > a.seq {
			reset := session.Reset{Machine: a.machine(), Sessions: slices.Clone(a.sessions), Devices: a.board}
			batch = []session.Event{{Epoch: a.epoch, Seq: a.seq, Reset: &reset}}
		} else {
			batch = slices.Clone(a.events[after.Seq:])
		}
		changed := a.changed
		a.mu.Unlock()
		for _, e := range batch {
			if err := fn(e); err != nil {
				return err
			}
			after = session.Cursor{Epoch: e.Epoch, Seq: e.Seq}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (a *Agent) History(_ context.Context, id session.ID) ([]session.Phase, error) {
	if _, err := a.Get(context.Background(), id); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phases != nil {
		return a.phases, nil
	}
	return []session.Phase{{ID: "1", Session: id, Phase: session.PhaseSchedule, Result: session.OutcomeSuccess}}, nil
}

func (a *Agent) Logs(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	if _, err := a.Get(ctx, id); err != nil {
		return nil, err
	}
	if a.Log != nil {
		return a.Log(ctx, opts)
	}
	return io.NopCloser(strings.NewReader("one\ntwo\n")), nil
}

func (a *Agent) Usage(ctx context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	if _, err := a.Get(ctx, id); err != nil {
		return nil, err
	}
	return []session.Usage{{Session: id, At: since.Add(time.Second), CPU: 0.5}}, nil
}
