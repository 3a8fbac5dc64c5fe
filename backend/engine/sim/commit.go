package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

const (
	// changedFirst and changedEach are what a container has changed: a little at
	// its start, and more for each minute of its life, as people install things.
	changedFirst = 24 * gpu.MiB
	changedEach  = 16 * gpu.MiB
	changedMost  = 4 * gpu.GiB

	commitDelay = 800 * time.Millisecond
	commitRate  = 160 * gpu.MiB // bytes a second
)

func (s *Sim) Changed(ctx context.Context, id string) (gpu.Bytes, error) {
	if err := s.check(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.containers[id]
	if !ok {
		return 0, notFound(id)
	}
	if c.State.StartedAt.IsZero() {
		return 0, nil
	}
	end := s.config.Clock.Now()
	if !c.State.Running {
		end = c.State.FinishedAt
	}
	minutes := gpu.Bytes(max(end.Sub(c.State.StartedAt), 0) / time.Minute)
	return min(changedFirst+minutes*changedEach, changedMost), nil
}

func (s *Sim) Commit(ctx context.Context, id string, c engine.Commit) (session.Image, error) {
	changed, err := s.Changed(ctx, id)
	if err != nil {
		return session.Image{}, err
	}
	s.mu.Lock()
	from := s.containers[id].Spec.Image
	s.mu.Unlock()
	base, _ := s.image(from)
	if err := s.pause(ctx, commitDelay+time.Duration(changed/commitRate)*time.Second); err != nil {
		return session.Image{}, err
	}
	if _, taken := s.image(c.Ref); taken {
		return session.Image{}, &session.Error{Code: "engine_commit_already-exists",
			Message: fmt.Sprintf("There is an image named %s already.", c.Ref),
			Hint:    "Choose another name, or remove it."}
	}
	now := s.config.Clock.Now().UTC()
	origin := c.Origin
	made := session.Image{
		ID: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(c.Ref+now.String()))), Refs: []string{c.Ref},
		Size:      base.Size + changed,
		CreatedAt: now, Arch: arch(), Labels: origin.Labels(), Origin: &origin,
	}
	s.mu.Lock()
	s.committed = append(s.committed, made)
	s.mu.Unlock()
	return made, s.save()
}

func (s *Sim) RemoveImage(ctx context.Context, ref string) error {
	image, err := s.Image(ctx, ref)
	if err != nil {
		return err
	}
	s.mu.Lock()
	for _, c := range s.containers {
		if fullRef(c.Spec.Image) == fullRef(image.Refs[0]) || c.Spec.Image == image.ID {
			s.mu.Unlock()
			return &session.Error{Code: "engine_image_conflict",
				Message: fmt.Sprintf("The image %s is used by the container %s.", ref, c.Spec.Name),
				Hint:    "End that session first."}
		}
	}
	for _, name := range image.Refs {
		s.evict(name)
	}
	s.received = slices.DeleteFunc(s.received, func(p session.ImageParts) bool { return p.ID == image.ID })
	s.committed = slices.DeleteFunc(s.committed, func(i session.Image) bool { return i.ID == image.ID })
	s.mu.Unlock()
	return s.save()
}

// DiskUse implements [engine.Images]. Customized images share the layers of
// their base.
func (s *Sim) DiskUse(ctx context.Context) (session.ImageDisk, error) {
	if err := s.check(ctx); err != nil {
		return session.ImageDisk{}, err
	}
	images := s.installed()
	s.mu.Lock()
	defer s.mu.Unlock()
	var disk session.ImageDisk
	for _, image := range images {
		room := session.ImageRoom{Image: image, Alone: image.Size}
		for _, other := range images {
			switch {
			case other.Origin != nil && fullRef(other.Origin.Base) == fullRef(image.Refs[0]):
				room.Alone = 0 // what is made of it keeps its layers
			case image.Origin != nil && fullRef(image.Origin.Base) == fullRef(other.Refs[0]):
				room.Alone = max(image.Size-other.Size, 0)
			}
		}
		disk.Total += room.Alone
		if room.Alone == 0 {
			disk.Total += image.Size
		}
		for _, c := range s.containers {
			if fullRef(c.Spec.Image) == fullRef(image.Refs[0]) || c.Spec.Image == image.ID {
				room.Containers++
			}
		}
		disk.Images = append(disk.Images, room)
	}
	return disk, nil
}

// Evict takes an image from the machine, whoever uses it.
func (s *Sim) Evict(ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evict(ref)
}

// evict needs mu.
func (s *Sim) evict(ref string) {
	if image, ok := s.published(ref); ok {
		delete(s.pulled, image.Ref)
		s.evicted[image.Ref] = true
	}
}
