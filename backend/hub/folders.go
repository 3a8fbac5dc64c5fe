package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
)

type folders struct {
	*state
	operations *operations
}

// Folders returns the folders of one agent, or of all if none is named. It fails if no agent answers.
func (fs *folders) Folders(ctx context.Context, agent string) ([]session.Folder, error) {
	members, err := fs.on(agent)
	if err != nil {
		return nil, err
	}
	lists, err := fs.foldersOf(ctx, members)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b session.Folder) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// foldersOf asks several agents for their folders. It fails if none answers.
func (fs *folders) foldersOf(ctx context.Context, members []*member) ([][]session.Folder, error) {
	lists, errs := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.Folder, error) {
		return m.Agent.ListFolders(ctx, session.FolderFilter{})
	})
	if len(members) > 0 && !slices.Contains(errs, nil) {
		return nil, firstError(errs)
	}
	fs.ownFolders(members, lists)
	return lists, nil
}

// FindFolder returns a folder and its agent. Ref is an id, or the name of a folder that is not in the trash, on the
// named agent if there is one. It fails with folder_read_not-found, or with folder_update_conflict if several folders
// have the name.
func (fs *folders) FindFolder(ctx context.Context, ref, agent string) (session.Agent, session.Folder, error) {
	m, f, err := fs.findFolder(ctx, ref, agent)
	if err != nil {
		return session.Agent{}, session.Folder{}, err
	}
	return m.Agent, f, nil
}

func (fs *folders) findFolder(ctx context.Context, ref, agent string) (*member, session.Folder, error) {
	members, err := fs.on(agent)
	if err != nil {
		return nil, session.Folder{}, err
	}
	if session.ValidID(ref) {
		if m, f, ok := fs.folderHome(ctx, session.FolderID(ref), members); ok {
			return m, f, nil
		}
	}
	lists, err := fs.foldersOf(ctx, members)
	if err != nil {
		return nil, session.Folder{}, err
	}
	type candidate struct {
		*member
		session.Folder
	}
	var found, own []candidate
	for i, list := range lists {
		for _, f := range list {
			if string(f.ID) == ref {
				fs.settleFolder(f.ID, members[i])
				return members[i], f, nil
			}
			if f.Name != ref || f.State != session.FolderReady {
				continue
			}
			found = append(found, candidate{members[i], f})
			if members[i].remote != nil || f.Owner == fs.owner {
				own = append(own, candidate{members[i], f})
			}
		}
	}
	if len(own) == 1 { // other people's folders on this machine are not meant
		found = own
	}
	switch len(found) {
	case 0:
		return nil, session.Folder{}, session.NoFolder(ref)
	case 1:
		fs.settleFolder(found[0].ID, found[0].member)
		return found[0].member, found[0].Folder, nil
	}
	return nil, session.Folder{}, session.NewError(session.CodeFolderConflict,
		fmt.Sprintf("There are %d folders named %s.", len(found), ref), "Use the id: slipway folder ls shows it.")
}

// folderHome asks the agent that is known to have a folder.
func (fs *folders) folderHome(ctx context.Context, id session.FolderID,
	members []*member) (*member, session.Folder, bool) {
	fs.mu.Lock()
	m := fs.folderHomes[id]
	fs.mu.Unlock()
	if m == nil || !slices.Contains(members, m) {
		return nil, session.Folder{}, false
	}
	f, err := m.Agent.GetFolder(ctx, id)
	return m, f, err == nil
}

func (fs *folders) settleFolder(id session.FolderID, m *member) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if m.gone || !fs.claimsFolder(m, id) {
		return false
	}
	fs.folderHomes[id] = m
	return true
}

// CreateFolder creates a folder on an agent's machine, or on this computer if none is named.
func (fs *folders) CreateFolder(ctx context.Context, agent string, req session.FolderRequest) (session.Folder, error) {
	m, err := fs.memberOrLocal(agent)
	if err != nil {
		return session.Folder{}, err
	}
	if req.Owner == "" && m.remote == nil {
		req.Owner = fs.owner
	}
	f, err := m.Agent.CreateFolder(ctx, req)
	if err == nil && !fs.settleFolder(f.ID, m) {
		return session.Folder{}, strange(m, "folder")
	}
	return f, err
}

