package agentserver

import (
	"context"

	"slipway/backend/session"
)

// admin is the agent as its admins see it. The gate before it says who may ask,
// and writes to the audit log what they did.
type admin struct{ *Server }

var _ session.Admin = admin{}

func (a admin) Audit(_ context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	if err := asked.Check(); err != nil {
		return nil, err
	}
	return a.audit.Read(asked)
}

func (a admin) Limits(context.Context) (map[string]session.Allowance, error) {
	return a.config.Inner.Allowances(), nil
}

func (a admin) SetLimit(_ context.Context, owner string, limit *session.Allowance) error {
	return a.config.Inner.SetAllowance(owner, limit)
}

func (a admin) PairedClients(context.Context) ([]session.PairedClient, error) {
	if a.clients == nil {
		return nil, notListening()
	}
	return a.clients.all(), nil
}

func (a admin) RevokeClient(_ context.Context, client string) error {
	if a.clients == nil {
		return notListening()
	}
	return a.clients.revoke(client)
}
