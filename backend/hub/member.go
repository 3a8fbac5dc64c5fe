package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/session"
)

// Member is an agent that the hub starts with. Local is set for the agent of this computer.
type Member struct {
	Name  string
	Local bool
	Agent session.Agent
}

// member is an agent and what was last heard of it. mu guards the fields from signals on.
type member struct {
	Local  bool
	Agent  session.Agent
	remote Remote // nil: in this process
	called atomic.Pointer[string]

	stop context.CancelFunc // stops following it; nil while the hub does not run
	done sync.WaitGroup     // of the goroutines that follow it

	signals
	entry Entry
	link  Link
	heard
	gone bool // it was removed

	distrust *Untrusted // nil: all its data was valid
	kept     int        // of its sessions among state.sessions
	live     int        // of these, that have not ended
	bulk     int        // of their largest texts, in bytes
}

type heard struct {
	machine   session.Machine
	board     *session.DeviceBoard // nil: none was received
	online    bool
	told      bool // its whole state was received at least once
	lastHeard time.Time
	dirty     bool // changed since it was stored
}

// signals wake those who wait for an agent.
type signals struct {
	up      chan struct{} // holds a token when it is reached again
	again   chan struct{} // holds a token when a person tries it again
	changed chan struct{} // closed and replaced when it is reached, lost or removed
	pins    chan struct{} // holds a token when it is to be sent what is pinned
}

func newMember(name string, local bool, agent session.Agent) *member {
	m := &member{Local: local, Agent: agent, entry: Entry{Name: name, Group: DefaultGroup},
		signals: signals{up: make(chan struct{}, 1), again: make(chan struct{}, 1), changed: make(chan struct{}),
			pins: make(chan struct{}, 1)}}
	m.machine.Agent = name
	m.called.Store(&name)
	return m
}

// Name returns the name of the agent here, which may change at any time.
func (m *member) Name() string { return *m.called.Load() }

func (st *state) list() []*member {
	return locked(st.shared, func() []*member { return slices.Clone(st.members) })
}

// Local returns the name of the agent on this computer, or "" if there is none.
func (st *state) Local() string {
	for _, m := range st.list() {
		if m.Local {
			return m.Name()
		}
	}
	return ""
}

// member returns the agent with that name. It fails with agent_find_not-found.
func (st *state) member(name string) (*member, error) {
	for _, m := range st.list() {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, session.NewError(session.CodeAgentNotFound,
		fmt.Sprintf("There is no agent named %q.", session.Clip(name)),
		"slipway agent list shows those that are known.")
}

// memberOrLocal is member, but an empty name means this computer's agent.
func (st *state) memberOrLocal(name string) (*member, error) {
	return st.member(cmp.Or(name, st.Local()))
}

// on returns the agent with that name, or all if name is empty. It fails with agent_find_not-found.
func (st *state) on(name string) ([]*member, error) {
	if name == "" {
		return st.list(), nil
	}
	m, err := st.member(name)
	return []*member{m}, err
}

// remoteOf returns an agent on another machine. It fails with agent_find_not-found or agent_call_conflict.
func (st *state) remoteOf(name string) (*member, Entry, error) {
	m, err := st.member(name)
	if err != nil {
		return nil, Entry{}, err
	}
	if m.remote == nil {
		return nil, Entry{}, session.NewError(session.CodeAgentConflict,
			fmt.Sprintf("%s is the agent of this computer and belongs to it.", name),
			"Choose an agent of another machine.")
	}
	return m, st.entryOf(m), nil
}

func (st *state) entryOf(m *member) Entry { return locked(st.shared, func() Entry { return m.entry }) }

// awaitMember waits until the agent that find returns is reached, or is not. It calls find with mu held.
func (st *state) awaitMember(ctx context.Context, want bool, find func() *member) (bool, error) {
	for {
		st.mu.Lock()
		m := find()
		if m == nil || m.remote == nil {
			st.mu.Unlock()
			return false, nil
		}
		reached, changed := m.online || m.link.State == LinkConnected, m.changed
		st.mu.Unlock()
		if reached == want {
			return true, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// turned wakes those who wait for an agent to be reached, lost or removed. The caller holds mu.
func (m *member) turned() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// answerWithin is how long an agent on another machine may take to answer. If its link is down, calls fail at once.
const answerWithin = 5 * time.Second

// askAll asks every agent at once and returns their answers.
func askAll[T any](ctx context.Context, members []*member,
	ask func(context.Context, *member) (T, error)) ([]T, []error) {
	answers, errs := make([]T, len(members)), make([]error, len(members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() {
			ctx, cancel := within(ctx, m)
			defer cancel()
			answers[i], errs[i] = ask(ctx, m)
		})
	}
	group.Wait()
	return answers, errs
}

// afterwards returns a context for a call that ends work whose own context, ctx, has ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
}

// within limits the time of a call to an agent on another machine.
func within(ctx context.Context, m *member) (context.Context, context.CancelFunc) {
	if m.remote == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, answerWithin)
}
