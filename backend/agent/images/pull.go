package images

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
)

// errJoined says that an image is being fetched already.
var errJoined = errors.New("the image is being fetched")

// PullImage implements [session.Images]. One who asks for what is being fetched for the same owner joins that.
func (m *Images) PullImage(_ context.Context, req session.PullRequest) (session.ImageWork, error) {
	if err := NoRegistry(req.Ref); err != nil {
		return session.ImageWork{}, err
	}
	if !session.ValidImage(req.Ref) || strings.HasPrefix(req.Ref, "sha256:") {
		return session.ImageWork{}, session.NewError(session.CodeImageInvalid,
			fmt.Sprintf("%q is not the name of an image.", req.Ref),
			"Write it as for docker pull, for example python:3.13.")
	}
	var joined session.ImageWork
	one, ctx, err := m.jobs.begin(session.ImageWork{Kind: session.WorkPull, Ref: req.Ref, Owner: req.Owner},
		func(other session.ImageWork) error {
			if other.Kind == session.WorkPull && other.Ref == req.Ref && other.Owner == req.Owner {
				joined = other
				return errJoined
			}
			return nil
		})
	if err != nil {
		return joined, nil //nolint:nilerr // it goes on already
	}
	m.tasks.Go(func() {
		err := m.Fetch(ctx, req.Ref, m.MayLogin(req.Owner, req.ByAdmin), func(p session.Pull) {
			m.jobs.change(one, func(one *job) { one.Pull = p })
		})
		m.jobs.end(one, m.config.Health.Heed(err))
	})
	return m.jobs.await(ctx, one.ID, 0)
}

// NoRegistry fails for the name of a customized image: it is given on this machine, and whoever has it at a registry is
// a stranger.
func NoRegistry(ref string) error {
	if !session.CustomizedRef(ref) {
		return nil
	}
	return session.NewError(session.CodePullNotFound,
		fmt.Sprintf("The customized image %s is no longer on this machine, and no registry is asked for it.", ref),
		"Choose another image, or make it again from a session.")
}

// MayLogin reports whether the agent's registry logins are for a person.
func (m *Images) MayLogin(owner string, byAdmin bool) bool {
	return byAdmin || owner == m.config.Owner || m.config.People.Allowance(owner).Logins
}

// MayUse fails for an image that is not shown to whose session it is. The gate looks when it is launched; the image may
// have come since.
func (m *Images) MayUse(s session.Session, image session.Image) error {
	if s.ByAdmin || s.Owner == m.config.Owner ||
		m.book.tell(image).ShownTo(s.Owner, m.config.People.Allowance(s.Owner).Logins) {
		return nil
	}
	return session.NewError(session.CodeImageForbidden, "There is no image "+s.Spec.Image+" that you may use.",
		"Choose an environment that is listed.")
}

// Fetch fetches an image, and writes down where only a login lets one have it. One that makes no progress for a while
// is given up.
func (m *Images) Fetch(ctx context.Context, ref string, logins bool, progress func(session.Pull)) error {
	if err := NoRegistry(ref); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(m.config.Limits.PullStall, func() {
		cancel(session.NewError(session.CodeEngineTimeout,
			fmt.Sprintf("The pull of %s made no progress for %s.", ref, m.config.Limits.PullStall),
			"Check the connection to the registry."))
	})
	defer stalled.Stop()
	shown, last := time.Time{}, session.Pull{}
	private, err := m.config.Engine.Pull(ctx, ref, logins, func(p session.Pull) {
		if p.Current != last.Current || p.LayersDone != last.LayersDone {
			stalled.Reset(m.config.Limits.PullStall)
		}
		last = p
		if time.Since(shown) < 200*time.Millisecond && p.Current < p.Total {
			return
		}
		shown = time.Now()
		progress(p)
	})
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); session.CodeOf(cause) != "" {
			return cause
		}
	}
	if err != nil {
		return err
	}
	image, err := m.config.Engine.Image(ctx, ref)
	if err != nil {
		return err
	}
	return m.book.change(image.ID, func(i *store.Image) { i.Login = private })
}

// Preview says which image a launch would use, none where it would be pulled. What is named by the id of an image alone
// cannot be.
func (m *Images) Preview(ctx context.Context, p *session.Preview) error {
	ref := p.Spec.Image
	if !session.ValidImage(ref) {
		return nil
	}
	image, err := m.image(ctx, ref)
	if err == nil {
		p.Image = &image
	}
	if session.CodeOf(err) == session.CodeNoImage {
		if wrong := notPulled(ref); wrong != nil {
			p.Errors = append(p.Errors, *wrong)
		}
		return nil
	}
	return m.config.Health.Heed(err)
}

// notPulled says why an image that is not on the machine cannot be pulled.
func notPulled(ref string) *session.FieldError {
	if err := NoRegistry(ref); err != nil {
		e := session.AsError(err, "")
		return &session.FieldError{Field: "image", Kind: session.KindNotFound, Message: e.Message, Hint: e.Hint}
	}
	if !session.ValidImageID(ref) {
		return nil
	}
	return &session.FieldError{
		Field: "image", Kind: session.KindNotFound,
		Message: fmt.Sprintf("The image %s is not on this machine, and an id cannot be pulled.", ref),
		Hint:    "Choose an image by its name.",
	}
}

// Check says what is wrong with an image that can be nowhere but here and is not. Where the engine does not answer that
// is seen later.
func (m *Images) Check(ctx context.Context, ref string) []session.FieldError {
	wrong := notPulled(ref)
	if wrong == nil {
		return nil
	}
	if _, err := m.image(ctx, ref); session.CodeOf(err) != session.CodeNoImage {
		return nil
	}
	return []session.FieldError{*wrong}
}
