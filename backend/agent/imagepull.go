package agent

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

// PullImage implements [session.Images]. One who asks for what is being fetched
// for the same owner joins that.
func (a *Agent) PullImage(_ context.Context, req session.PullRequest) (session.ImageWork, error) {
	if err := noRegistry(req.Ref); err != nil {
		return session.ImageWork{}, err
	}
	if !session.ValidImage(req.Ref) || strings.HasPrefix(req.Ref, "sha256:") {
		return session.ImageWork{}, &session.Error{Code: "image_pull_invalid",
			Message: fmt.Sprintf("%q is not the name of an image.", req.Ref),
			Hint:    "Write it as for docker pull, for example python:3.13."}
	}
	var joined session.ImageWork
	one, ctx, err := a.works.begin(session.ImageWork{Kind: session.WorkPull, Ref: req.Ref, Owner: req.Owner},
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
	a.tasks.Go(func() {
		err := a.pull(ctx, req.Ref, a.mayLogin(req.Owner, req.ByAdmin), func(p session.Pull) {
			a.works.change(one, func(one *imageWork) { one.Pull = p })
		})
		a.works.end(one, a.heed(err))
	})
	return a.works.await(ctx, one.ID, 0)
}

// noRegistry fails for the name of a customized image: it is given on this
// machine, and whoever has it at a registry is a stranger.
func noRegistry(ref string) error {
	if !session.CustomizedRef(ref) {
		return nil
	}
	return &session.Error{
		Code: "engine_pull_not-found",
		Message: fmt.Sprintf("The customized image %s is no longer on this machine, and no registry is asked for it.",
			ref),
		Hint: "Choose another image, or make it again from a session.",
	}
}

// mayLogin reports whether the agent's registry logins are for a person.
func (a *Agent) mayLogin(owner string, byAdmin bool) bool {
	return byAdmin || owner == a.config.Owner || a.Allowance(owner).Logins
}

// mayUse fails for an image that is not shown to whose session it is. The gate
// looks when it is launched; the image may have come since.
func (a *Agent) mayUse(s session.Session, image session.Image) error {
	if s.ByAdmin || s.Owner == a.config.Owner || a.images.tell(image).ShownTo(s.Owner, a.Allowance(s.Owner).Logins) {
		return nil
	}
	return &session.Error{Code: "session_start_forbidden", Message: "There is no image " + s.Spec.Image +
		" that you may use.", Hint: "Choose an environment that is listed."}
}

// pull fetches an image, and writes down where only a login lets one have it.
// One that makes no progress for a while is given up.
func (a *Agent) pull(ctx context.Context, ref string, logins bool, progress func(session.Pull)) error {
	if err := noRegistry(ref); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(a.limits.PullStall, func() {
		cancel(&session.Error{Code: "engine_pull_timeout",
			Message: fmt.Sprintf("The pull of %s made no progress for %s.", ref, a.limits.PullStall),
			Hint:    "Check the connection to the registry."})
	})
	defer stalled.Stop()
	shown, last := time.Time{}, session.Pull{}
	private, err := a.engine.Pull(ctx, ref, logins, func(p session.Pull) {
		if p.Current != last.Current || p.LayersDone != last.LayersDone {
			stalled.Reset(a.limits.PullStall)
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
	image, err := a.engine.Image(ctx, ref)
	if err != nil {
		return err
	}
	return a.images.change(a, image.ID, func(i *store.Image) { i.Login = private })
}
