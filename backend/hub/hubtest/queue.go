package hubtest

import (
	"context"
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// SetBoard says what Devices returns and tells of it.
func (a *Agent) SetBoard(board session.DeviceBoard) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.board = &board
	a.tell(session.Event{Devices: &board})
}

// SetAccounts says what Accounts returns, whatever the span.
func (a *Agent) SetAccounts(rows ...session.Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accounts = rows
}

// SetHistory says what History returns for every session.
func (a *Agent) SetHistory(phases ...session.Phase) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.phases = phases
}

// Refuse makes Launch fail with err for sessions of that name.
func (a *Agent) Refuse(name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused[name] = err
}

// Span is the last span of accounts that was asked for.
func (a *Agent) Span() session.AccountSpan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.span
}

func (a *Agent) Devices(context.Context) (session.DeviceBoard, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return session.DeviceBoard{}, a.unavailable()
	}
	if a.board == nil {
		return session.DeviceBoard{Source: "none", Text: "This machine has no devices."}, nil
	}
	return *a.board, nil
}

// DeviceHistory implements [session.Accelerators]: one point a second after since.
func (a *Agent) DeviceHistory(_ context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, a.unavailable()
	}
	if a.board != nil {
		for _, d := range a.board.Devices {
			if d.Device.UUID == device {
				return []session.DevicePoint{{At: since.Add(time.Second), Util: d.Util, MemoryUsed: d.MemoryUsed,
					Power: d.Power, Temperature: d.Temperature}}, nil
			}
		}
	}
	return nil, &session.Error{Code: "accelerator_read_not-found", Message: fmt.Sprintf("There is no device %q.",
		device), Hint: "List the devices."}
}

func (a *Agent) Accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, a.unavailable()
	}
	a.span = span
	return a.accounts, nil
}

func (a *Agent) SetPriority(_ context.Context, id session.ID, priority int) (session.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.get(id)
	if err != nil {
		return s, err
	}
	if s.Status != session.Pending {
		return s, &session.Error{Code: "session_update_conflict", Message: fmt.Sprintf("%s is %s and waits no more.",
			s.Name, s.Status), Hint: "Only a session that waits has a priority to change."}
	}
	s.Priority = priority
	return a.put(s), nil
}

// Keep implements [session.Queue]; the time begins at the session's creation.
func (a *Agent) Keep(_ context.Context, id session.ID, length session.Duration) (session.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.get(id)
	if err != nil {
		return s, err
	}
	until := s.CreatedAt.Add(time.Duration(length))
	s.KeepUntil = &until
	return a.put(s), nil
}

// SimulateIdle implements [session.Queue]: a lifetime ends the session that
// long after its creation.
func (a *Agent) SimulateIdle(_ context.Context, id session.ID,
	policy session.IdlePolicy) (session.IdleSimulation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.get(id)
	if err != nil || policy.Lifetime == 0 {
		return session.IdleSimulation{Since: s.CreatedAt, Message: "It would not have ended."}, err
	}
	at := s.CreatedAt.Add(time.Duration(policy.Lifetime))
	return session.IdleSimulation{Ended: true, At: &at, Checker: session.CheckLifetime, Since: s.CreatedAt,
		Message: "It would have lived as long as it may."}, nil
}
