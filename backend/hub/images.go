package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

// subjectAt names the subject of an operation, with the agent if it is not this computer's.
func subjectAt(subject string, m *member) string {
	if m.Local {
		return subject
	}
	return subject + " @ " + m.Name()
}

// images lists, pulls, commits, removes and sends the images of the agents.
type images struct {
	*finder
	operations *operations
	catalogue  Catalogue // nil: only what is installed is offered
}

// Image is an image and the agent that has it.
type Image struct {
	session.Image
	Agent string `json:"agent"`
}

// Images lists the images of one agent, or of all if none is named. It fails only if no agent answers.
func (im *images) Images(ctx context.Context, agent string) ([]Image, error) {
	members, err := im.on(agent)
	if err != nil {
		return nil, err
	}
	lists, errs := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.Image, error) {
		return m.Agent.ListImages(ctx)
	})
	if len(members) > 0 && !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	all := []Image{}
	for i, m := range members {
		for _, image := range lists[i] {
			all = append(all, Image{Image: image, Agent: m.Name()})
		}
	}
	return all, nil
}

// PullImage starts to pull an image to an agent's machine. It fails with image_update_invalid or agent_find_not-found.
func (im *images) PullImage(agent, ref string) (Operation, error) {
	if !session.ValidImage(ref) || strings.HasPrefix(ref, "sha256:") {
		return Operation{}, session.NewError(session.CodeImageInvalid,
			fmt.Sprintf("%q is not the name of an image.", session.Clip(ref)),
			"Write it as for docker pull, for example python:3.13.")
	}
	m, err := im.memberOrLocal(agent)
	if err != nil {
		return Operation{}, err
	}
	return im.operations.start(ImagePull, subjectAt(ref, m), func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		work.Begin("pull", "Pull the image")
		f := &following{retries{work: work, step: "pull"}, m}
		return f.run(ctx, func(ctx context.Context) (session.ImageWork, error) {
			return m.Agent.PullImage(ctx, session.PullRequest{Ref: ref, Owner: im.owner})
		})
	})
}

// CommitSession starts to create an image from a running session. It fails at once if the request is invalid.
func (im *images) CommitSession(ctx context.Context, ref, name string) (Operation, error) {
	m, id, err := im.find(ctx, ref)
	if err != nil {
		return Operation{}, err
	}
	begun, err := m.Agent.CommitSession(ctx, id, session.CommitRequest{Name: name})
	if err != nil {
		return Operation{}, err
	}
	operation, err := im.operations.start(ImageCommit, subjectAt(name, m), func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		work.Begin("commit", "Copy what the session changed")
		f := &following{retries{work: work, step: "commit"}, m}
		return f.run(ctx, func(context.Context) (session.ImageWork, error) { return begun, nil })
	})
	if err != nil { // without an operation nobody would see its progress
		err = errors.Join(err, cancelWork(ctx, m, begun))
	}
	return operation, err
}

// following shows the progress of an agent's work on an image. The agent continues while it is not reached.
type following struct {
	retries
	member *member
}

func (f *following) run(ctx context.Context, begin func(context.Context) (session.ImageWork, error)) error {
	now, err := begin(ctx)
	if err != nil {
		return f.work.fail(f.step, err)
	}
	f.work.Makes(now.Ref)
	for {
		f.show(now)
		switch now.State {
		case session.WorkDone:
			f.work.Tell(Step{Name: f.step, State: StepOK, Detail: f.detail(now)})
			return nil
		case session.WorkCancelled:
			return errStopped
		case session.WorkFailed:
			return f.work.fail(f.step, session.NewError(now.Error.Code, now.Error.Message, now.Error.Hint))
		}
		asked := time.Now()
		next, err := f.member.Agent.AwaitImageWork(ctx, now.ID, now.Revision)
		switch {
		case ctx.Err() != nil:
			return cancelWork(ctx, f.member, now)
		case away(err):
			if err := f.again(ctx, goesOn(err)); err != nil {
				return cancelWork(ctx, f.member, now)
			}
		case err != nil:
			return f.work.fail(f.step, err)
		default:
			if next.Revision <= now.Revision && next.State == session.WorkRunning && time.Since(asked) < time.Second {
				_ = pace.Wall().Pause(ctx, firstResend) // the agent answers at once without news
			}
			now = next
			f.reached()
		}
	}
}

