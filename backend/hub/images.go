package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/backend/layers"
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
	secrets    *secrets
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
	login, err := im.secrets.loginFor(ref)
	if err != nil {
		return Operation{}, err
	}
	return im.operations.start(ImagePull, subjectAt(ref, m), func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		work.Begin("pull", "Pull the image")
		f := &following{retries{work: work, step: "pull"}, m}
		return f.run(ctx, func(ctx context.Context) (session.ImageWork, error) {
			return m.Agent.PullImage(ctx, session.PullRequest{Ref: ref, Owner: im.owner, Login: login})
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
			return f.work.fail(f.step, f.failure(now))
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
	return session.AsError(err, session.CodeOperationFailed).Message + " It continues there automatically."
}

func (f *following) show(now session.ImageWork) {
	pulling := now.Build == nil && (now.Pull.Total > 0 || now.Pull.Layers > 0)
	if now.Build != nil {
		f.showBuild(*now.Build)
	}
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
	case now.Build == nil && now.Pull.Layers > 0:
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
		work.Tell(Step{Name: "room", Title: "Free disk space", State: StepOK,
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

// ImageSending asks for an image to be sent from one agent to another.
type ImageSending struct {
	Image string `json:"image"`
	From  string `json:"from,omitempty"` // empty: this computer's agent
	To    string `json:"to,omitempty"`   // empty: this computer's agent
	// Replace moves a name that another image has there; only for an admin of that agent.
	Replace bool `json:"replace,omitempty"`
}

const corruptMost = 3 // attempts after damaged data arrived

// SendImage starts to send an image from one agent to another without a registry. Only missing layers are sent. The
// operation waits while an agent is not reached. When cancelled, it drops what has arrived; when failed, it keeps that
// for another attempt. It fails with image_update_invalid or agent_find_not-found.
func (im *images) SendImage(req ImageSending) (Operation, error) {
	if !session.ValidImage(req.Image) {
		return Operation{}, session.NewError(session.CodeImageInvalid,
			fmt.Sprintf("%q is not the name of an image.", req.Image), "slipway image ls shows them.")
	}
	req.From, req.To = cmp.Or(req.From, im.Local()), cmp.Or(req.To, im.Local())
	if req.From == req.To {
		return Operation{}, session.NewError(session.CodeImageInvalid,
			"The image would go from "+req.From+" to itself.", "Choose another agent.")
	}
	from, unknown := im.member(req.From)
	to, err := im.member(req.To)
	if err := cmp.Or(unknown, err); err != nil {
		return Operation{}, err
	}
	kind := ImageSend
	if to.Local {
		kind = ImageFetch
	}
	return im.operations.start(kind, req.Image, func(ctx context.Context, work *Work) error {
		work.Concerns(req.To)
		s := &sending{retries: retries{work: work, step: "send"}, image: req.Image, replace: req.Replace,
			from: from, to: to}
		return s.run(ctx)
	})
}

type sending struct {
	retries
	prefix   string // of the names of its steps, which the titles then explain
	image    string
	replace  bool
	from, to *member
	corrupt  int // how often damaged data arrived
}

func (s *sending) run(ctx context.Context) error {
	of := "the image"
	if s.prefix != "" {
		of = s.image
	}
	s.work.Plan(Step{Name: s.prefix + "describe", Title: "Look at " + of},
		Step{Name: s.step, Title: "Send what is missing of " + of},
		Step{Name: s.prefix + "install", Title: "Put " + of + " together"})
	parts, err := s.describe(ctx)
	if err != nil {
		return err
	}
	if err = s.carry(ctx, parts); err == nil {
		err = s.install(ctx, parts.ID)
	}
	if ctx.Err() != nil {
		// An agent that is not reached drops it a week later.
		ending, cancel := afterwards(ctx)
		defer cancel()
		err = errors.Join(err, s.to.Agent.ForgetImage(ending, parts.ID))
	}
	return err
}

// describe finds out what is missing, also over a cut.
func (s *sending) describe(ctx context.Context) (parts session.ImageParts, err error) {
	step := s.prefix + "describe"
	err = s.work.Do(step, "", func() (detail string, err error) {
		err = s.reaching(ctx, step, func() error {
			if parts, err = s.from.Agent.DescribeImage(ctx, s.image); err != nil {
				return err
			}
			if parts.Refs, err = asked(s.image, parts); err != nil {
				return err
			}
			parts.Replace = s.replace
			arrival, err := s.to.Agent.ExpectImage(ctx, parts)
			detail = fmt.Sprintf("%d of %d layers are there already", arrival.Present, len(parts.Layers))
			return err
		})
		return detail, err
	})
	return parts, err
}

// reaching repeats a step while an agent is not reached.
func (s *sending) reaching(ctx context.Context, step string, do func() error) error {
	r := &retries{work: s.work, step: step}
	for {
		err := do()
		if !away(err) || session.CodeOf(err) == session.CodeEngineUnavailable {
			return err
		}
		message := session.AsError(err, session.CodeOperationFailed).Message
		if err := r.again(ctx, message+" It continues automatically."); err != nil {
			return err
		}
	}
}

// asked returns the name that an image keeps: the one that was requested, and none that its agent adds, since those
// could take names from images of the receiving machine. An image that was requested by its id must have it.
func asked(image string, parts session.ImageParts) ([]string, error) {
	if session.ValidImageID(image) {
		if !strings.HasPrefix(parts.ID, image) {
			return nil, session.NewError(session.CodeImageInvalid,
				"The agent describes another image than the one that was asked for.",
				"Do not trust that machine until you know why.")
		}
		return nil, nil
	}
	if digest := session.ImageDigest(image); digest != "" && digest != parts.ID {
		return nil, nil // the name may mean other content there
	}
	for _, ref := range parts.Refs {
		if session.ValidImage(ref) && session.ImageDigest(ref) == "" && session.SameImage(ref, image) {
			return []string{ref}, nil
		}
	}
	return nil, nil
}

func (s *sending) carry(ctx context.Context, parts session.ImageParts) error {
	s.work.Begin(s.step, "")
	var last gpu.Bytes
	err := layers.Carry(ctx, s.from.Agent, s.to.Agent, parts, layers.Report{
		Progress: func(done, total gpu.Bytes) {
			if done > last {
				s.reached()
			}
			last = done
			s.work.Progress(int64(done), int64(total))
		},
		Again: s.again,
	})
	if err != nil {
		return s.work.fail(s.step, err)
	}
	s.work.Tell(Step{Name: s.step, State: StepOK, Detail: last.String() + " sent"})
	return nil
}

// The pause before the next attempt grows from firstResend to longestResend.
const (
	firstResend   = 200 * time.Millisecond
	longestResend = 5 * time.Second
)

// retries repeats one step of an operation while an agent is not reached.
type retries struct {
	work    *Work
	step    string
	pause   time.Duration
	waiting bool // the user was told that an agent is not reached
}

// again waits before the next attempt. It shows detail if the wait is long.
func (r *retries) again(ctx context.Context, detail string) error {
	r.pause = min(max(2*r.pause, firstResend), longestResend)
	if r.pause > time.Second {
		r.waiting = true
		r.work.Tell(Step{Name: r.step, State: StepRunning, Detail: detail})
	}
	return pace.Wall().Pause(ctx, r.pause)
}

// reached withdraws the notice that an agent is not reached.
func (r *retries) reached() {
	r.pause = 0
	if r.waiting {
		r.waiting = false
		r.work.Begin(r.step, "")
	}
}

// again waits before a failed transfer is repeated, or returns why it is not.
func (s *sending) again(ctx context.Context, err error) error {
	code := session.CodeOf(err)
	switch {
	case code == session.CodeImageCorrupt:
		if s.corrupt++; s.corrupt > corruptMost {
			return err
		}
	case code == "", code == session.CodeImageReplaced, away(err):
	default:
		return err
	}
	message := session.AsError(err, session.CodeOperationFailed).Message
	return s.retries.again(ctx, message+" It continues automatically.")
}

// install installs the image in the target's engine. A cut may hide that it was done; repeating it is harmless.
func (s *sending) install(ctx context.Context, id string) error {
	step := s.prefix + "install"
	return s.work.Do(step, "", func() (name string, err error) {
		err = s.reaching(ctx, step, func() error {
			image, err := s.to.Agent.InstallImage(ctx, id)
			name = image.ID
			if len(image.Refs) > 0 { // a user who is not an admin gets a name of their own
				name = image.Refs[0]
			}
			return err
		})
		if err == nil {
			s.work.Makes(name)
		}
		return name, err
	})
}
