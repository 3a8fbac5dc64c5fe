package access

import (
	"context"

	"slipway/backend/session"
)

var _ session.Keeper = (*view)(nil)

// kept is a call on what looks after the agent, which is for those who rule it.
// What it changes is written down, and who was refused.
func kept[T any](v *view, method, target string, changes bool,
	call func(session.Keeper) (T, error)) (result T, err error) {
	switch {
	case !v.all:
		err = &session.Error{Code: "agent_call_forbidden", Message: "Only those who rule the agent may do that.",
			Hint: "Ask one of its admins."}
	case v.gate.keeper == nil:
		err = &session.Error{Code: "agent_call_unsupported", Message: "This agent is not looked after from elsewhere.",
			Hint: "Do it on its own machine."}
	default:
		result, err = call(v.gate.keeper)
	}
	if changes || !v.all {
		v.gate.audit.Note(v.who, Act{Method: method, Target: target, Err: err, Security: v.all})
	}
	return result, err
}

func (v *view) Audit(ctx context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	return kept(v, "Audit", "", false, func(k session.Keeper) ([]session.AuditEntry,
		error) {
		return k.Audit(ctx, asked)
	})
}

func (v *view) Limits(ctx context.Context) (map[string]session.Allowance, error) {
	return kept(v, "Limits", "", false, func(k session.Keeper) (map[string]session.Allowance,
		error) {
		return k.Limits(ctx)
	})
}

func (v *view) SetLimit(ctx context.Context, owner string, limit *session.Allowance) error {
	_, err := kept(v, "SetLimit", owner, true,
		func(k session.Keeper) (none, error) { return only(k.SetLimit(ctx, owner, limit)) })
	return err
}

func (v *view) KnownDevices(ctx context.Context) ([]session.KnownDevice, error) {
	return kept(v, "KnownDevices", "", false, func(k session.Keeper) ([]session.KnownDevice,
		error) {
		return k.KnownDevices(ctx)
	})
}

func (v *view) RevokeDevice(ctx context.Context, key string) error {
	_, err := kept(v, "Revoke", key, true,
		func(k session.Keeper) (none, error) { return only(k.RevokeDevice(ctx, key)) })
	return err
}
