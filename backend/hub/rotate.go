package hub

import (
	"context"
	"slices"

	"slipway/backend/session"
)

// Rotation is the change of a key. The old key has signed the new one.
type Rotation struct {
	Before, Fingerprint string // of the old key and of the new one
	// Told and Later are the agents that have learned of this computer's new
	// key, and those that learn of it when they are reached next: their ids in
	// what a Connector tells, their names in what a Hub does.
	Told, Later []string
}

// RotateAgentKey has an agent change its key; agent_rotate_unavailable where
// that is done on its own machine.
func (d *directory) RotateAgentKey(ctx context.Context, name string) (Rotation, error) {
	m, _, err := d.remoteOf(name)
	if err != nil {
		return Rotation{}, err
	}
	rotated, err := m.remote.RotateKey(ctx)
	return Rotation{Before: rotated.Before, Fingerprint: rotated.Key}, err
}

// RotateOwnKey changes the key by which agents know this computer.
func (d *directory) RotateOwnKey(ctx context.Context) (Rotation, error) {
	if d.connector == nil {
		return Rotation{}, &session.Error{Code: "agent_rotate_unavailable",
			Message: "This Slipway reaches no other machines, so it has no key.", Hint: "Use the slipway program."}
	}
	rotation, err := d.connector.Rotate(ctx)
	if err != nil {
		return Rotation{}, err
	}
	names := map[string]string{}
	for _, m := range d.list() {
		d.mu.Lock()
		names[m.entry.ID] = m.Name()
		d.mu.Unlock()
	}
	for _, list := range [][]string{rotation.Told, rotation.Later} {
		for i, id := range list {
			list[i] = names[id]
		}
		slices.Sort(list)
	}
	return rotation, nil
}
