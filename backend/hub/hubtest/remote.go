package hubtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// Connector is a [hub.Connector] of in-memory agents, by their addresses.
type Connector struct {
	// Adding is called by Add. It may ask or fail.
	Adding func(context.Context, *hub.Work, hub.Entry) error
	Found  string // instance of the agent that Add finds

	agents  sync.Map // *Agent by address
	remotes sync.Map // *Remote by address
}

var _ hub.Connector = (*Connector)(nil)

func (r *Connector) Machine(address string, agent *Agent) { r.agents.Store(address, agent) }

// Remote returns the connection to the agent at an address, once it was opened.
func (r *Connector) Remote(address string) *Remote {
	value, _ := r.remotes.Load(address)
	remote, _ := value.(*Remote)
	return remote
}

// Open implements [hub.Connector]. The connection is down until it runs.
func (r *Connector) Open(entry hub.Entry, _ hub.Listed) (hub.Remote, error) {
	value, _ := r.agents.Load(entry.Address)
	agent := value.(*Agent)
	remote := &Remote{id: entry.ID, agent: agent, changed: make(chan struct{}), up: true,
		link: hub.Link{State: hub.LinkOff, Transport: "ssh"}}
	agent.SetDown(true)
	r.remotes.Store(entry.Address, remote)
	return remote, nil
}

func (r *Connector) Probe(_ context.Context, work *hub.Work, _ hub.Entry) error {
	work.Tell(hub.Step{Name: "docker", Title: "Docker", State: hub.StepWarning, Detail: "It is old.",
		Remedy: "apt-get install docker.io"})
	return nil
}

func (r *Connector) Add(ctx context.Context, work *hub.Work, entry hub.Entry,
	admit func(string) error) (hub.Entry, error) {
	if err := admit(r.Found); err != nil {
		return entry, err
	}
	err := work.Do("connect", "Connect", func() (string, error) {
		if r.Adding == nil {
			return "", nil
		}
		return "", r.Adding(ctx, work, entry)
	})
	entry.Fingerprint = "print-of-" + entry.Name
	return entry, err
}

func (r *Connector) Upgrade(context.Context, *hub.Work, hub.Entry) error { return nil }

func (r *Connector) Remove(context.Context, *hub.Work, hub.Entry, bool) error { return nil }

// Remote is a [hub.Remote] that a test connects and cuts.
type Remote struct {
	session.Admin // nil: of its methods, only those below are called
	id            string
	agent         *Agent

	mu      sync.Mutex // guards everything below
	link    hub.Link
	changed chan struct{}
	up      bool // connected while it runs
	running bool
	clients []session.PairedClient
	limits  map[string]session.Allowance
}

var _ hub.Remote = (*Remote)(nil)

func (r *Remote) Agent() session.Agent { return session.AgentOf(r.agent, r) }

func (r *Remote) Run(ctx context.Context) {
	r.do(func() {
		r.running = true
		r.move(r.up)
	})
	<-ctx.Done()
	r.do(func() {
		r.running = false
		r.agent.SetDown(true)
		r.setLink(hub.Link{State: hub.LinkOff, Transport: "ssh"})
	})
}

// do calls change with mu held.
func (r *Remote) do(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *Remote) SetUp(up bool) { r.do(func() { r.move(up) }) }

// move is called with mu held.
func (r *Remote) move(up bool) {
	r.up = up
	if !r.running {
		return
	}
	now := time.Now()
	link := hub.Link{State: hub.LinkConnected, Since: now, LastHeard: now, Transport: "ssh", Carriers: 2,
		RTT: 40 * time.Millisecond}
	if !up {
		link = hub.Link{State: hub.LinkDown, Since: now, LastHeard: now, Transport: "ssh",
			NextTry: now.Add(time.Second), Waits: "The network does not answer.",
			Err: session.NewError(session.CodeUnreachable, "No route to the host.", "Look at the network.")}
	}
	r.agent.SetDown(!up)
	r.setLink(link)
}

// setLink is called with mu held.
func (r *Remote) setLink(link hub.Link) {
	r.link = link
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Remote) SetLink(link hub.Link) { r.do(func() { r.setLink(link) }) }

func (r *Remote) Link() (hub.Link, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link, r.changed
}

func (r *Remote) Reconnect(context.Context, *hub.Work) error {
	r.SetUp(true)
	return nil
}

func (r *Remote) Answer(_ context.Context, accept bool, found string) (string, error) {
	if link, _ := r.Link(); link.Question == nil || link.Question.Found != found {
		return "", session.NewError(session.CodeAgentConflict, "That is not what is asked.", "Look again.")
	}
	if accept {
		r.SetUp(true)
	}
	return found, nil
}

func (r *Remote) SetClients(clients ...session.PairedClient) { r.do(func() { r.clients = clients }) }

func (r *Remote) PairedClients(context.Context) (clients []session.PairedClient, err error) {
	r.do(func() { clients = slices.Clone(r.clients) })
	return clients, nil
}

func (r *Remote) SetLimits(limits map[string]session.Allowance) { r.do(func() { r.limits = limits }) }

func (r *Remote) Limits(context.Context) (limits map[string]session.Allowance, err error) {
	r.do(func() { limits = maps.Clone(r.limits) })
	return limits, nil
}

func (r *Remote) RevokeClient(_ context.Context, fingerprint string) error {
	r.do(func() {
		r.clients = slices.DeleteFunc(r.clients, func(c session.PairedClient) bool { return c.Key == fingerprint })
	})
	return nil
}

func (r *Remote) RotateKey(context.Context) (session.KeyRotation, error) {
	return session.KeyRotation{Before: "print-of-lab", Key: "new-print"}, nil
}

func (r *Connector) Key() string { return "print-of-here" }

func (r *Connector) Rotate(context.Context) (hub.Rotation, error) {
	rotation := hub.Rotation{Before: "print-of-here", Fingerprint: "new-print-of-here"}
	for _, value := range r.remotes.Range {
		remote := value.(*Remote)
		if link, _ := remote.Link(); link.State == hub.LinkConnected {
			rotation.Told = append(rotation.Told, remote.id)
		} else {
			rotation.Later = append(rotation.Later, remote.id)
		}
	}
	return rotation, nil
}

func (r *Remote) PairCode(_ context.Context, request session.PairRequest) (session.PairCode, error) {
	return session.PairCode{Code: "1-" + cmp.Or(request.Owner, "ada") + "-" + string(request.Role),
		Address: "slipway://lab:7431", Expires: time.Now().Add(time.Minute)}, nil
}
