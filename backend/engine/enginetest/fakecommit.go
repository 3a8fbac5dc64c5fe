package enginetest

import (
	"context"
	"fmt"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// fakeChanged is what every container of a [Fake] has changed.
const fakeChanged = 3 * gpu.MiB

func (f *Fake) Changed(ctx context.Context, id string) (gpu.Bytes, error) {
	_, err := f.Inspect(ctx, id)
	return fakeChanged, err
}

func (f *Fake) Commit(ctx context.Context, id string, c engine.Commit) (session.Image, error) {
	if err := f.enter(ctx, CallCommit); err != nil {
		return session.Image{}, err
	}
	f.mu.Lock()
	_, there := f.containers[id]
	_, taken := f.images[fullRef(c.Ref)]
	f.mu.Unlock()
	switch {
	case !there:
		return session.Image{}, notFound(id)
	case taken:
		return session.Image{}, &session.Error{Code: "engine_commit_already-exists",
			Message: fmt.Sprintf("There is an image named %s already.", c.Ref), Hint: "Choose another name."}
	}
	f.AddImage(c.Ref)
	f.mu.Lock()
	image := f.images[fullRef(c.Ref)]
	image.Origin, image.Labels = &c.Origin, c.Origin.Labels()
	f.images[fullRef(c.Ref)] = image
	f.mu.Unlock()
	return image, f.leave(CallCommit)
}

func (f *Fake) RemoveImage(ctx context.Context, ref string) error {
	image, err := f.Image(ctx, ref)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		if f.images[fullRef(c.spec.Image)].ID == image.ID {
			return &session.Error{Code: "engine_image_conflict",
				Message: fmt.Sprintf("The image %s is used by the container %s.", ref, c.spec.Name),
				Hint:    "Remove it first."}
		}
	}
	for name, other := range f.images {
		if other.ID == image.ID {
			delete(f.images, name)
		}
	}
	return nil
}

// DiskUse implements [engine.Images]: no image shares anything.
func (f *Fake) DiskUse(ctx context.Context) (session.ImageDisk, error) {
	images, err := f.Images(ctx)
	var disk session.ImageDisk
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, image := range images {
		room := session.ImageRoom{Image: image, Alone: image.Size}
		for _, c := range f.containers {
			if f.images[fullRef(c.spec.Image)].ID == image.ID {
				room.Containers++
			}
		}
		disk.Total += image.Size
		disk.Images = append(disk.Images, room)
	}
	return disk, err
}
