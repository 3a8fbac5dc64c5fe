package remote

import (
	"context"

	"slipway/backend/pace"
	"slipway/backend/provision"
	"slipway/backend/session"
)

// admin converts times to the clock that people see.
type admin struct {
	session.Admin
	clock *pace.Clock
}

func (a admin) PairedClients(ctx context.Context) ([]session.PairedClient, error) {
	clients, err := a.Admin.PairedClients(ctx)
	for i := range clients {
		clients[i].Added, clients[i].Seen = a.clock.At(clients[i].Added), a.clock.At(clients[i].Seen)
	}
	return clients, err
}

func (a *agent) PairCode(ctx context.Context, request session.PairRequest) (code session.PairCode, err error) {
	if a.ssh == nil {
		return code, session.NewError(session.CodePairUnavailable,
			"Computers are paired with this agent on its own machine.", "Log in there: slipway agent pair.")
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
		return rotated, session.NewError(session.CodeAgentUnavailable,
			"The key of this agent is changed on its own machine.", "Log in there: slipway agent rotate")
	}
	return rotated, provision.Ask(ctx, a.ssh, a.entry.Dir, &rotated, "rotate")
}
