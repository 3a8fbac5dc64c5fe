package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway/backend/session"
)

// images are those of the machine and of its registry.
type images struct {
	*machine
	users func(image session.Image) []string // the containers that use an image; called with mu held

	here  []session.Image      // those of the machine; guarded by mu, as what follows
	parts []session.ImageParts // what those are made of that were brought
}

// fullRef adds the default tag to a reference and removes the default registry.
func fullRef(ref string) string {
	ref = strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/"), "library/")
	if last := ref[strings.LastIndex(ref, "/")+1:]; strings.ContainsAny(last, ":@") {
		return ref
	}
	return ref + ":latest"
}

// published returns the registry's image of a reference.
func (s *images) published(ref string) (Image, bool) {
	name, digest, _ := strings.Cut(ref, "@")
	for _, image := range s.config.Catalogue {
		if fullRef(image.Ref) == fullRef(name) && (digest == "" || image.describe().ID == digest) {
			return image, true
		}
	}
	return Image{}, false
}

// find returns the machine's image of a reference or id.
func (s *images) find(ref string) (session.Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolve(ref)
}

// resolve is find with mu held.
func (s *images) resolve(ref string) (session.Image, bool) {
	name, digest, _ := strings.Cut(ref, "@")
	for _, image := range s.here {
		named := func(other string) bool { return fullRef(other) == fullRef(name) }
		if image.ID == ref || digest != "" && image.ID == digest || digest == "" &&
			slices.ContainsFunc(image.Refs, named) {
			return image, true
		}
	}
	return session.Image{}, false
}

// keep adds an image, or adds names to one that exists. Other images lose these names, and vanish with their last one.
// It needs mu.
func (s *images) keep(image session.Image) {
	kept := []session.Image{}
	for _, other := range s.here {
		if other.ID == image.ID {
			refs := slices.Concat(other.Refs, image.Refs)
			slices.Sort(refs)
			image, image.Refs = other, slices.Compact(refs)
			continue
		}
		other.Refs = slices.DeleteFunc(slices.Clone(other.Refs),
			func(ref string) bool { return slices.Contains(image.Refs, ref) })
		if len(other.Refs) > 0 {
			kept = append(kept, other)
		}
	}
	s.here = append(kept, image)
	slices.SortFunc(s.here, func(a, b session.Image) int { return strings.Compare(a.Refs[0], b.Refs[0]) })
}

// forget removes an image under all its names. It needs mu.
func (s *images) forget(image session.Image) {
	s.parts = slices.DeleteFunc(s.parts, func(p session.ImageParts) bool { return p.ID == image.ID })
	s.here = slices.DeleteFunc(s.here, func(i session.Image) bool { return i.ID == image.ID })
}

func (s *images) Images(ctx context.Context) ([]session.Image, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.here), nil
}

func (s *images) Image(ctx context.Context, ref string) (session.Image, error) {
	if err := s.check(ctx); err != nil {
		return session.Image{}, err
	}
	image, ok := s.find(ref)
	if !ok {
		return session.Image{}, session.NewError(session.CodeNoImage,
			fmt.Sprintf("The image %s is not on this machine.", ref), "Pull it first.")
	}
	return image, nil
}

func (s *images) RemoveImage(ctx context.Context, ref string) error {
	image, err := s.Image(ctx, ref)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if users := s.users(image); len(users) > 0 {
		s.mu.Unlock()
		return session.NewError(session.CodeImageConflict,
			fmt.Sprintf("The image %s is used by the container %s.", ref, users[0]), "End that session first.")
	}
	s.forget(image)
	s.mu.Unlock()
	return s.save()
}

// DiskUse implements [engine.ImageStore]. Committed images share the layers of their base.
func (s *images) DiskUse(ctx context.Context) (session.ImageDisk, error) {
	if err := s.check(ctx); err != nil {
		return session.ImageDisk{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var disk session.ImageDisk
	for _, image := range s.here {
		room := session.ImageRoom{Image: image, Alone: image.Size, Containers: len(s.users(image))}
		for _, other := range s.here {
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
		disk.Images = append(disk.Images, room)
	}
	return disk, nil
}
