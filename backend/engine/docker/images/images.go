// Package images lists, pulls, makes, removes and transfers the images of a Docker daemon.
package images

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

// Store is the images of one daemon. It is safe for concurrent use.
type Store struct {
	daemon   *daemon.Daemon
	instance string
	logins   string // folder of the docker command's configuration

	mu   sync.Mutex               // guards byID
	byID map[string]session.Image // an id names one content for ever
}

// New returns the images of a daemon. Images made by an instance have its label; the empty image is not listed.
func New(d *daemon.Daemon, instance string) *Store {
	return &Store{daemon: d, instance: instance, logins: daemon.ConfigDir(),
		byID: map[string]session.Image{}}
}

func (s *Store) Images(ctx context.Context) ([]session.Image, error) {
	ctx, cancel := s.daemon.Brief(ctx)
	defer cancel()
	found, err := s.daemon.API.ImageList(ctx, image.ListOptions{})
	if err != nil {
		return nil, daemon.Failure(ctx, err)
	}
	found = slices.DeleteFunc(found, func(i image.Summary) bool { return len(s.names(i.RepoTags, i.RepoDigests)) == 0 })
	gone := func(err error) bool { return session.CodeOf(err) == session.CodeNoImage }
	return daemon.Each(found, gone, func(i image.Summary) (session.Image, error) {
		return s.listed(ctx, i)
	})
}

// listed completes an entry of a list, which lacks the architecture: each image is inspected once.
func (s *Store) listed(ctx context.Context, summary image.Summary) (session.Image, error) {
	s.mu.Lock()
	cached, ok := s.byID[summary.ID]
	s.mu.Unlock()
	if !ok {
		var err error
		if cached, err = s.Image(ctx, summary.ID); err != nil {
			return session.Image{}, err
		}
	}
	cached.Refs, cached.Digests = s.names(summary.RepoTags, summary.RepoDigests), s.names(nil, summary.RepoDigests)
	cached.Labels = maps.Clone(cached.Labels)
	return cached, nil
}

// Image returns one image; engine_call_invalid if ref cannot be the name of one.
func (s *Store) Image(ctx context.Context, ref string) (session.Image, error) {
	ctx, cancel := s.daemon.Brief(ctx)
	defer cancel()
	if _, err := reference.ParseAnyReference(ref); err != nil {
		return session.Image{}, notName(session.CodeEngineInvalid, ref, err)
	}
	said, err := s.daemon.API.ImageInspect(ctx, ref)
	if id := session.ImageDigest(ref); errdefs.IsNotFound(err) && id != "" {
		// An image that is in no registry is pinned by its id, which Docker accepts only alone.
		said, err = s.daemon.API.ImageInspect(ctx, id)
	}
	if errdefs.IsNotFound(err) {
		return session.Image{}, NotHere(session.CodeNoImage, ref, err)
	}
	if err != nil {
		return session.Image{}, daemon.Failure(ctx, err)
	}
	found := s.imageOf(said)
	s.mu.Lock()
	s.byID[found.ID] = found
	s.mu.Unlock()
	found.Labels = maps.Clone(found.Labels)
	return found, nil
}

func notName(code session.Code, ref string, err error) error {
	return session.WrapError(err, code, "\""+ref+"\" is not the name of an image.",
		"Write it as for docker pull, for example python:3.12.")
}

// NotHere is the error of an image that is not on this machine.
func NotHere(code session.Code, ref string, err error) error {
	return session.WrapError(err, code, "The image "+ref+" is not on this machine.", "Pull it first.")
}

func (s *Store) imageOf(said image.InspectResponse) session.Image {
	found := session.Image{
		ID: said.ID, Refs: s.names(said.RepoTags, said.RepoDigests), Digests: s.names(nil, said.RepoDigests),
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

// names lists an image's tags, or its digests if it has no tag, without the empty image and unfinished imports. They
// are written as Docker writes them: Podman says docker.io/library/python:3.12.
func (s *Store) names(tags, digests []string) []string {
	named := func(all []string) []string {
		all = slices.Clone(all)
		for i, name := range all {
			if parsed, err := reference.ParseNormalizedNamed(name); err == nil {
				all[i] = reference.FamiliarString(parsed)
			}
		}
		return slices.DeleteFunc(all, func(name string) bool {
			return session.IsEmptyImage(name) || strings.Contains(name, "<none>") ||
				strings.HasPrefix(name, receiving+":") || strings.HasPrefix(name, receiving+"@")
		})
	}
	if tags = named(tags); len(tags) > 0 {
		return tags
	}
	return named(digests)
}
