package agentserver

import (
	"context"

	"slipway/backend/session"
)

// admin implements what admins may call. The gate in front of it checks permission and writes the audit log.
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
	clients := []session.PairedClient{}
	for _, one := range a.clients.list.List() {
		clients = append(clients, session.PairedClient{Key: one.Key, Name: one.Name, Owner: one.Owner,
			Role: session.Role(one.Role), Added: one.Paired, Seen: one.Seen, Live: one.Live})
	}
	return clients, nil
}

func (a admin) RevokeClient(_ context.Context, client string) error {
	if a.clients == nil {
		return notListening()
	}
	return a.clients.revoke(client)
}
