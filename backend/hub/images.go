package hub

import (
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

// subjectAt names what an operation is about, with the agent where that is not
// this computer's.
func subjectAt(subject string, m *member) string {
	if m.Local {
		return subject
	}
	return subject + " @ " + m.Name()
}

// images lists, fetches, makes, removes and sends the images of the agents.
type images struct {
	*state
	operations *operations
	finder     *finder
	catalogue  Catalogue // nil: nothing is offered but what is installed
}

// Image is an image with the name of the agent that has it.
type Image struct {
	session.Image
	Agent string `json:"agent"`
}

// Images lists the images of one agent, or of every agent if none is named. It leaves out agents that are not
// reached, and fails if no agent answers.
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

// PullImage begins to fetch an image of a registry to an agent's machine.
// Fails with image_update_invalid, agent_find_not-found.
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

// CommitSession begins to make an image of a running session. What is wrong with
// the wish is told at once, as session.Images says.
func (im *images) CommitSession(ctx context.Context, ref, name string) (Operation, error) {
	m, id, err := im.finder.find(ctx, ref)
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
	if err != nil { // without an operation its progress would not be visible
		err = errors.Join(err, cancelWork(ctx, m, begun))
	}
	return operation, err
}

// following shows the progress of an agent's work on an image. The agent works on
// while it is not reached.
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
				_ = pace.Wall().Pause(ctx, firstResend) // it answers without news, and at once
			}
			now = next
			f.reached()
		}
	}
}

// cancelWork cancels work on an image at its agent. It returns why ctx has ended, too.
func cancelWork(ctx context.Context, m *member, work session.ImageWork) error {
	ending, cancel := afterwards(ctx)
	defer cancel()
	_, err := m.Agent.CancelImageWork(ending, work.ID)
	return errors.Join(ctx.Err(), err)
}

// goesOn says that an agent that is not reached works on.
func goesOn(err error) string {
	return session.AsError(err, session.CodeOperationFailed).Message + " It continues there by itself."
}

func (f *following) show(now session.ImageWork) {
	switch now.Kind {
	case session.WorkPull:
		if now.Pull.Total > 0 || now.Pull.Layers > 0 {
			f.work.Progress(int64(now.Pull.Current), int64(now.Pull.Total))
			f.work.Tell(Step{Name: f.step, State: StepRunning, Detail: f.detail(now)})
		}
	case session.WorkCommit:
		if now.Size > 0 {
			f.work.Tell(Step{Name: f.step, State: StepRunning, Detail: f.detail(now)})
		}
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

// RemoveImages begins to remove images of an agent's machine, each under all
// its names. Those that cannot go stay, and the operation says why.
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
		err := work.Do(fmt.Sprintf("image-%d", i), "",
			func() (string, error) { return "", agent.RemoveImage(ctx, ref) })
		if err != nil && failure == nil {
			failure = err
		}
	}
	if after := roomOf(ctx, agent); before > 0 && after > 0 {
		work.Tell(Step{Name: "room", Title: "Room on the disk", State: StepOK,
			Detail: fmt.Sprintf("%s freed", max(before-after, 0))})
	}
	return failure
}

// roomOf is what the images of an agent take, 0 where that is not known.
func roomOf(ctx context.Context, agent session.Agent) gpu.Bytes {
	disk, err := agent.ImageDisk(ctx)
	if err != nil {
		return 0
	}
	return disk.Total
}

// ImageDisk says what the images of an agent's machine take.
func (im *images) ImageDisk(ctx context.Context, agent string) (session.ImageDisk, string, error) {
	m, err := im.memberOrLocal(agent)
	if err != nil {
		return session.ImageDisk{}, "", err
	}
	disk, err := m.Agent.ImageDisk(ctx)
	return disk, m.Name(), err
}
