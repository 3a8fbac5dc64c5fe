package hub

import (
	"cmp"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Session is one session as users and programs see it. These fields are a contract for scripts: id, name, type, status,
// result, reason, exitCode, image, agent and createdAt keep their names and meanings. The values of secret-looking
// variables in its spec are replaced by "••••••".
type Session struct {
	session.Session
	Type       session.Type   `json:"type"`
	Image      string         `json:"image"`
	Dependents []session.ID   `json:"dependents"` // sessions that wait for its success
	Usage      *session.Usage `json:"usage,omitempty"`
	LastHeard  *time.Time     `json:"lastHeard,omitempty"` // set while its agent is not reached: when this was reported
	Ending     *Ending        `json:"ending,omitempty"`    // its end can still be undone, or failed
	Reminder   bool           `json:"reminder,omitempty"`  // the person is notified when it starts
}

// sessionView returns a session as this program reports it. at is when its agent was last heard, if it is not reached;
// then a usage sample would be old and is left out. The caller holds mu.
func (st *state) sessionView(s session.Session, at *time.Time) Session {
	s.Spec = s.Spec.Redacted(session.Hidden)
	view := Session{Session: s, Type: s.Spec.Type, Image: s.Spec.Image, Dependents: st.dependents(s.ID), LastHeard: at,
		Ending: st.ends.view(s), Reminder: st.reminders[s.ID]}
	if u, ok := st.usage[s.ID]; ok && at == nil {
		view.Usage = &u
	}
	return view
}

// Machine is the machine of one agent.
type Machine struct {
	Agent     string    `json:"agent"`
	Online    bool      `json:"online"`
	LastHeard time.Time `json:"lastHeard"`
	session.Platform
	session.Capacity
	LoadCPU    float64           `json:"loadCpu"`    // busy CPUs, by anything
	LoadMemory gpu.Bytes         `json:"loadMemory"` // used by anything
	DiskFree   gpu.Bytes         `json:"diskFree"`
	DiskTotal  gpu.Bytes         `json:"diskTotal"`
	Warnings   []session.Warning `json:"warnings"`
}

// view is called with mu held.
func (m *member) view() Machine {
	return Machine{Agent: m.Name(), Online: m.online, LastHeard: m.lastHeard, Platform: m.machine.Platform,
		Capacity: m.machine.Capacity, LoadCPU: m.machine.Load.CPU, LoadMemory: m.machine.Load.Memory,
		DiskFree: m.machine.Load.DiskFree, DiskTotal: m.machine.Load.DiskTotal,
		Warnings: slices.Clone(m.machine.Warnings)}
}

// Agent is one agent that this computer knows, and its connection. The [Machine] of the same name describes its
// machine.
type Agent struct {
	Entry Entry  `json:"-"` // as the hub stores it
	Name  string `json:"name"`
	// ssh://user@host:port, slurm://user@host:port, slipway://host:port or wss://host:port/path; empty: in this process
	Address string `json:"address"`
	Local   bool   `json:"local"` // it manages this computer
	Group   string `json:"group"` // its resource group; default if none was chosen

	Owner string `json:"owner"` // the owner of our sessions there; empty while unknown
	Role  string `json:"role"`  // our role there: admin or user; empty while unknown
	// of its key, pinned when it was added; empty for an agent that is local or reached by ssh
	Fingerprint string `json:"fingerprint"`

	Version string `json:"version"` // as last heard; empty while unknown
	Upgrade string `json:"upgrade"` // available version; empty: nothing to upgrade
	// live sessions as last heard; for the local agent only a snapshot counts them
	Live int `json:"live"`

	Connection Connection `json:"connection"`
	Question   *Question  `json:"question,omitempty"`  // it is not reached until a person answers
	AddedAt    *time.Time `json:"addedAt,omitempty"`   // absent: it is this computer's agent
	Untrusted  *Untrusted `json:"untrusted,omitempty"` // it sends invalid data
}

// Connection is how an agent is reached now. LastHeard is when it last sent anything; what is shown of an agent that is
// not connected is as old as that.
type Connection struct {
	// it was heard since it is connected, so what is known of it is current
	Online    bool       `json:"-"`
	State     LinkState  `json:"state"`               // off, connecting, connected, probing, down or question
	Since     time.Time  `json:"since"`               // when this state began
	LastHeard *time.Time `json:"lastHeard,omitempty"` // absent: never
	RTTMs     *float64   `json:"rttMs,omitempty"`     // round trip in milliseconds; absent: unknown
	Transport string     `json:"transport"`           // local, ssh, tls or wss
	Carriers  int        `json:"carriers"`            // network connections in use; 2 if bulk data has its own
	// of the next automatic attempt; absent: none, or in progress
	NextTry *time.Time     `json:"nextTry,omitempty"`
	Error   *session.Error `json:"error,omitempty"` // why it is not reached
	Waits   string         `json:"waits"`           // what it waits for, one sentence; empty while connected
}

// Question is what a person must decide before an agent is reached again. The agent shows another key than the pinned
// one: it was re-keyed, replaced, or is somebody else's. The answer is an AgentAnswer with the same Found.
type Question struct {
	// re-keyed (the agent shows another key) or host-key (ssh knows another key of the host; accepting removes it, and
	// reconnecting asks about the new one)
	Kind   QuestionKind `json:"kind"`
	Text   string       `json:"text"`   // one or two sentences
	Pinned string       `json:"pinned"` // expected fingerprint; empty: none was known
	Found  string       `json:"found"`  // fingerprint shown
	Asked  time.Time    `json:"asked"`
}

// agentView is called with mu held.
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

// Moment returns a time, or nil if it is zero.
func Moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// Board is the state of one agent's devices. While the agent is not reached, Online is false and the rest is as old as
// At.
type Board struct {
	session.DeviceBoard
	Agent   string        `json:"agent"`
	Online  bool          `json:"online"`
	Devices []DeviceState `json:"devices"`
}

func boardView(board session.DeviceBoard, agent string, online bool) Board {
	return Board{DeviceBoard: board, Agent: agent, Online: online, Devices: each(board.Devices, deviceView)}
}

// DeviceState is the latest measurement of one device. A value that the device does not report is absent, never 0.
type DeviceState struct {
	gpu.Device
	session.DeviceStatus
	Capabilities []Capability `json:"capabilities"`
	Lost         *DeviceLoss  `json:"lost,omitempty"` // absent: it is available
}

// DeviceLoss says why a device cannot be used now. None of it is allocated until it is back.
type DeviceLoss struct {
	Kind string `json:"kind"` // fallen, reset, silent or unlisted
	Why  string `json:"why"`  // a clause, such as: it fell off the bus
	Hint string `json:"hint"` // what a person can do
}

// Capability is whether one thing can be measured or enforced on a device.
type Capability struct {
	ID    string `json:"id"`            // process-memory, process-util, energy, accounting, mig, memory-limit or mps
	State string `json:"state"`         // yes, no or unknown
	Why   string `json:"why,omitempty"` // what was seen if the state is not yes
}

// deviceView returns a device without its nodes, which only the agent uses.
func deviceView(s session.DeviceState) DeviceState {
	one := func(id string, p gpu.Probe) Capability {
		return Capability{ID: id, State: string(cmp.Or(p.State, gpu.Unknown)), Why: p.Why}
	}
	c := s.Device.Capabilities
	out := DeviceState{Device: s.Device, DeviceStatus: s.DeviceStatus, Capabilities: []Capability{
		one("process-memory", c.ProcessMemory), one("process-util", c.ProcessUtil), one("energy", c.Energy),
		one("accounting", c.Accounting), one("mig", c.MIG), one("memory-limit", c.MemoryLimit), one("mps", c.MPS)}}
	if l := s.Device.Lost; l != nil {
		out.Lost = &DeviceLoss{Kind: string(l.Kind), Why: l.Why, Hint: l.Hint()}
	}
	out.Nodes = nil
	return out
}
