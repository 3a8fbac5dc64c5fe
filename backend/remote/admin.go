package remote

import (
	"context"

	"slipway/backend/daemon"
	"slipway/backend/hub"
	"slipway/backend/provision"
	"slipway/backend/session"
	"slipway/tunnel/secure"
)

// keeper fails where the devices of an agent cannot be asked for from here.
func (a *agent) keeper() error {
	if a.ssh != nil {
		return nil
	}
	return &session.Error{Code: "agent_pair_unavailable",
		Message: "Devices are paired with this agent on its own machine.", Hint: "Log in there: slipway agent pair."}
}

func (a *agent) Audit(ctx context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	return a.client.Audit(ctx, asked)
}

func (a *agent) Limits(ctx context.Context) (map[string]session.Allowance, error) {
	return a.client.Limits(ctx)
}

func (a *agent) SetLimit(ctx context.Context, owner string, limit *session.Allowance) error {
	return a.client.SetLimit(ctx, owner, limit)
}

// knownDevices asks an agent that this computer is paired with.
func (a *agent) knownDevices(ctx context.Context) ([]daemon.Device, error) {
	known, err := a.client.KnownDevices(ctx)
	told := make([]daemon.Device, len(known))
	for i, d := range known {
		told[i] = daemon.Device{Key: d.Key, Name: d.Name, Owner: d.Owner, Role: string(d.Role), Added: d.Added,
			Seen: d.Seen, Live: d.Live}
	}
	return told, err
}

func (a *agent) PairedDevices(ctx context.Context) ([]hub.PairedDevice, error) {
	var told []daemon.Device
	var err error
	if a.ssh == nil {
		told, err = a.knownDevices(ctx)
	} else {
		err = provision.Ask(ctx, a.ssh, a.entry.Dir, &told, "devices")
	}
	if err != nil {
		return nil, err
	}
	own := ""
	if identity, err := a.connector.identity(); err == nil {
		own = identity.Fingerprint()
	}
	clock := a.connector.config.Clock
	devices := make([]hub.PairedDevice, len(told))
	for i, d := range told {
		devices[i] = hub.PairedDevice{Name: d.Name, Fingerprint: d.Key, Owner: d.Owner, Role: d.Role,
			This: d.Key == own, AddedAt: clock.At(d.Added), LastSeen: clock.At(d.Seen)}
	}
	return devices, nil
}

func (a *agent) RevokeDevice(ctx context.Context, fingerprint string) error {
	if !secure.ValidFingerprint(fingerprint) {
		return &session.Error{Code: "agent_revoke_not-found", Message: "That is not the key of a device.",
			Hint: "List them: slipway agent devices"}
	}
	if a.ssh == nil {
		return a.client.RevokeDevice(ctx, fingerprint)
	}
	return provision.Ask(ctx, a.ssh, a.entry.Dir, nil, "revoke", fingerprint)
}

func (a *agent) PairCode(ctx context.Context, owner, role string) (hub.PairCode, error) {
	if err := a.keeper(); err != nil {
		return hub.PairCode{}, err
	}
	args := []string{"pair"}
	if owner != "" {
		args = append(args, "--owner="+owner)
	}
	if role != "" {
		args = append(args, "--role="+role)
	}
	var code daemon.Code
	if err := provision.Ask(ctx, a.ssh, a.entry.Dir, &code, args...); err != nil {
		return hub.PairCode{}, err
	}
	return hub.PairCode{Code: code.Code, Address: "slipway://" + code.Address,
		ExpiresAt: a.connector.config.Clock.At(code.Expires)}, nil
}

func (a *agent) RotateKey(ctx context.Context) (hub.Rotation, error) {
	if err := a.keeper(); err != nil {
		return hub.Rotation{}, &session.Error{Code: "agent_rotate_unavailable",
			Message: "The key of this agent is changed on its own machine.", Hint: "Log in there: slipway agent rotate",
			Err: err}
	}
	var rotated daemon.Rotated
	if err := provision.Ask(ctx, a.ssh, a.entry.Dir, &rotated, "rotate"); err != nil {
		return hub.Rotation{}, err
	}
	return hub.Rotation{Before: rotated.Before, Fingerprint: rotated.Key}, nil
}
