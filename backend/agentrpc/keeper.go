package agentrpc

import (
	"context"

	"slipway/backend/session"
	"slipway/tunnel"
)

// The arguments of the methods of [session.Keeper].
type (
	auditArgs struct {
		Limit int `json:"limit"`
	}
	limitArgs struct {
		Owner string             `json:"owner"`
		Limit *session.Allowance `json:"limit,omitempty"`
	}
	keyArgs struct {
		Key string `json:"key"`
	}
)

// The methods of [session.Keeper].
var (
	methodAudit = plain[auditArgs, []session.AuditEntry]{spec{"audit", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r auditArgs) ([]session.AuditEntry, error) {
			return kept(a, "audit", func(k session.Keeper) ([]session.AuditEntry, error) { return k.Audit(ctx, r.Limit) })
		}}
	methodLimits = plain[none, map[string]session.Allowance]{spec{"limits", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, _ none) (map[string]session.Allowance, error) {
			return kept(a, "limits", func(k session.Keeper) (map[string]session.Allowance, error) { return k.Limits(ctx) })
		}}
	methodSetLimit = plain[limitArgs, none]{spec{"limit.set", "update", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r limitArgs) (none, error) {
			return kept(a, "limit.set", func(k session.Keeper) (none, error) { return none{}, k.SetLimit(ctx, r.Owner, r.Limit) })
		}}
	methodKnownDevices = plain[none, []session.KnownDevice]{spec{"known", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, _ none) ([]session.KnownDevice, error) {
			return kept(a, "known", func(k session.Keeper) ([]session.KnownDevice, error) { return k.KnownDevices(ctx) })
		}}
	methodRevokeDevice = plain[keyArgs, none]{spec{"known.revoke", "revoke", tunnel.Control, once, short},
		func(ctx context.Context, a session.Agent, r keyArgs) (none, error) {
			return kept(a, "known.revoke", func(k session.Keeper) (none, error) { return none{}, k.RevokeDevice(ctx, r.Key) })
		}}
)

// kept asks an agent that is looked after from elsewhere.
func kept[T any](a session.Agent, method string, call func(session.Keeper) (T, error)) (T, error) {
	if k, ok := a.(session.Keeper); ok {
		return call(k)
	}
	var nothing T
	return nothing, unsupported(method)
}

var _ session.Keeper = (*Client)(nil)

// Audit implements [session.Keeper].
func (c *Client) Audit(ctx context.Context, limit int) ([]session.AuditEntry, error) {
	return methodAudit.call(ctx, c, auditArgs{limit})
}

// Limits implements [session.Keeper].
func (c *Client) Limits(ctx context.Context) (map[string]session.Allowance, error) {
	return methodLimits.call(ctx, c, none{})
}

// SetLimit implements [session.Keeper].
func (c *Client) SetLimit(ctx context.Context, owner string, limit *session.Allowance) error {
	_, err := methodSetLimit.call(ctx, c, limitArgs{owner, limit})
	return err
}

// KnownDevices implements [session.Keeper].
func (c *Client) KnownDevices(ctx context.Context) ([]session.KnownDevice, error) {
	return methodKnownDevices.call(ctx, c, none{})
}

// RevokeDevice implements [session.Keeper].
func (c *Client) RevokeDevice(ctx context.Context, key string) error {
	_, err := methodRevokeDevice.call(ctx, c, keyArgs{key})
	return err
}