// ownFolders removes from lists, one for each agent, the folders that belong to another agent: the known one, or an
// earlier one of members.
func (fs *folders) ownFolders(members []*member, lists [][]session.Folder) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	told := map[session.FolderID]*member{}
	for i, m := range members {
		lists[i] = slices.DeleteFunc(lists[i], func(f session.Folder) bool {
			if other := told[f.ID]; other != nil && m.remote != nil {
				fs.suspect(m, foreign(m, "folder", string(f.ID), other))
				return true
			}
			told[f.ID] = m
			return !fs.claimsFolder(m, f.ID)
		})
	}
}

// The pause before an agent is asked again about the deletion of a folder grows from firstLook to longestLook.
const (
	firstLook   = 20 * time.Millisecond
	longestLook = time.Second
)

// PurgeFolder starts to delete a folder in the trash permanently. It fails at once if the agent refuses.
func (fs *folders) PurgeFolder(ctx context.Context, ref, agent string) (Operation, error) {
	m, f, err := fs.findFolder(ctx, ref, agent)
	if err != nil {
		return Operation{}, err
	}
	first := make(chan error, 1)
	operation, err := fs.operations.startOn("folder "+string(f.ID), FolderPurge, subjectAt(f.Name, m),
		func(ctx context.Context, work *Work) error {
			work.Concerns(m.Name())
			work.Begin("purge", "Delete its contents")
			p := &purging{following: following{retries{work: work, step: "purge"}, m}, folder: f}
			err := m.Agent.DeleteFolder(ctx, f.ID)
			first <- err
			if err != nil {
				return p.work.fail(p.step, err)
			}
			return p.run(ctx)
		})
	if err != nil {
		return Operation{}, err
	}
	return operation, <-first
}

type purging struct {
	following
	folder session.Folder
}

func (p *purging) run(ctx context.Context) error {
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		now, err := p.member.Agent.GetFolder(ctx, p.folder.ID)
		switch {
		case ctx.Err() != nil:
			return p.stop(ctx)
		case gone(err):
			p.work.Tell(Step{Name: p.step, State: StepOK})
			return nil
		case away(err):
			if err := p.again(ctx, goesOn(err)); err != nil {
				return p.stop(ctx)
			}
			continue
		case err != nil:
			return p.work.fail(p.step, err)
		case now.State != session.FolderDeleting: // somebody stopped it on the machine
			p.stopped(now)
			return errStopped
		case now.Problem != "":
			return p.work.fail(p.step, session.NewError(session.CodeFileFailed, now.Problem,
				"Slipway retries every minute."))
		}
		p.reached()
		p.show(now)
		_ = pace.Wall().Pause(ctx, pause)
	}
}

func gone(err error) bool { return session.CodeOf(err).Detail() == session.DetailNotFound }

func (p *purging) show(now session.Folder) {
	if r := now.Removed; r != nil {
		p.work.Progress(int64(r.Bytes), int64(r.OfBytes))
		p.work.Tell(Step{Name: p.step, State: StepRunning, Detail: removedOf(*r)})
	}
}

func removedOf(r session.FolderRemoval) string {
	if r.OfFiles == 0 {
		return fmt.Sprintf("%d files", r.Files)
	}
	return fmt.Sprintf("%d of %d files", r.Files, max(r.OfFiles, r.Files))
}

// stop stops the deletion at the agent, too, if a person cancelled it.
func (p *purging) stop(ctx context.Context) error {
	if !p.work.cancelled() {
		return ctx.Err()
	}
	ending, cancel := afterwards(ctx)
	defer cancel()
	now, err := p.member.Agent.StopDeleting(ending, p.folder.ID)
	switch {
	case gone(err):
		p.work.Tell(Step{Name: p.step, State: StepOK})
		return nil // it had already ended
	case err != nil:
		e := session.AsError(err, session.CodeFileFailed)
		p.work.Tell(Step{Name: p.step, State: StepWarning, Detail: e.Message + " Deleting continues there.",
			Remedy: e.Hint})
		return errors.Join(ctx.Err(), err)
	}
	p.stopped(now)
	return ctx.Err()
}

// stopped reports what is left of a folder whose deletion was stopped.
func (p *purging) stopped(now session.Folder) {
	detail := "Nothing of it is deleted; it is in the trash."
	if now.Removed != nil {
		detail = "Deleted are " + removedOf(*now.Removed) + "; the rest is in the trash."
	}
	p.work.Tell(Step{Name: p.step, State: StepSkipped, Detail: detail})
}
