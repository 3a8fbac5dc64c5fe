package hub

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"slipway/backend/lend"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// lendPause is the pause before an agent that is not reached is asked again for connections of a build.
const lendPause = time.Second

// through makes a build use this computer's connection to the internet. begin begins it, and end takes the connection
// back. An agent that is too old for it fails before anything is built.
func (p *projects) through(m *member, folder session.FolderID,
	build session.ProjectBuild) (begin func(context.Context) (session.ImageWork, error), end func()) {
	var lending sync.WaitGroup
	life, stop := context.WithCancel(context.Background())
	build.Proxy = session.ProxyToken(rand.Text())
	take := func(ctx context.Context) (net.Conn, error) {
		for {
			conn, err := m.Agent.LendConnection(ctx, folder, build.Proxy)
			if !away(err) || pace.Wall().Pause(ctx, lendPause) != nil {
				return conn, err
			}
		}
	}
	begin = func(ctx context.Context) (session.ImageWork, error) {
		conn, err := m.Agent.LendConnection(ctx, folder, build.Proxy)
		if err == nil {
			_ = conn.Close() // there is no build yet
		} else if session.CodeOf(err) != session.CodeOperationNotFound {
			return session.ImageWork{}, err
		}
		work, err := m.Agent.BuildProject(ctx, folder, build)
		if err == nil && work.State == session.WorkRunning {
			lending.Go(func() { _ = lend.Serve(life, lend.Config{Token: string(build.Proxy), Dial: p.dial}, take) })
		}
		return work, err
	}
	return begin, func() {
		stop()
		lending.Wait()
	}
}

// bring sends the images that a build extends from this computer to a machine, as far as it lacks them: its engine has
// no connection to the internet.
func (p *projects) bring(ctx context.Context, work *Work, bases []string, to *member) error {
	near, err := p.memberOrLocal("")
	if err != nil {
		return err
	}
	for i, base := range bases {
		there, err := has(ctx, to, base)
		if err != nil {
			return err
		}
		if there {
			continue
		}
		step := fmt.Sprintf("base-%d-", i)
		if err := p.pullHere(ctx, work, step+"pull", base, near); err != nil {
			e := session.AsError(err, session.CodeOperationFailed)
			return session.WrapError(err, e.Code, fmt.Sprintf("%s lacks the base image %s, which this computer cannot "+
				"send: %s", to.Name(), base, e.Message), e.Hint)
		}
		s := &sending{retries: retries{work: work, step: step + "send"}, prefix: step, image: base, from: near, to: to}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pullHere pulls a base image to this computer, unless it is there.
func (p *projects) pullHere(ctx context.Context, work *Work, step, base string, near *member) error {
	here, err := has(ctx, near, base)
	if err != nil || here {
		return err
	}
	login, err := p.images.secrets.loginFor(base)
	if err != nil {
		return err
	}
	work.Begin(step, "Pull "+base+" to this computer")
	f := &following{retries{work: work, step: step}, near}
	return f.run(ctx, func(ctx context.Context) (session.ImageWork, error) {
		return near.Agent.PullImage(ctx, session.PullRequest{Ref: base, Owner: p.images.owner, Login: login})
	})
}

// has reports whether a machine has an image of that name.
func has(ctx context.Context, m *member, ref string) (bool, error) {
	list, err := m.Agent.ListImages(ctx)
	return slices.ContainsFunc(list, func(image session.Image) bool {
		return slices.ContainsFunc(slices.Concat(image.Refs, image.Digests), func(name string) bool {
			return session.SameImage(name, ref)
		})
	}), err
}
