package hub

import (
	"context"
	"slices"

	"slipway/backend/session"
)

// renamed is an agent of another machine under its name here. It may have another name for itself, and has no groups.
type renamed struct {
	session.Agent
	name func() string
}

func underName(agent session.Agent, name func() string) session.Agent {
	return session.AgentOf(&renamed{agent, name}, agent.Admin)
}

func there(spec session.Spec) session.Spec {
	spec.Agent, spec.Group = "", ""
	return spec
}

// session sets the agent of a session, unless the session is empty.
func (r *renamed) session(s session.Session, err error) (session.Session, error) {
	if s.ID != "" {
		s.Agent = r.name()
	}
	return s, err
}

func (r *renamed) sessions(list []session.Session, err error) ([]session.Session, error) {
	for i := range list {
		list[i].Agent = r.name()
	}
	return list, err
}

// folder sets the agent of a folder, unless the folder is empty.
func (r *renamed) folder(f session.Folder, err error) (session.Folder, error) {
	if f.ID != "" {
		f.Agent = r.name()
	}
	return f, err
}

func (r *renamed) folders(list []session.Folder, err error) ([]session.Folder, error) {
	for i := range list {
		list[i].Agent = r.name()
	}
	return list, err
}

func (r *renamed) ListServices(ctx context.Context) ([]session.Service, error) {
	list, err := r.Agent.ListServices(ctx)
	for i := range list {
		list[i].Agent = r.name()
	}
	return list, err
}

func (r *renamed) DeployService(ctx context.Context, req session.DeployRequest) (session.Service, error) {
	req.Spec = there(req.Spec)
	return r.service(r.Agent.DeployService(ctx, req))
}

func (r *renamed) ChangeService(ctx context.Context,
	name string, change session.ServiceChange) (session.Service, error) {
	return r.service(r.Agent.ChangeService(ctx, name, change))
}

func (r *renamed) service(s session.Service, err error) (session.Service, error) {
	s.Agent = r.name()
	return s, err
}

func (r *renamed) Machine(ctx context.Context) (session.Machine, error) {
	machine, err := r.Agent.Machine(ctx)
	machine.Agent = r.name()
	return machine, err
}

func (r *renamed) Preview(ctx context.Context,
	owner string, spec session.Spec, count int) (session.Preview, error) {
	p, err := r.Agent.Preview(ctx, owner, there(spec), count)
	p.Spec.Agent, p.Spec.Group = spec.Agent, spec.Group
	return p, err
}

func (r *renamed) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	req.Spec = there(req.Spec)
	return r.session(r.Agent.Launch(ctx, req))
}

func (r *renamed) Accept(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	req.Spec = there(req.Spec)
	return r.session(r.Agent.Accept(ctx, req))
}

func (r *renamed) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	return r.Agent.Watch(ctx, after, func(e session.Event) error {
		if e.Session != nil {
			e.Session = new(*e.Session)
			e.Session.Agent = r.name()
		}
		if e.Machine != nil {
			e.Machine = new(*e.Machine)
			e.Machine.Agent = r.name()
		}
		if e.Reset != nil {
			e.Reset = new(*e.Reset)
			e.Reset.Machine.Agent = r.name()
			e.Reset.Sessions, _ = r.sessions(slices.Clone(e.Reset.Sessions), nil)
		}
		return fn(e)
	})
}
