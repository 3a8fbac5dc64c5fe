package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway/backend/layers"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

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
	image    string
	replace  bool
	from, to *member
	corrupt  int // how often damaged data arrived
}

func (s *sending) run(ctx context.Context) error {
	s.work.Plan(Step{Name: "describe", Title: "Look at the image"}, Step{Name: "send", Title: "Send what is missing"},
		Step{Name: "install", Title: "Put it together"})
	var parts session.ImageParts
	err := s.work.Do("describe", "", func() (_ string, err error) {
		if parts, err = s.from.Agent.DescribeImage(ctx, s.image); err != nil {
			return "", err
		}
		if parts.Refs, err = asked(s.image, parts); err != nil {
			return "", err
		}
		parts.Replace = s.replace
		arrival, err := s.to.Agent.ExpectImage(ctx, parts)
		return fmt.Sprintf("%d of %d layers are there already", arrival.Present, len(parts.Layers)), err
	})
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
	s.work.Begin("send", "")
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
		return s.work.fail("send", err)
	}
	s.work.Tell(Step{Name: "send", State: StepOK, Detail: last.String() + " sent"})
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
	return s.retries.again(ctx, session.AsError(err, session.CodeOperationFailed).Message+" It continues by itself.")
}

// install installs the image in the target's engine. A cut may hide that it was done; repeating it is harmless.
func (s *sending) install(ctx context.Context, id string) error {
	return s.work.Do("install", "", func() (string, error) {
		for {
			image, err := s.to.Agent.InstallImage(ctx, id)
			if err == nil {
				name := image.ID
				if len(image.Refs) > 0 { // a user who is not an admin gets a name of their own
					name = image.Refs[0]
				}
				s.work.Makes(name)
				return name, nil
			}
			if !away(err) || session.CodeOf(err) == session.CodeEngineUnavailable {
				return "", err
			}
			if err := s.again(ctx, err); err != nil {
				return "", err
			}
		}
	})
}
