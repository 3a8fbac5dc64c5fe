package docker

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// places are those of images that are known to be no links.
type places struct {
	mu    sync.Mutex // guards known
	known map[place]bool
}

type place struct{ image, path string }

// mostPlaces is when places forgets what it knows.
const mostPlaces = 10_000

func (p *places) plain(image, at string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[place{image, at}]
}

func (p *places) know(image string, steps []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) > mostPlaces {
		p.known = map[place]bool{}
	}
	for _, at := range steps {
		p.known[place{image, at}] = true
	}
}

// checkPlaces refuses a link on the way to a mount. It could lead a directory of the person over the guest, and then a
// program of the person would be process 1, as root. What the guest checks itself comes too late. The container is not
// started, so it has the files of its image; those in other mounts and in its home, unless that is empty, are looked at
// each time.
func (e *Engine) checkPlaces(ctx context.Context, id, image string, empty bool, mounts []session.Mount) error {
	if len(mounts) == 0 {
		return nil
	}
	steps, targets := stepsTo(ownFolder+"/guest"), []string(nil)
	for _, m := range mounts {
		target := path.Clean(m.Target)
		steps, targets = append(steps, stepsTo(target)...), append(targets, target)
	}
	mounted := func(at string) bool {
		return slices.ContainsFunc(targets, func(target string) bool { return strings.HasPrefix(at, target+"/") })
	}
	inHome := func(at string) bool { return strings.HasPrefix(at, session.Home+"/") && !mounted(at) }
	ofImage := func(at string) bool { return !inHome(at) && !mounted(at) }
	steps = slices.DeleteFunc(steps, func(at string) bool {
		return inHome(at) && empty || ofImage(at) && e.places.plain(image, at)
	})
	_, err := daemon.Each(steps, errdefs.IsNotFound, func(at string) (bool, error) {
		stat, err := e.daemon.API.ContainerStatPath(ctx, id, at)
		switch {
		case errdefs.IsNotFound(err): // it is made for the mount
			return true, nil
		case err != nil:
			return false, daemon.ContainerFailure(ctx, id, err)
		case stat.Mode&fs.ModeSymlink == 0 && (stat.LinkTarget == "" || path.Clean(stat.LinkTarget) == at):
			return true, nil
		case !ofImage(at):
			return false, session.NewError(session.CodeEngineUnsupported,
				"What is mounted cannot be used: "+at+" is a link.",
				"Remove the link, or mount the directory in another place.")
		}
		return false, session.NewError(session.CodeEngineUnsupported, "This image cannot be used: "+at+" is a link.",
			"Choose another image, or mount the directory in another place.")
	})
	if err == nil {
		e.places.know(image, slices.DeleteFunc(steps, func(at string) bool { return !ofImage(at) }))
	}
	return err
}

// stepsTo returns /a, /a/b and so on for a clean absolute path.
func stepsTo(at string) (steps []string) {
	for i := range at {
		if i > 0 && at[i] == '/' {
			steps = append(steps, at[:i])
		}
	}
	return append(steps, at)
}
