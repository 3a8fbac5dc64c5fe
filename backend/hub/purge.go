package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
)

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
			work.Begin("purge", "Delete what is in it")
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
				"It is tried again every minute."))
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
