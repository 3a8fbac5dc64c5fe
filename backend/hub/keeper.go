package hub

import (
	"context"

	"slipway/backend/session"
)

// Audit returns the newest entries of the log of what was done with an agent
// that one rules, oldest first.
func (h *Hub) Audit(ctx context.Context, name string, asked session.AuditQuery) ([]session.AuditEntry, error) {
	m, _, err := h.remoteOf(name)
	if err != nil {
		return nil, err
	}
	return m.remote.Audit(ctx, asked)
}

// Limits returns what each person may hold on an agent that one rules.
func (h *Hub) Limits(ctx context.Context, name string) (map[string]session.Allowance, error) {
	m, _, err := h.remoteOf(name)
	if err != nil {
		return nil, err
	}
	return m.remote.Limits(ctx)
}

// SetLimit sets what a person may hold on an agent that one rules; nil: nothing
// of their own.
func (h *Hub) SetLimit(ctx context.Context, name, owner string, limit *session.Allowance) error {
	m, _, err := h.remoteOf(name)
	if err != nil {
		return err
	}
	return m.remote.SetLimit(ctx, owner, limit)
}
