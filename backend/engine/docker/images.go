package docker

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

// Images implements [engine.Images]. Images without a name are left out.
func (e *Engine) Images(ctx context.Context) ([]session.Image, error) {
	ctx, cancel := e.daemon.Brief(ctx)
	defer cancel()
	found, err := e.daemon.API.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, daemon.Failure(ctx, "image", err)
	}
	found = slices.DeleteFunc(found, func(s image.Summary) bool { return len(names(s.RepoTags, s.RepoDigests)) == 0 })
	images, errs := make([]session.Image, len(found)), make([]error, len(found))
	daemon.Each(len(found), func(i int) { images[i], errs[i] = e.listed(ctx, found[i]) })
	for _, err := range errs {
		if err != nil && session.CodeOf(err) != "engine_image_not-found" {
			return nil, err
		}
	}
	return slices.DeleteFunc(images, func(i session.Image) bool { return i.ID == "" }), nil
}

// listed completes what a list says of an image. The list does not tell the
// architecture, so each image is inspected once.
func (e *Engine) listed(ctx context.Context, summary image.Summary) (session.Image, error) {
	e.mu.Lock()
	known, ok := e.images[summary.ID]
	e.mu.Unlock()
	if !ok {
		var err error
		if known, err = e.Image(ctx, summary.ID); err != nil {
			return session.Image{}, err
		}
	}
	known.Refs, known.Digests = names(summary.RepoTags, summary.RepoDigests), names(nil, summary.RepoDigests)
	known.Labels = maps.Clone(known.Labels)
	return known, nil
}

// Image implements [engine.Images]. A text that cannot be the name of an image
// is engine_image_invalid.
func (e *Engine) Image(ctx context.Context, ref string) (session.Image, error) {
	ctx, cancel := e.daemon.Brief(ctx)
	defer cancel()
	if _, err := reference.ParseAnyReference(ref); err != nil {
		return session.Image{}, &session.Error{
			Code: "engine_image_invalid", Message: "\"" + ref + "\" is not the name of an image.",
			Hint: "Write it as for docker pull, for example python:3.12.", Err: err,
		}
	}
	said, err := e.daemon.API.ImageInspect(ctx, ref)
	if id := session.ImageDigest(ref); errdefs.IsNotFound(err) && id != "" {
		// An image that no registry has is pinned by its id, which Docker takes only by itself.
		said, err = e.daemon.API.ImageInspect(ctx, id)
	}
	if errdefs.IsNotFound(err) {
		return session.Image{}, &session.Error{Code: "engine_image_not-found",
			Message: "The image " + ref + " is not on this machine.", Hint: "Pull it first.", Err: err}
	}
	if err != nil {
		return session.Image{}, daemon.Failure(ctx, "image", err)
	}
	found := imageOf(said)
	e.mu.Lock()
	e.images[found.ID] = found
	e.mu.Unlock()
	found.Labels = maps.Clone(found.Labels)
	return found, nil
}

func imageOf(said image.InspectResponse) session.Image {
	found := session.Image{
		ID: said.ID, Refs: names(said.RepoTags, said.RepoDigests), Digests: names(nil, said.RepoDigests),
		Size: gpu.Bytes(said.Size), Arch: daemon.GoArch(said.Architecture),
	}
	if at, err := time.Parse(time.RFC3339Nano, said.Created); err == nil && at.Year() >= 1970 {
		found.CreatedAt = at
	}
	if said.Config != nil {
		found.Labels, found.Origin = said.Config.Labels, session.OriginOf(said.Config.Labels)
	}
	return found
}

// names lists an image's tags, or its digests where it has no tag. The image of
// trials has none, and that of an import in the middle: they are not to be launched.
func names(tags, digests []string) []string {
	named := func(all []string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
			return name == trialImage || strings.HasPrefix(name, trialRepository+"@") ||
				strings.Contains(name, "<none>") ||
				strings.HasPrefix(name, receiving+":") || strings.HasPrefix(name, receiving+"@")
		})
	}
	if tags = named(tags); len(tags) > 0 {
		return tags
	}
	return named(digests)
}
