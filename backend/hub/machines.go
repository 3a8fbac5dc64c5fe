package hub

import (
	"context"
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Amount is an amount of each resource of a machine.
type Amount struct {
	CPU    float64   `json:"cpu"`
	Memory gpu.Bytes `json:"memory"`
	GPU    gpu.Share `json:"gpu"`
	VRAM   gpu.Bytes `json:"vram"`
}

// DeviceResource is one device of a summary.
type DeviceResource struct {
	Device   gpu.UUID  `json:"device"`
	Name     string    `json:"name"`
	Total    gpu.Share `json:"total"`
	Promised gpu.Share `json:"promised"`
	Mine     gpu.Share `json:"mine"`
	Memory   gpu.Bytes `json:"memory"`
	MemFree  gpu.Bytes `json:"memFree"`
}

// Resources sums up one agent's machine: what it has, what is allocated, what is in use, and how much of it is the
// user's own.
type Resources struct {
	Agent    string           `json:"agent"`
	Group    string           `json:"group"` // its resource group
	Online   bool             `json:"online"`
	Live     int              `json:"live"` // own sessions that have not ended
	Total    Amount           `json:"total"`
	Promised Amount           `json:"promised"` // allocated to all sessions
	Mine     Amount           `json:"mine"`     // allocated to own sessions
	Free     Amount           `json:"free"`     // available to a launch now
	Load     Amount           `json:"load"`     // in use by anything; the busy part of a device counts as its share
	Devices  []DeviceResource `json:"devices"`
	Limit    *Limit           `json:"limit,omitempty"` // the most that the user may hold there; absent: no limit
}

// Limit is the most that the user may hold of an agent's machine. An amount of 0 is not limited.
type Limit struct {
	session.Allowance
	SessionsHeld int `json:"sessionsHeld"` // own sessions that hold resources
}

// Resources sums up every agent's machine from what was last heard of it.
func (ms *machines) Resources() []Resources {
	return locked(ms.shared, func() []Resources { return each(ms.members, ms.resourcesOf) })
}

// resourcesOf is called with mu held.
func (ms *machines) resourcesOf(m *member) Resources {
	machine := m.machine
	r := Resources{Agent: m.Name(), Group: m.entry.Group, Online: m.online,
		Total:    Amount{CPU: float64(machine.CPUs), Memory: machine.Memory},
		Promised: Amount{CPU: float64(machine.UsedCPUs), Memory: machine.UsedMemory},
		Load:     Amount{CPU: machine.Load.CPU, Memory: machine.Load.Memory},
	}
	r.Free = Amount{CPU: max(0, r.Total.CPU-r.Promised.CPU), Memory: max(0, r.Total.Memory-r.Promised.Memory)}
	mine, holding := map[gpu.UUID]gpu.Share{}, 0
	for _, k := range ms.sessions {
		s := k.session
		own := s.Owner == ms.owner || s.Owner != "" && (s.Owner == m.machine.Owner || s.Owner == m.entry.Owner)
		if k.member != m || !own || !s.Status.Live() {
			continue
		}
		r.Live++
		if !s.Status.HoldsResources() {
			continue
		}
		holding++
		r.Mine.CPU += float64(len(s.Grants.CPUs))
		r.Mine.Memory += s.Grants.Memory
		for _, g := range s.Grants.GPUs {
			mine[g.Device] += g.Share
			r.Mine.GPU += g.Share
			r.Mine.VRAM += g.Memory
		}
	}
	if machine.Allowance.Limits() {
		r.Limit = &Limit{Allowance: machine.Allowance, SessionsHeld: holding}
	}
	if m.board != nil {
		for _, d := range m.board.Devices {
			r.addDevice(d, mine[d.Device.UUID])
		}
	}
	return r
}

func (r *Resources) addDevice(d session.DeviceState, mine gpu.Share) {
	var held gpu.Share
	var heldMemory gpu.Bytes
	for _, holder := range d.Holders {
		held += holder.Share
		heldMemory += holder.Promised
	}
	promised, total, memory := gpu.WholeDevice-d.Free, gpu.WholeDevice, d.Device.Usable()
	if d.Unread || d.Over != "" { // nothing is free, though not everything is allocated
		promised = min(held, total)
	}
	if d.Device.Lost != nil { // only what sessions hold of it counts
		promised, total, memory = held, held, heldMemory
	}
	r.Devices = append(r.Devices, DeviceResource{
		Device: d.Device.UUID, Name: NameOf(d.Device), Total: total, Promised: promised, Mine: mine,
		Memory: memory, MemFree: d.MemoryFree,
	})
	r.Total.GPU += total
	r.Total.VRAM += memory
	r.Promised.GPU += promised
	r.Promised.VRAM += heldMemory
	r.Free.GPU += d.Free
	r.Free.VRAM += d.MemoryFree
	if d.Util != nil {
		r.Load.GPU += gpu.Share(*d.Util / 10) // permyriad to thousandths
	}
	if d.MemoryUsed != nil {
		r.Load.VRAM += *d.MemoryUsed
	}
}

// machines describes the agents' machines and their use.
type machines struct {
	*state
	services
}

func (ms *machines) Machines() []Machine {
	return locked(ms.shared, func() []Machine { return each(ms.members, (*member).view) })
}

// Doctor checks the machine of an agent, or this computer if none is named.
func (ms *machines) Doctor(ctx context.Context, agent string) ([]session.Check, error) {
	m, err := ms.memberOrLocal(agent)
	if err != nil {
		return nil, err
	}
	return m.Agent.Doctor(ctx)
}

func (ms *machines) ListDirectories(ctx context.Context, agent, path string) (session.DirectoryListing, error) {
	m, err := ms.member(agent)
	if err != nil {
		return session.DirectoryListing{}, err
	}
	return m.Agent.ListDirectories(ctx, path)
}

// Boards asks one agent, or all if none is named, for their devices. For an agent that is not reached it returns the
// last board, if there is one. It fails only if nothing at all is known.
func (ms *machines) Boards(ctx context.Context, agent string) ([]Board, error) {
	members, err := ms.on(agent)
	if err != nil {
		return nil, err
	}
	asked, errs := askAll(ctx, members, ms.askBoard)
	var boards []Board
	for i, board := range asked {
		if errs[i] == nil {
			boards = append(boards, board)
		}
	}
	if boards == nil {
		return nil, firstError(errs)
	}
	return boards, nil
}

func (ms *machines) askBoard(ctx context.Context, m *member) (Board, error) {
	told, err := m.Agent.Devices(ctx)
	if err == nil {
		return boardView(told, m.Name(), true), nil
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m.board == nil {
		return Board{}, err
	}
	return boardView(*m.board, m.Name(), m.online), nil
}

// DeviceHistory returns the samples of one device of an agent.
func (ms *machines) DeviceHistory(ctx context.Context, agent string, device gpu.UUID,
	since time.Time) ([]session.DevicePoint, error) {
	m, err := ms.member(agent)
	if err != nil {
		return nil, err
	}
	return m.Agent.DeviceHistory(ctx, device, since)
}

// boardOf returns the board of an agent, or an empty one if it has sent none. The caller holds mu.
func (ms *machines) boardOf(agent string) session.DeviceBoard {
	for _, m := range ms.members {
		if m.Name() == agent && m.board != nil {
			return *m.board
		}
	}
	return session.DeviceBoard{}
}

// DeviceName returns the name of an agent's device, for example "GPU 0", or its UUID if the device is unknown.
func (ms *machines) DeviceName(agent string, device gpu.UUID) string {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, d := range ms.boardOf(agent).Devices {
		if d.Device.UUID == device {
			return NameOf(d.Device)
		}
	}
	return string(device)
}

// Quantum returns the smallest share of a device that an agent allocates, or 0 if it is unknown.
func (ms *machines) Quantum(agent string) gpu.Share {
	return locked(ms.shared, func() gpu.Share { return ms.boardOf(agent).Quantum })
}

// NameOf returns the name of a device, such as "GPU 0".
func NameOf(d gpu.Device) string { return fmt.Sprintf("GPU %d", d.Index) }
