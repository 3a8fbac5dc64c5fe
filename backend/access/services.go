package access

import (
	"context"
	"net"
	"slices"

	"slipway/backend/session"
)

// ownService fails for services of others as it does for those that do not exist.
func ownService(ctx context.Context, v *view, name string) error {
	if v.all {
		return nil
	}
	list, err := v.ListServices(ctx)
	if err == nil && !slices.ContainsFunc(list, func(s session.Service) bool { return s.Name == name }) {
		err = session.NoService(name)
	}
	return err
}

// ListServices implements [session.Services]. A user sees their own.
func (v *view) ListServices(ctx context.Context) ([]session.Service, error) {
	list, err := v.agent.ListServices(ctx)
	if err != nil || v.all {
		return list, err
	}
	return slices.DeleteFunc(list, func(s session.Service) bool { return s.Owner != v.who.Owner }), nil
}

// ServiceAccounts implements [session.Accelerators]. A user sees those of their own services.
func (v *view) ServiceAccounts(ctx context.Context, span session.AccountSpan) ([]session.ServiceAccount, error) {
	rows, err := v.agent.ServiceAccounts(ctx, span)
	if err != nil || v.all {
		return rows, err
	}
	return slices.DeleteFunc(rows, func(a session.ServiceAccount) bool { return a.Owner != v.who.Owner }), nil
}

// DeployService implements [session.Services] under the rules of a launch. An admin may deploy for another owner.
func (v *view) DeployService(ctx context.Context, req session.DeployRequest) (s session.Service, err error) {
	if req.Owner == "" || !v.all {
		req.Owner = v.who.Owner
	}
	req.ByAdmin = v.all
	s, err = admitted(ctx, v.person, req.Spec,
		func() (session.Service, error) { return v.agent.DeployService(ctx, req) })
	v.note("DeployService", "", ofService(req.Name), err)
	return s, err
}

func (v *view) ChangeService(ctx context.Context, name string, change session.ServiceChange) (session.Service, error) {
	return served(ctx, v, "ChangeService", name,
		func() (session.Service, error) { return v.agent.ChangeService(ctx, name, change) })
}

func (v *view) RemoveService(ctx context.Context, name string) error {
	_, err := served(ctx, v, "RemoveService", name,
		func() (none, error) { return only(v.agent.RemoveService(ctx, name)) })
	return err
}

func (v *view) AddServiceToken(ctx context.Context, name string, req session.TokenRequest) (session.NewToken, error) {
	return served(ctx, v, "AddServiceToken", name,
		func() (session.NewToken, error) { return v.agent.AddServiceToken(ctx, name, req) })
}

func (v *view) RevokeServiceToken(ctx context.Context, name, token string) error {
	_, err := served(ctx, v, "RevokeServiceToken", name,
		func() (none, error) { return only(v.agent.RevokeServiceToken(ctx, name, token)) })
	return err
}

// DialService implements [session.Services]. The router decides who may use which service.
func (v *view) DialService(ctx context.Context) (net.Conn, error) {
	conn, err := v.agent.DialService(ctx)
	if err != nil {
		v.note("DialService", "", "", err)
	}
	return conn, err
}

// served makes a call on a service of the caller's, and logs it.
func served[T any](ctx context.Context, v *view, method, name string, call func() (T, error)) (result T, err error) {
	if err = ownService(ctx, v, name); err == nil {
		result, err = call()
	}
	v.note(method, "", ofService(name), err)
	return result, err
}

func ofService(name string) string { return "service " + name }
