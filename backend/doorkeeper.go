package backend

import (
	"context"

	"slipway/backend/session"
)

// doorKeeper looks after the agent of a door for those who rule it from
// elsewhere. Who asked is judged and written down by the gate.
type doorKeeper struct{ *door }

var _ session.Keeper = doorKeeper{}

func (d doorKeeper) Audit(_ context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	if err := asked.Check(); err != nil {
		return nil, err
	}
	return d.audit.Read(asked)
}

func (d doorKeeper) SetLimit(_ context.Context, owner string, limit *session.Allowance) error {
	return d.local.Agent.SetAllowance(owner, limit)
}

func (d doorKeeper) KnownDevices(context.Context) ([]session.KnownDevice, error) {
	if d.devices == nil {
		return nil, deaf()
	}
	list := d.devices.list.List()
	known := make([]session.KnownDevice, len(list))
	for i, one := range list {
		known[i] = session.KnownDevice{Key: one.Key, Name: one.Name, Owner: one.Owner, Role: session.Role(one.Role),
			Added: one.Paired, Seen: one.Seen, Live: one.Live}
	}
	return known, nil
}

func (d doorKeeper) RevokeDevice(_ context.Context, key string) error {
	if d.devices == nil {
		return deaf()
	}
	return d.devices.revoke(key)
}
