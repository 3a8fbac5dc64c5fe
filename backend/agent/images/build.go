package images

import (
	"context"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// Building is a build for a person.
type Building struct {
	engine.Build
	Owner string
	Bases []string // images that it extends; those that are not on the machine are pulled first
	// Begin prepares the build if it runs, rather than joins another one. end is called after it. It may be nil.
	Begin func(b *engine.Build) (end func(), err error)
}

// BuildImage starts a build, or joins one of the same image. An image that is there is not built again.
func (m *Images) BuildImage(ctx context.Context, b Building) (session.ImageWork, error) {
	if slices.Contains(m.config.Health.State().Info.Lacks, session.FeatureBuild) {
		return session.ImageWork{}, engine.CannotBuild()
	}
	present, err := m.Present(ctx, b.Ref)
	if err != nil {
		return session.ImageWork{}, err
	}
	one, working, joined := m.jobs.join(session.ImageWork{Kind: session.WorkBuild, Ref: b.Ref, Owner: b.Owner})
	switch {
	case one == nil:
		return joined, nil
	case present:
		m.jobs.end(one, nil)
	default:
		end, err := func() {}, error(nil)
		if b.Begin != nil {
			end, err = b.Begin(&b.Build)
		}
		if err != nil {
			m.jobs.end(one, err)
			break
		}
		m.tasks.Go(func() {
			defer end()
			m.jobs.end(one, m.config.Health.Heed(m.build(working, one, b)))
		})
	}
	return m.jobs.await(working, one.ID, 0)
}

// Present reports whether an image is on the machine.
func (m *Images) Present(ctx context.Context, ref string) (bool, error) {
	_, err := m.image(ctx, ref)
	if session.CodeOf(err) == session.CodeNoImage {
		return false, nil
	}
	return err == nil, m.config.Health.Heed(err)
}

// build pulls what is extended, and builds.
func (m *Images) build(ctx context.Context, one *job, b Building) error {
	for _, base := range b.Bases {
		present, err := m.Present(ctx, base)
		if err == nil && !present {
			err = m.Fetch(ctx, session.PullRequest{Ref: base, Owner: b.Owner, Login: session.LoginFor(base, b.Logins)},
				func(p session.Pull) { m.jobs.change(one, func(one *job) { one.Pull = p }) })
		}
		if err != nil {
			return err
		}
	}
	_, err := m.config.Engine.Build(ctx, b.Build, func(now session.Build) {
		m.jobs.change(one, func(one *job) { one.Build = &now })
	})
	return err
}
