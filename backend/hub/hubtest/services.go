package hubtest

import (
	"context"
	"net"
	"slices"

	"slipway/backend/session"
)

// services are answered from what was deployed; no replica ever runs.
type services struct {
	*base
	deployed []session.Service // guarded by mu
	// Addresses are where services are reached on the machine.
	Addresses []session.ServiceAddress
	// Route connects to the router; nil: there is none.
	Route func() net.Conn
}

func (a *services) listServices(context.Context) ([]session.Service, error) {
	return slices.Clone(a.deployed), nil
}

func (a *services) deployService(_ context.Context, req session.DeployRequest) (session.Service, error) {
	s := session.Service{Name: req.Name, Owner: req.Owner, Agent: a.Name, ServiceWish: req.ServiceWish, Revision: 1,
		ServiceCondition: session.ServiceCondition{State: session.ServiceDeploying},
		Revisions:        []session.Revision{{Number: 1, Spec: req.Spec}}, Live: []session.Replica{},
		Tokens: []session.ServiceToken{}, Addresses: a.Addresses}
	a.deployed = append(a.deployed, s)
	return s, nil
}

func (a *services) changeService(_ context.Context,
	name string, change session.ServiceChange) (session.Service, error) {
	i := slices.IndexFunc(a.deployed, func(s session.Service) bool { return s.Name == name })
	if i < 0 {
		return session.Service{}, session.NoService(name)
	}
	if change.Replicas != nil {
		a.deployed[i].Replicas = *change.Replicas
		if *change.Replicas == 0 {
			a.deployed[i].State = session.ServiceStopped
		}
	}
	if change.Rules != nil {
		a.deployed[i].Rules = *change.Rules
	}
	if change.MaySleep != nil {
		a.deployed[i].MaySleep = *change.MaySleep
	}
	return a.deployed[i], nil
}

func (a *services) removeService(_ context.Context, name string) error {
	a.deployed = slices.DeleteFunc(a.deployed, func(s session.Service) bool { return s.Name == name })
	return nil
}

func (a *services) addServiceToken(_ context.Context,
	name string, req session.TokenRequest) (session.NewToken, error) {
	return session.NewToken{ServiceToken: session.ServiceToken{ID: "t1", Name: req.Name}, Text: "sk-" + name}, nil
}

func (a *services) revokeServiceToken(context.Context, string, string) error { return nil }

func (a *services) dialService(context.Context) (net.Conn, error) {
	if a.Route == nil {
		return nil, failed(session.CodeAgentUnsupported, "It has no router.")
	}
	return a.Route(), nil
}
