package hub

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"

	"slipway/backend/session"
)

// services are the models that the machines serve.
type services struct{ of *state }

// Services returns the services of one agent, or of all if none is named. It fails if no agent answers. An agent that
// is too old to have services has none.
func (sv services) Services(ctx context.Context, agent string) ([]session.Service, error) {
	members, err := sv.of.on(agent)
	if err != nil {
		return nil, err
	}
	lists, errs := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.Service, error) {
		list, err := m.Agent.ListServices(ctx)
		if session.CodeOf(err) == session.CodeAgentUnsupported {
			return nil, nil
		}
		return list, err
	})
	if len(members) > 0 && !slices.Contains(errs, nil) {
		return nil, firstError(errs)
	}
	all := slices.Concat([]session.Service{}, slices.Concat(lists...))
	slices.SortStableFunc(all, func(a, b session.Service) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// FindService returns the service of a name and its agent, on the named machine if one is named. It fails with
// service_read_not-found, or with session_update_conflict if several machines have such a service.
func (sv services) FindService(ctx context.Context, name, agent string) (session.Agent, session.Service, error) {
	list, err := sv.Services(ctx, agent)
	if err != nil {
		return session.Agent{}, session.Service{}, err
	}
	list = slices.DeleteFunc(list, func(s session.Service) bool { return s.Name != name })
	switch len(list) {
	case 0:
		return session.Agent{}, session.Service{}, session.NoService(name)
	case 1:
		m, err := sv.of.member(list[0].Agent)
		if err != nil {
			return session.Agent{}, session.Service{}, err
		}
		return m.Agent, list[0], nil
	}
	return session.Agent{}, session.Service{}, session.NewError(session.CodeSessionConflict,
		fmt.Sprintf("%d machines have a service named %s.", len(list), name), "Name the machine, too.")
}

// DeployService deploys a service on the machine that its spec names; empty: this computer.
func (sv services) DeployService(ctx context.Context, req session.DeployRequest) (session.Service, error) {
	m, err := sv.machine(req.Spec.Agent)
	if err != nil {
		return session.Service{}, err
	}
	if m.remote == nil {
		req.Owner = cmp.Or(req.Owner, sv.of.owner)
	}
	req.ByAdmin = true // an agent on another machine decides it itself
	return m.Agent.DeployService(ctx, req)
}

// Here reports whether an agent is that of this computer.
func (sv services) Here(agent string) bool {
	m, err := sv.of.member(agent)
	return err == nil && m.remote == nil
}

// DialService connects to the router of a machine, by the name of its agent; empty: this computer.
func (sv services) DialService(ctx context.Context, agent string) (net.Conn, error) {
	m, err := sv.machine(agent)
	if err != nil {
		return nil, err
	}
	return m.Agent.DialService(ctx)
}

// machine returns the member of a name; empty: that of this computer.
func (sv services) machine(agent string) (*member, error) {
	members, err := sv.of.on(agent)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(members, func(m *member) bool { return agent != "" || m.remote == nil })
	if i < 0 {
		return nil, session.NewError(session.CodeAgentNotFound, "This computer has no agent.", "Name a machine.")
	}
	return members[i], nil
}
