package hub

import (
	"context"
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// machines tells of the agents' machines and of what is used there.
type machines struct{ *state }

// Machines returns every agent's machine as last heard of.
func (ms *machines) Machines() []Machine {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.machines()
}

// Doctor probes the machine of an agent; of the local one where none is named.
func (ms *machines) Doctor(ctx context.Context, agent string) ([]session.Check, error) {
	if agent == "" {
		agent = ms.Local()
	}
	m, err := ms.member(agent)
	if err != nil {
		return nil, err
	}
	return m.Agent.Doctor(ctx)
}

// ListDirectories lists the directories in a directory of an agent's machine.
func (ms *machines) ListDirectories(ctx context.Context, agent, path string) (session.DirectoryListing, error) {
	m, err := ms.member(agent)
	if err != nil {
		return session.DirectoryListing{}, err
	}
	return m.Agent.ListDirectories(ctx, path)
}

// Boards asks an agent for its devices, or every one where none is named. One that is not reached is answered
// for with its last board, if it told one; the call fails only when nothing at
// all is known.
func (ms *machines) Boards(ctx context.Context, agent string) ([]Board, error) {
	members, err := ms.on(agent)
	if err != nil {
		return nil, err
	}
	asked := make([]*Board, len(members))
	errs := make([]error, len(members))
	askAll(ctx, members, func(ctx context.Context, i int, m *member) { asked[i], errs[i] = ms.askBoard(ctx, m) })
	boards := make([]Board, 0, len(asked))
	for _, board := range asked {
		if board != nil {
			boards = append(boards, *board)
		}
	}
	if len(boards) == 0 {
		return nil, firstError(errs)
	}
	return boards, nil
}

func (ms *machines) askBoard(ctx context.Context, m *member) (*Board, error) {
	told, err := m.Agent.Devices(ctx)
	if err == nil {
		return &Board{DeviceBoard: told, Agent: m.Name(), Online: true}, nil
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m.board == nil {
		return nil, err
	}
	board := m.boardView()
	return &board, nil
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

// DeviceName is what people call a device of an agent, for example "GPU 0"; its
// UUID where the agent told of no such device.
func (ms *machines) DeviceName(agent string, device gpu.UUID) string {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.members {
		if m.Name() != agent || m.board == nil {
			continue
		}
		for _, d := range m.board.Devices {
			if d.Device.UUID == device {
				return NameOf(d.Device)
			}
		}
	}
	return string(device)
}

// Quantum is the smallest share of a device that an agent gives, 0 where it is
// not known.
func (ms *machines) Quantum(agent string) gpu.Share {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.members {
		if m.Name() == agent && m.board != nil {
			return m.board.Quantum
		}
	}
	return 0
}

// NameOf is what people call a device: "GPU 0".
func NameOf(d gpu.Device) string { return fmt.Sprintf("GPU %d", d.Index) }
