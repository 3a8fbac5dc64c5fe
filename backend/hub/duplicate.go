package hub

import (
	"context"
	"fmt"

	"slipway/backend/session"
)

// refuseDuplicate fails with agent_add_already-exists where the agent of an instance is
// known already, however it is reached. The member itself is left out; nil: none.
func (d *directory) refuseDuplicate(itself *member, instance string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		if m == itself || instance == "" || m.machine.Instance != instance {
			continue
		}
		if m.remote == nil {
			return &session.Error{Code: "agent_add_already-exists", Message: "That is the agent of this computer.",
				Hint: "It is here already, as " + m.Name() + "."}
		}
		return &session.Error{Code: "agent_add_already-exists",
			Message: fmt.Sprintf("That machine is known already: its agent is %s, at %s.", m.Name(), m.entry.Address),
			Hint: "Use that one, or remove it first to reach it this way; its sessions go on. If this machine is a " +
				"copy of that one, uninstall Slipway on the copy."}
	}
	return nil
}

// checkDuplicate asks an agent that was just added who it is. Where that is known of
// another one, it is the same agent at another address. One that does not answer
// is taken at its word.
func (d *directory) checkDuplicate(ctx context.Context, m *member) error {
	ctx, cancel := within(ctx, m)
	defer cancel()
	machine, err := m.Agent.Machine(ctx)
	if err != nil {
		return nil
	}
	return d.refuseDuplicate(m, machine.Instance)
}
