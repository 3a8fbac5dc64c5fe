package hub

import (
	"context"
	"fmt"
	"slices"

	"slipway/backend/session"
)

// administration asks an agent that one rules what only its admins may, and
// changes keys.
type administration struct {
	*state
	connector Connector // nil: this Slipway reaches no other machines
}

// Admin returns what only the admins of a remote agent may ask.
func (a *administration) Admin(name string) (session.Admin, error) {
	m, _, err := a.remoteOf(name)
	if err != nil {
		return nil, err
	}
	return m.Agent.Admin, nil
}

// PairedClient is a client that is paired with an agent. This marks the computer
// that asks.
type PairedClient struct {
	session.PairedClient
	This bool
}

// PairedClients lists the clients that an agent lets in.
func (a *administration) PairedClients(ctx context.Context, name string) ([]PairedClient, error) {
	admin, err := a.Admin(name)
	if err != nil {
		return nil, err
	}
	paired, err := admin.PairedClients(ctx)
	clients, own := make([]PairedClient, len(paired)), a.connector.Key()
	for i, d := range paired {
		clients[i] = PairedClient{PairedClient: d, This: own != "" && d.Key == own}
	}
	return clients, err
}

// PairCode has an agent make a code by which one more client is let in.
func (a *administration) PairCode(ctx context.Context, name string,
	request session.PairRequest) (session.PairCode, error) {
	m, _, err := a.remoteOf(name)
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
// Told and Later hold ids in what a [Connector] returns, and names in what the hub does.
type Rotation struct {
	Before      string   `json:"before"`      // fingerprint of the old key
	Fingerprint string   `json:"fingerprint"` // of the new key
	Told        []string `json:"told"`        // agents that have learned this computer's new key
	Later       []string `json:"later"`       // agents that learn it when they are next reached
}

// RotateAgentKey has an agent change its key; agent_call_unavailable where
// that is done on its own machine.
func (a *administration) RotateAgentKey(ctx context.Context, name string) (Rotation, error) {
	m, _, err := a.remoteOf(name)
	if err != nil {
		return Rotation{}, err
	}
	rotated, err := m.remote.RotateKey(ctx)
	return Rotation{Before: rotated.Before, Fingerprint: rotated.Key}, err
}

// RotateOwnKey changes the key by which agents know this computer.
func (a *administration) RotateOwnKey(ctx context.Context) (Rotation, error) {
	if a.connector == nil {
		return Rotation{}, session.NewError(session.CodeAgentUnavailable,
			"This Slipway reaches no other machines, so it has no key.", "Use the slipway program.")
	}
	rotation, err := a.connector.Rotate(ctx)
	if err != nil {
		return Rotation{}, err
	}
	names := map[string]string{}
	for _, m := range a.list() {
		a.mu.Lock()
		names[m.entry.ID] = m.Name()
		a.mu.Unlock()
	}
	for _, list := range [][]string{rotation.Told, rotation.Later} {
		for i, id := range list {
			list[i] = names[id]
		}
		slices.Sort(list)
	}
	return rotation, nil
}
