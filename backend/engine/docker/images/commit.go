package images

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/strslice"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

// sizeTime is how long the daemon may take to walk through files and measure them.
const sizeTime = 5 * time.Minute

func (s *Store) Changed(ctx context.Context, id string) (gpu.Bytes, error) {
	ctx, cancel := daemon.Within(ctx, sizeTime)
	defer cancel()
	said, _, err := s.daemon.API.ContainerInspectWithRaw(ctx, id, true)
	if err != nil {
		return 0, daemon.ContainerFailure(ctx, id, err)
	}
	if said.SizeRw == nil {
		return 0, nil
	}
	return gpu.Bytes(*said.SizeRw), nil
}

// Commit makes an image of a container's changes. Docker cannot cancel it: an image made after ctx ended is removed.
func (s *Store) Commit(ctx context.Context, id string, c engine.Commit) (session.Image, error) {
	if err := s.mayCommit(ctx); err != nil {
		return session.Image{}, err
	}
	if err := s.mayName(ctx, c.Ref); err != nil {
		return session.Image{}, err
	}
	config, err := s.commitConfig(ctx, id, c.Origin)
	if err != nil {
		return session.Image{}, err
	}
	type outcome struct {
		id  string
		err error
	}
	made := make(chan outcome, 1)
	working := context.WithoutCancel(ctx)
	go func() {
		said, err := s.daemon.API.ContainerCommit(working, id, container.CommitOptions{Config: config, Pause: true})
		made <- outcome{said.ID, err}
	}()
	select {
	case o := <-made:
		if o.err != nil {
			return session.Image{}, daemon.ContainerFailure(ctx, id, o.err)
		}
		return s.name(ctx, o.id, c.Ref)
	case <-ctx.Done():
		go func() {
			if o := <-made; o.err == nil {
				s.drop(working, o.id)
			}
		}()
		return session.Image{}, daemon.Ended(ctx, context.Cause(ctx))
	}
}

// mayCommit fails where the engine does not make images of containers as they must be.
func (s *Store) mayCommit(ctx context.Context) error {
	facts, err := s.daemon.Facts(ctx)
	if err == nil && facts.Podman {
		return session.NewError(session.CodeEngineUnsupported, "Podman gives an image of a session the entry point "+
			"and labels of the session's container, so no image is made.", "Use a machine with Docker.")
	}
	return err
}

// mayName fails if an image has that name already.
func (s *Store) mayName(ctx context.Context, ref string) error {
	switch _, err := s.Image(ctx, ref); {
	case err == nil:
		return session.NewError(session.CodeImageExists, "There is an image named "+ref+" already.",
			"Choose another name, or remove it.")
	case session.CodeOf(err) != session.CodeNoImage:
		return err
	}
	return nil
}

// commitConfig is what the image starts: what the container's own image starts, not the guest. Docker adds the
// container's labels, so those that would make a container of the image one of ours are emptied.
func (s *Store) commitConfig(ctx context.Context, id string, origin session.ImageOrigin) (*container.Config, error) {
	ctx, cancel := s.daemon.Brief(ctx)
	defer cancel()
	said, err := s.daemon.API.ContainerInspect(ctx, id)
	if err != nil {
		return nil, daemon.ContainerFailure(ctx, id, err)
	}
	base, err := s.daemon.API.ImageInspect(ctx, said.Image)
	if err != nil {
		return nil, daemon.Failure(ctx, err)
	}
	config := &container.Config{Entrypoint: strslice.StrSlice{}, Cmd: strslice.StrSlice{}, WorkingDir: "/",
		Labels: map[string]string{}}
	if from := base.Config; from != nil {
		config.Entrypoint = append(config.Entrypoint, from.Entrypoint...)
		config.Cmd = append(config.Cmd, from.Cmd...)
		config.User, config.WorkingDir = from.User, cmp.Or(from.WorkingDir, "/")
	}
	if said.Config != nil {
		for name := range daemon.OwnLabels(said.Config.Labels) {
			if base.Config == nil || base.Config.Labels[name] != said.Config.Labels[name] {
				config.Labels[name] = ""
			}
		}
	}
	for name, value := range origin.Labels() {
		config.Labels[name] = value
	}
	return config, nil
}