func cancelWork(ctx context.Context, m *member, work session.ImageWork) error {
	ending, cancel := afterwards(ctx)
	defer cancel()
	_, err := m.Agent.CancelImageWork(ending, work.ID)
	return errors.Join(ctx.Err(), err)
}

func goesOn(err error) string {
	return session.AsError(err, session.CodeOperationFailed).Message + " It continues there by itself."
}

func (f *following) show(now session.ImageWork) {
	pulling := now.Kind == session.WorkPull && (now.Pull.Total > 0 || now.Pull.Layers > 0)
	if pulling {
		f.work.Progress(int64(now.Pull.Current), int64(now.Pull.Total))
	}
	if pulling || now.Kind == session.WorkCommit && now.Size > 0 {
		f.work.Tell(Step{Name: f.step, State: StepRunning, Detail: f.detail(now)})
	}
}

func (f *following) detail(now session.ImageWork) string {
	switch {
	case now.Kind == session.WorkCommit && now.Size > 0:
		return fmt.Sprintf("%s of changes", now.Size)
	case now.Kind == session.WorkPull && now.Pull.Layers > 0:
		return fmt.Sprintf("%d of %d layers", now.Pull.LayersDone, now.Pull.Layers)
	}
	return ""
}

// RemoveImages starts to remove images with all their names. The operation says why an image cannot be removed.
func (im *images) RemoveImages(agent string, refs []string) (Operation, error) {
	refs = slices.Compact(slices.Clone(refs))
	if len(refs) == 0 || len(refs) > stepsMost ||
		slices.ContainsFunc(refs, func(ref string) bool { return !session.ValidImage(ref) }) {
		return Operation{}, session.NewError(session.CodeImageInvalid,
			fmt.Sprintf("Between 1 and %d images can be removed at a time, by their names or ids.", stepsMost),
			"slipway image ls lists them.")
	}
	m, err := im.memberOrLocal(agent)
	if err != nil {
		return Operation{}, err
	}
	subject := refs[0]
	if len(refs) > 1 {
		subject = fmt.Sprintf("%d images", len(refs))
	}
	return im.operations.start(ImageRemove, subjectAt(subject, m), func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		return removeImages(ctx, work, m.Agent, refs)
	})
}

func removeImages(ctx context.Context, work *Work, agent session.Agent, refs []string) error {
	for i, ref := range refs {
		work.Plan(Step{Name: fmt.Sprintf("image-%d", i), Title: ref})
	}
	before := roomOf(ctx, agent)
	var failure error
	for i, ref := range refs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failure = cmp.Or(failure, work.Do(fmt.Sprintf("image-%d", i), "",
			func() (string, error) { return "", agent.RemoveImage(ctx, ref) }))
	}
	if after := roomOf(ctx, agent); before > 0 && after > 0 {
		work.Tell(Step{Name: "room", Title: "Room on the disk", State: StepOK,
			Detail: fmt.Sprintf("%s freed", max(before-after, 0))})
	}
	return failure
}

// roomOf returns the disk use of an agent's images, or 0 if it is unknown.
func roomOf(ctx context.Context, agent session.Agent) gpu.Bytes {
	disk, err := agent.ImageDisk(ctx)
	if err != nil {
		return 0
	}
	return disk.Total
}

// ImageDisk returns the disk use of the images on an agent's machine, and the agent's name.
func (im *images) ImageDisk(ctx context.Context, agent string) (session.ImageDisk, string, error) {
	m, err := im.memberOrLocal(agent)
	if err != nil {
		return session.ImageDisk{}, "", err
	}
	disk, err := m.Agent.ImageDisk(ctx)
	return disk, m.Name(), err
}
