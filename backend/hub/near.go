package hub

import (
	"context"

	"slipway/backend/session"
)

// near is an agent of another machine under the name that it has here. Over
// there it may call itself anything, and knows nothing of resource groups.
type near struct {
	session.Agent
	name func() string
}

var _ session.Agent = (*near)(nil)

// there is spec as the agent gets it.
func there(spec session.Spec) session.Spec {
	spec.Agent, spec.Group = "", ""
	return spec
}

// here names the agent of a session, as far as the session is one.
func (n *near) here(s session.Session, err error) (session.Session, error) {
	if s.ID != "" {
		s.Agent = n.name()
	}
	return s, err
}

func (n *near) Machine(ctx context.Context) (session.Machine, error) {
	machine, err := n.Agent.Machine(ctx)
	machine.Agent = n.name()
	return machine, err
}

func (n *near) Preview(ctx context.Context, owner string, spec session.Spec) (session.Preview, error) {
	p, err := n.Agent.Preview(ctx, owner, there(spec))
	p.Spec.Agent, p.Spec.Group = spec.Agent, spec.Group
	return p, err
}

func (n *near) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	req.Spec = there(req.Spec)
	return n.here(n.Agent.Launch(ctx, req))
}

func (n *near) Get(ctx context.Context, id session.ID) (session.Session, error) {
	return n.here(n.Agent.Get(ctx, id))
}

func (n *near) List(ctx context.Context, filter session.Filter) ([]session.Session, error) {
	sessions, err := n.Agent.List(ctx, filter)
	name := n.name()
	for i := range sessions {
		sessions[i].Agent = name
	}
	return sessions, err
}

func (n *near) Rename(ctx context.Context, id session.ID, name string) (session.Session, error) {
	return n.here(n.Agent.Rename(ctx, id, name))
}

func (n *near) SetTags(ctx context.Context, id session.ID, tags []string) (session.Session, error) {
	return n.here(n.Agent.SetTags(ctx, id, tags))
}

func (n *near) Terminate(ctx context.Context, id session.ID, forced bool) (session.Session, error) {
	return n.here(n.Agent.Terminate(ctx, id, forced))
}

func (n *near) SetPriority(ctx context.Context, id session.ID, priority int) (session.Session, error) {
	return n.here(n.Agent.SetPriority(ctx, id, priority))
}

func (n *near) Keep(ctx context.Context, id session.ID, length session.Duration) (session.Session, error) {
	return n.here(n.Agent.Keep(ctx, id, length))
}

func (n *near) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	return n.Agent.Watch(ctx, after, func(e session.Event) error {
		name := n.name()
		if e.Session != nil {
			told := *e.Session
			told.Agent = name
			e.Session = &told
		}
		if e.Machine != nil {
			told := *e.Machine
			told.Agent = name
			e.Machine = &told
		}
		if e.Reset != nil {
			told := *e.Reset
			told.Machine.Agent = name
			told.Sessions = append([]session.Session(nil), told.Sessions...)
			for i := range told.Sessions {
				told.Sessions[i].Agent = name
			}
			e.Reset = &told
		}
		return fn(e)
	})
}

// hereFolder names the agent of a folder, as far as the folder is one.
func (n *near) hereFolder(f session.Folder, err error) (session.Folder, error) {
	if f.ID != "" {
		f.Agent = n.name()
	}
	return f, err
}

func (n *near) ListFolders(ctx context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	folders, err := n.Agent.ListFolders(ctx, filter)
	name := n.name()
	for i := range folders {
		folders[i].Agent = name
	}
	return folders, err
}

func (n *near) GetFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return n.hereFolder(n.Agent.GetFolder(ctx, id))
}

func (n *near) CreateFolder(ctx context.Context, req session.FolderRequest) (session.Folder, error) {
	return n.hereFolder(n.Agent.CreateFolder(ctx, req))
}

func (n *near) UpdateFolder(ctx context.Context, id session.FolderID,
	change session.FolderChange) (session.Folder, error) {
	return n.hereFolder(n.Agent.UpdateFolder(ctx, id, change))
}

func (n *near) TrashFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return n.hereFolder(n.Agent.TrashFolder(ctx, id))
}

func (n *near) RestoreFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return n.hereFolder(n.Agent.RestoreFolder(ctx, id))
}