// name gives a new image its name, and removes it if that fails.
func (s *Store) name(ctx context.Context, id, ref string) (session.Image, error) {
	err := s.mayName(ctx, ref)
	if err == nil {
		err = daemon.Failure(ctx, s.daemon.API.ImageTag(ctx, id, ref))
	}
	if err != nil {
		s.drop(context.WithoutCancel(ctx), id)
		return session.Image{}, err
	}
	return s.Image(ctx, ref)
}

func (s *Store) drop(ctx context.Context, id string) {
	if _, err := s.daemon.API.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true}); err != nil &&
		!errdefs.IsNotFound(err) {
		s.daemon.Log.Warn("an unused image could not be removed", "image", id, "error", err)
	}
}

// DropUnnamed removes images that an earlier process of this agent committed and never named.
func (s *Store) DropUnnamed(ctx context.Context) {
	found, err := s.daemon.API.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", session.LabelImageInstance+"="+s.instance), filters.Arg("dangling", "true"))})
	if err != nil {
		s.daemon.Log.Warn("unfinished images are not looked for", "error", err)
		return
	}
	for _, i := range found {
		s.drop(ctx, i.ID)
	}
}

// RemoveImage removes an image under all its names. Layers that other images need stay.
func (s *Store) RemoveImage(ctx context.Context, ref string) error {
	found, err := s.Image(ctx, ref)
	if err != nil {
		return err
	}
	all, err := s.daemon.API.ContainerList(ctx, container.ListOptions{All: true})
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	for _, c := range all {
		if c.ImageID == found.ID {
			return inUse(ref, daemon.ShortID(c.ID))
		}
	}
	said, err := s.daemon.API.ImageInspect(ctx, found.ID)
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	for _, name := range append(slices.Concat(said.RepoTags, said.RepoDigests), found.ID) {
		_, err := s.daemon.API.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true})
		switch {
		case err == nil, errdefs.IsNotFound(err), daemon.ReasonOf(daemon.Text(err), err) == daemon.ReasonRemoved:
		case errdefs.IsConflict(err) && name == found.ID: // others are made of it
		case errdefs.IsConflict(err):
			return inUse(ref, "")
		default:
			return daemon.Failure(ctx, err)
		}
	}
	s.mu.Lock()
	delete(s.byID, found.ID)
	s.mu.Unlock()
	return nil
}

func inUse(ref, by string) error {
	return session.NewError(session.CodeImageConflict,
		strings.TrimSpace("The image "+ref+" is used by the container "+by)+".",
		"Remove that container first; docker ps -a lists all of them.")
}

func (s *Store) DiskUse(ctx context.Context) (session.ImageDisk, error) {
	ctx, cancel := daemon.Within(ctx, sizeTime)
	defer cancel()
	said, err := s.daemon.API.DiskUsage(ctx, types.DiskUsageOptions{Types: []types.DiskUsageObject{types.ImageObject}})
	if err != nil {
		return session.ImageDisk{}, daemon.Failure(ctx, err)
	}
	facts, err := s.daemon.Facts(ctx)
	if err != nil {
		return session.ImageDisk{}, err
	}
	disk := session.ImageDisk{Total: gpu.Bytes(said.LayersSize)}
	for _, i := range said.Images {
		if slices.ContainsFunc(i.RepoTags, session.IsEmptyImage) {
			continue
		}
		room := session.ImageRoom{Image: session.Image{
			ID: i.ID, Refs: s.names(i.RepoTags, i.RepoDigests), Size: gpu.Bytes(i.Size),
			CreatedAt: time.Unix(i.Created, 0).UTC(), Labels: i.Labels, Origin: session.OriginOf(i.Labels),
		}, Containers: int(max(i.Containers, 0))}
		if i.SharedSize >= 0 {
			room.Alone = gpu.Bytes(max(i.Size-i.SharedSize, 0))
		}
		if facts.Podman { // which names its images here otherwise, and gives no sum
			if room.Image, err = s.Image(ctx, i.ID); err != nil || len(room.Refs) == 0 {
				continue // it has gone, or is no image of a person's
			}
			disk.Total += room.Alone
		}
		disk.Images = append(disk.Images, room)
	}
	return disk, nil
}
