package hub

import (
	"context"
	"fmt"
	"slices"

	"slipway/backend/session"
)

// Admin returns the operations that only the admins of a remote agent may use.
func (d *directory) Admin(name string) (session.Admin, error) {
	m, _, err := d.remoteOf(name)
	if err != nil {
		return nil, err
	}
	return m.Agent.Admin, nil
}

// PairedClient is a client that is paired with an agent. This marks the computer that asks.
type PairedClient struct {
	session.PairedClient
	This bool
}

func (d *directory) PairedClients(ctx context.Context, name string) ([]PairedClient, error) {
	admin, err := d.Admin(name)
	if err != nil {
		return nil, err
	}
	paired, err := admin.PairedClients(ctx)
	own := d.connector.Key()
	return each(paired, func(c session.PairedClient) PairedClient {
		return PairedClient{c, own != "" && c.Key == own}
	}), err
}

// PairCode creates a code that pairs one client with an agent.
func (d *directory) PairCode(ctx context.Context, name string,
	request session.PairRequest) (session.PairCode, error) {
	m, _, err := d.remoteOf(name)
	if err != nil {
		return session.PairCode{}, err
	}
	if role := request.Role; role != "" && role != session.RoleUser && role != session.RoleAdmin {
		return session.PairCode{}, wrongField(session.CodeAgentInvalid, "role", session.KindInvalid,
			fmt.Sprintf("Unknown role %q.", session.Clip(string(role))), "Use admin or user.")
	}
	if request.Owner != "" && !userRule.MatchString(request.Owner) {
		return session.PairCode{}, wrongOwner(session.CodeAgentInvalid, request.Owner)
	}
	return m.remote.PairCode(ctx, request)
}

// Rotation is the change of a key. The old key has signed the new one, so whoever knew the old one accepts it.
type Rotation struct {
	Before      string   `json:"before"`      // fingerprint of the old key
	Fingerprint string   `json:"fingerprint"` // of the new key
	Told        []string `json:"told"`        // agents that have learned this computer's new key
	Later       []string `json:"later"`       // agents that learn it when they are next reached
}

// RotateAgentKey has an agent change its key. It fails with agent_call_unavailable if it is not reached by ssh.
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
		return Rotation{}, session.NewError(session.CodeAgentUnavailable,
			"This Slipway reaches no other machines, so it has no key.", "Use the slipway program.")
	}
	rotation, err := d.connector.Rotate(ctx)
	if err != nil {
		return Rotation{}, err
	}
	names := map[string]string{}
	for _, m := range d.list() {
		names[d.entryOf(m).ID] = m.Name()
	}
	for _, list := range [][]string{rotation.Told, rotation.Later} {
		for i, id := range list {
			list[i] = names[id]
		}
		slices.Sort(list)
	}
	return rotation, nil
}
