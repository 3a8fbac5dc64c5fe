package agentserver

import (
	"context"

	"slipway/backend/session"
)

// admin answers admins who ask from elsewhere. The gate says who may, and
// writes to the audit log what they did.
type admin struct{ *Server }

var _ session.Keeper = admin{}

func (a admin) Audit(_ context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	if err := asked.Check(); err != nil {
		return nil, err
	}
	return a.audit.Read(asked)
}

func (a admin) SetLimit(_ context.Context, owner string, limit *session.Allowance) error {
	return a.config.Agent.SetAllowance(owner, limit)
}

func (a admin) KnownDevices(context.Context) ([]session.KnownDevice, error) {
	if a.devices == nil {
		return nil, notListening()
	}
	list := a.devices.list.List()
	known := make([]session.KnownDevice, len(list))
	for i, one := range list {
		known[i] = session.KnownDevice{Key: one.Key, Name: one.Name, Owner: one.Owner, Role: session.Role(one.Role),
			Added: one.Paired, Seen: one.Seen, Live: one.Live}
	}
	return known, nil
}

func (a admin) RevokeDevice(_ context.Context, key string) error {
	if a.devices == nil {
		return notListening()
	}
	return a.devices.revoke(key)
}
