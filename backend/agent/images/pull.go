package images

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/backend/store"
)

// PullImage implements [session.Images]. If the image is being pulled for the same owner, the caller joins that.
func (m *Images) PullImage(_ context.Context, req session.PullRequest) (session.ImageWork, error) {
	if err := NoRegistry(req.Ref); err != nil {
		return session.ImageWork{}, err
	}
	if !session.ValidImage(req.Ref) || strings.HasPrefix(req.Ref, "sha256:") {
		return session.ImageWork{}, session.NewError(session.CodeImageInvalid,
			fmt.Sprintf("%q is not the name of an image.", req.Ref),
			"Write it as for docker pull, for example python:3.13.")
	}
	one, ctx, joined := m.jobs.join(session.ImageWork{Kind: session.WorkPull, Ref: req.Ref, Owner: req.Owner})
	if one == nil {
		return joined, nil
	}
	m.tasks.Go(func() {
		err := m.Fetch(ctx, req, func(p session.Pull) {
			m.jobs.change(one, func(one *job) { one.Pull = p })
		})
		m.jobs.end(one, m.config.Health.Heed(err))
	})
	return m.jobs.await(ctx, one.ID, 0)
}

// NoRegistry fails for a customized image: in a registry, somebody else's image may have its name.
func NoRegistry(ref string) error {
	if !session.CustomizedRef(ref) {
		return nil
	}
	return session.NewError(session.CodePullNotFound,
		fmt.Sprintf("The customized image %s is no longer on this machine, and no registry is asked for it.", ref),
		"Choose another image, or make it again from a session.")
}

// mayLogin reports whether a person may use the agent's registry logins.
func (m *Images) mayLogin(owner string, byAdmin bool) bool {
	return byAdmin || owner == m.config.Owner || m.config.People.Allowance(owner).Logins
}

// MayUse fails for an image that the owner may not use. The gate checks that too, but the image may have come later.
func (m *Images) MayUse(s session.Session, image session.Image) error {
	if s.ByAdmin || s.Owner == m.config.Owner || s.Spec.Type == session.System ||
		m.book.tell(image).ShownTo(s.Owner, m.config.People.Allowance(s.Owner).Logins) {
		return nil
	}
	return session.NewError(session.CodeImageForbidden, "There is no image "+s.Spec.Image+" that you may use.",
		"Choose an environment that is listed.")
}

// Fetch pulls an image, and records whether that needs a login. A pull without progress is cancelled.
func (m *Images) Fetch(ctx context.Context, req session.PullRequest, progress func(session.Pull)) error {
	ref, mayLogin := req.Ref, m.mayLogin(req.Owner, req.ByAdmin)
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
	login := engine.Login{Own: req.Login, Stored: mayLogin}
	private, err := m.config.Engine.Pull(ctx, ref, login, func(p session.Pull) {
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
	if cause := context.Cause(ctx); err != nil && session.CodeOf(cause) != "" {
		return cause
	}
	if err != nil {
		return err
	}
	image, err := m.config.Engine.Image(ctx, ref)
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(image.Refs, func(name string) bool { return !session.SameImage(name, ref) })
	return m.book.change(image.ID, func(i *store.Image) {
		switch {
		case !private: // it is open to everybody
			i.Login, i.Owners = false, nil
		case mayLogin:
			i.Login = true
		case len(i.Owners) > 0 || !others:
			// pulled by a user with their own login, which does not open it to others
			i.Owners = slices.Compact(slices.Sorted(slices.Values(append(i.Owners, req.Owner))))
		}
	})
}

// Preview adds the image that a launch would use, none if it would be pulled, which is impossible by an id.
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

// notPulled says why an image that is not on the machine cannot be pulled, nil if it can.
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

// Check reports an image that is not here and cannot be pulled. If the engine does not answer, that is found later.
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
