package agentrpc

import (
	"context"
	"slices"

	"slipway/backend/session"
	"slipway/tunnel"
)

// The arguments of the methods of [session.Keeper].
type (
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
	methodAudit = plain[session.AuditQuery, []session.AuditEntry]{spec{"audit", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, asked session.AuditQuery) ([]session.AuditEntry, error) {
			return kept(a, "audit", func(k session.Keeper) ([]session.AuditEntry, error) { return k.Audit(ctx, asked) })
		}}
	methodLimits = plain[none, map[string]session.Allowance]{spec{"limits", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, _ none) (map[string]session.Allowance, error) {
			return kept(a, "limits", func(k session.Keeper) (map[string]session.Allowance,
				error) {
				return k.Limits(ctx)
			})
		}}
	methodSetLimit = plain[limitArgs, none]{spec{"limit.set", "update", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r limitArgs) (none, error) {
			return kept(a, "limit.set", func(k session.Keeper) (none, error) {
				return none{},
					k.SetLimit(ctx, r.Owner, r.Limit)
			})
		}}
	methodKnownDevices = plain[none, []session.KnownDevice]{spec{"known", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, _ none) ([]session.KnownDevice, error) {
			return kept(a, "known", func(k session.Keeper) ([]session.KnownDevice,
				error) {
				return k.KnownDevices(ctx)
			})
		}}
	methodRevokeDevice = plain[keyArgs, none]{spec{"known.revoke", "revoke", tunnel.Control, once, short},
		func(ctx context.Context, a session.Agent, r keyArgs) (none, error) {
			return kept(a, "known.revoke", func(k session.Keeper) (none, error) {
				return none{},
					k.RevokeDevice(ctx, r.Key)
			})
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

// Audit implements [session.Keeper]. An agent of before knows only how many are
// asked for: of its answer what is not asked for is left out, and one that has
// nothing older than what is known ends in an error.
func (c *Client) Audit(ctx context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	entries, err := methodAudit.call(ctx, c, asked, atMost[session.AuditEntry](asked.Limit))
	if err == nil && !asked.Before.IsZero() &&
		slices.ContainsFunc(entries, func(e session.AuditEntry) bool { return e.At.Equal(asked.Before) }) {
		err = unsupported("audit")
	}
	return slices.DeleteFunc(entries, func(e session.AuditEntry) bool { return !asked.Matches(e) }), err
}

func (c *Client) Limits(ctx context.Context) (map[string]session.Allowance, error) {
	return methodLimits.call(ctx, c, none{})
}

func (c *Client) SetLimit(ctx context.Context, owner string, limit *session.Allowance) error {
	_, err := methodSetLimit.call(ctx, c, limitArgs{owner, limit})
	return err
}

func (c *Client) KnownDevices(ctx context.Context) ([]session.KnownDevice, error) {
	return methodKnownDevices.call(ctx, c, none{})
}

func (c *Client) RevokeDevice(ctx context.Context, key string) error {
	_, err := methodRevokeDevice.call(ctx, c, keyArgs{key})
	return err
}
