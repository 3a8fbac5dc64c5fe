package hub

import (
	"cmp"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Session is one session as users and programs see it. These fields are a
// contract for scripts: id, name, type, status, result, reason, exitCode, image,
// agent and createdAt keep their names and meanings. The values of secret-looking
// variables in its spec are replaced by "••••••".
type Session struct {
	session.Session
	Type       session.Type   `json:"type"`
	Image      string         `json:"image"`
	Dependents []session.ID   `json:"dependents"` // sessions that wait for this one to end in success
	Usage      *session.Usage `json:"usage,omitempty"`
	LastHeard  *time.Time     `json:"lastHeard,omitempty"` // its agent is not reached, and this is how it was then
}

// sessionView needs mu: a session as it leaves this program; at is when its agent
// was heard last, where it is not reached. A sample of its use would be as old and
// is left out.
func (st *state) sessionView(s session.Session, at *time.Time) Session {
	s.Spec = s.Spec.Redacted(session.Hidden)
	view := Session{Session: s, Type: s.Spec.Type, Image: s.Spec.Image, Dependents: st.dependents(s.ID), LastHeard: at}
	if u, ok := st.usage[s.ID]; ok && at == nil {
		view.Usage = &u
	}
	return view
}

// Machine is one agent and the machine it rules.
type Machine struct {
	Agent     string    `json:"agent"`
	Online    bool      `json:"online"`
	LastHeard time.Time `json:"lastHeard"`
	session.Platform
	session.Capacity
	LoadCPU    float64           `json:"loadCpu"`    // busy CPUs, of anything
	LoadMemory gpu.Bytes         `json:"loadMemory"` // used by anything
	DiskFree   gpu.Bytes         `json:"diskFree"`
	DiskTotal  gpu.Bytes         `json:"diskTotal"`
	Warnings   []session.Warning `json:"warnings"`
}

// view needs mu.
func (m *member) view() Machine {
	return Machine{Agent: m.Name(), Online: m.online, LastHeard: m.lastHeard, Platform: m.machine.Platform,
		Capacity: m.machine.Capacity, LoadCPU: m.machine.Load.CPU, LoadMemory: m.machine.Load.Memory,
		DiskFree: m.machine.Load.DiskFree, DiskTotal: m.machine.Load.DiskTotal,
		Warnings: slices.Clone(m.machine.Warnings)}
}

// Agent is one agent that this computer knows, and how it is reached. What it
// says of its machine is the [Machine] of the same name.
type Agent struct {
	Entry Entry  `json:"-"` // what the hub keeps of it
	Name  string `json:"name"`
	// ssh://user@host:port, slipway://host:port or wss://host:port/path; empty: in this process
	Address string `json:"address"`
	Local   bool   `json:"local"` // it rules this computer
	Group   string `json:"group"` // the resource group that it is in; default where nobody chose one

	Owner string `json:"owner"` // the name under which it keeps our sessions; empty while unknown
	Role  string `json:"role"`  // what we may do there: admin or user; empty while unknown
	// of its key, as it was pinned when it was added; empty where ssh or this process vouches for it
	Fingerprint string `json:"fingerprint"`

	Version string `json:"version"` // of the agent as last heard; empty while unknown
	Upgrade string `json:"upgrade"` // the version that an upgrade would bring; empty: nothing to upgrade
	// live sessions there, as last heard; for the agent in this process only a snapshot counts them
	Live int `json:"live"`

	Connection Connection `json:"connection"`
	Question   *Question  `json:"question,omitempty"`  // it is not reached before a person has answered
	AddedAt    *time.Time `json:"addedAt,omitempty"`   // absent: it belongs to this computer
	Untrusted  *Untrusted `json:"untrusted,omitempty"` // it sends invalid data; absent: it does not
}

// Connection says how an agent is reached at this moment. LastHeard is when
// anything came from it last: what is shown of an agent that is not connected
// is as old as that.
type Connection struct {
	// it was heard since the link is up, and what is known of it is how things are
	Online    bool       `json:"-"`
	State     LinkState  `json:"state"`               // off, connecting, connected, probing, down or question
	Since     time.Time  `json:"since"`               // it is in this state since then
	LastHeard *time.Time `json:"lastHeard,omitempty"` // absent: never since it was added
	RTTMs     *float64   `json:"rttMs,omitempty"`     // round trip in milliseconds; absent: not measured
	Transport string     `json:"transport"`           // local, ssh, tls or wss
	Carriers  int        `json:"carriers"`            // connections of the network in use; 2 where bulk has its own
	// when it is tried again by itself; absent: it will not be, or is being tried
	NextTry *time.Time     `json:"nextTry,omitempty"`
	Error   *session.Error `json:"error,omitempty"` // why it is not reached
	Waits   string         `json:"waits"`           // one sentence on what is waited for; empty while connected
}

// Question is what a person must decide before an agent is reached again: it
// shows another key than the one that was pinned, so it was re-keyed, replaced,
// or is somebody else. Its answer is an AgentAnswer with the same Found.
type Question struct {
	// re-keyed (the agent shows another key than the one pinned) or host-key (ssh knows another key of the host:
	// accepting removes that, and reconnecting asks about the new one)
	Kind   QuestionKind `json:"kind"`
	Text   string       `json:"text"`   // one or two sentences for people
	Pinned string       `json:"pinned"` // fingerprint that was expected; empty: none was known
	Found  string       `json:"found"`  // fingerprint that was shown
	Asked  time.Time    `json:"asked"`
}

// agentView needs mu.
func (st *state) agentView(m *member) Agent {
	link := m.link
	if m.remote == nil {
		link = Link{State: LinkConnected, Since: st.began, Transport: "local", Owner: st.owner, Role: "admin"}
	}
	view := Agent{Entry: m.entry, Name: m.entry.Name, Address: m.entry.Address,
		Local: m.Local, Group: m.entry.Group, Owner: cmp.Or(m.entry.Owner, link.Owner, m.machine.Owner),
		Role: cmp.Or(link.Role, string(m.machine.Role)), Fingerprint: m.entry.Fingerprint,
		Version: cmp.Or(link.Version, m.machine.Version), Upgrade: link.Upgrade, Live: m.live, Question: link.Question,
		AddedAt: Moment(m.entry.AddedAt), Untrusted: m.distrust,
		Connection: Connection{Online: m.online, State: link.State, Since: link.Since, LastHeard: Moment(m.lastHeard),
			Transport: link.Transport, Carriers: link.Carriers, NextTry: Moment(link.NextTry), Waits: link.Waits},
	}
	if link.RTT > 0 {
		view.Connection.RTTMs = new(float64(link.RTT.Microseconds()) / 1000)
	}
	if link.Err != nil {
		view.Connection.Error = session.AsError(link.Err, session.CodeUnreachable)
	}
	return view
}

// Moment leaves out a time that is unknown.
func Moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// Board is the state of one agent's devices. Online is false while the agent is
// not reached; the rest is then as old as At.
type Board struct {
	session.DeviceBoard
	Agent   string        `json:"agent"`
	Online  bool          `json:"online"`
	Devices []DeviceState `json:"devices"`
}

func boardView(board session.DeviceBoard, agent string, online bool) Board {
	view := Board{DeviceBoard: board, Agent: agent, Online: online, Devices: make([]DeviceState, len(board.Devices))}
	for i, d := range board.Devices {
		view.Devices[i] = deviceView(d)
	}
	return view
}

// DeviceState is one device as it was measured last. A value that the device
// does not tell is absent and never 0.
type DeviceState struct {
	gpu.Device
	session.DeviceStatus
	Capabilities []Capability `json:"capabilities"`
	Lost         *DeviceLoss  `json:"lost,omitempty"` // absent: it is there
}

// DeviceLoss says why a device that was there cannot be used now. Nobody is
// given any of it until it is back.
type DeviceLoss struct {
	Kind string `json:"kind"` // fallen, reset, silent or unlisted
	Why  string `json:"why"`  // a clause: it fell off the bus
	Hint string `json:"hint"` // what a person can do
}

// Capability is one thing that was tried on a device: what can be measured or
// enforced.
type Capability struct {
	ID    string `json:"id"`            // process-memory, process-util, energy, accounting, mig, memory-limit or mps
	State string `json:"state"`         // yes, no or unknown
	Why   string `json:"why,omitempty"` // what was seen when the state is not yes
}

// deviceView leaves out the device nodes, which are the agent's alone.
func deviceView(s session.DeviceState) DeviceState {
	out := DeviceState{Device: s.Device, DeviceStatus: s.DeviceStatus,
		Capabilities: capabilitiesOf(s.Device.Capabilities), Lost: lossOf(s.Device.Lost)}
	out.Nodes = nil
	return out
}

func lossOf(l *gpu.Loss) *DeviceLoss {
	if l == nil {
		return nil
	}
	return &DeviceLoss{Kind: string(l.Kind), Why: l.Why, Hint: l.Hint()}
}

func capabilitiesOf(c gpu.Capabilities) []Capability {
	one := func(id string, p gpu.Probe) Capability {
		state := p.State
		if state == "" {
			state = gpu.Unknown
		}
		return Capability{ID: id, State: string(state), Why: p.Why}
	}
	return []Capability{one("process-memory", c.ProcessMemory), one("process-util", c.ProcessUtil),
		one("energy", c.Energy),
		one("accounting", c.Accounting), one("mig", c.MIG), one("memory-limit", c.MemoryLimit), one("mps", c.MPS)}
}
