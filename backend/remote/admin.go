package remote

import (
	"context"

	"slipway/backend/pace"
	"slipway/backend/provision"
	"slipway/backend/session"
)

// admin shows times by the clock that people see.
type admin struct {
	session.Admin
	clock *pace.Clock
}

func (a admin) PairedDevices(ctx context.Context) ([]session.PairedDevice, error) {
	devices, err := a.Admin.PairedDevices(ctx)
	for i := range devices {
		devices[i].Added, devices[i].Seen = a.clock.At(devices[i].Added), a.clock.At(devices[i].Seen)
	}
	return devices, err
}

func (a *agent) PairCode(ctx context.Context, request session.PairRequest) (code session.PairCode, err error) {
	if a.ssh == nil {
		return code, &session.Error{Code: session.CodePairUnavailable,
			Message: "Devices are paired with this agent on its own machine.",
			Hint:    "Log in there: slipway agent pair."}
	}
	args := []string{"pair"}
	if request.Owner != "" {
		args = append(args, "--owner="+request.Owner)
	}
	if request.Role != "" {
		args = append(args, "--role="+string(request.Role))
	}
	err = provision.Ask(ctx, a.ssh, a.entry.Dir, &code, args...)
	code.Address, code.Expires = "slipway://"+code.Address, a.connector.config.Clock.At(code.Expires)
	return code, err
}

func (a *agent) RotateKey(ctx context.Context) (rotated session.KeyRotation, err error) {
	if a.ssh == nil {
		return rotated, &session.Error{Code: session.CodeAgentUnavailable,
			Message: "The key of this agent is changed on its own machine.",
			Hint:    "Log in there: slipway agent rotate"}
	}
	return rotated, provision.Ask(ctx, a.ssh, a.entry.Dir, &rotated, "rotate")
}
