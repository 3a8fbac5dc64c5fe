package sim

import (
	"context"
	"io"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

func (s *Sim) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	image, err := s.Image(ctx, ref)
	if err != nil {
		return session.ImageParts{}, err
	}
	return s.parts(image), nil
}

// parts are those that an image came with, or the imaginary ones.
func (s *Sim) parts(image session.Image) session.ImageParts {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, received := range s.received {
		if received.ID == image.ID {
			return received
		}
	}
	return engine.Imagine(image).Parts
}

func (s *Sim) PresentLayers(ctx context.Context, layers []session.ImageLayer) (int, error) {
	if err := s.check(ctx); err != nil {
		return 0, err
	}
	present := 0
	for _, image := range s.installed() {
		present = max(present, engine.CommonLayers(layers, s.parts(image).Layers))
	}
	return present, nil
}

// ExportImage implements [engine.Transfers]. A simulated machine keeps nothing of
// what real images hold, so it has only its own to give.
func (s *Sim) ExportImage(ctx context.Context, id string, want func(part string) bool,
	fn func(part string, content io.Reader) error) error {
	image, err := s.Image(ctx, id)
	if err != nil {
		return err
	}
	imaginary := engine.Imagine(image)
	if !slices.Equal(imaginary.Parts.Layers, s.parts(image).Layers) {
		return &session.Error{Code: "engine_export_failed",
			Message: "This machine is simulated and kept only the name of the image.",
			Hint:    "Send it from a machine with Docker."}
	}
	return imaginary.Export(ctx, want, fn)
}

func (s *Sim) ImportImage(ctx context.Context, parts session.ImageParts,
	content map[string]engine.Content) (session.Image, error) {
	present, err := s.PresentLayers(ctx, parts.Layers)
	if err != nil {
		return session.Image{}, err
	}
	if err := engine.CheckImport(parts, present, content); err != nil {
		return session.Image{}, err
	}
	if err := s.pause(ctx, unpack); err != nil {
		return session.Image{}, err
	}
	for _, ref := range parts.Refs {
		if taken, ok := s.image(ref); ok && taken.ID != parts.ID && !parts.Replace {
			return session.Image{}, engine.NameTaken(ref)
		}
	}
	s.mu.Lock()
	known := false
	for _, ref := range parts.Refs {
		if image, ok := s.published(ref); ok && image.describe().ID == parts.ID {
			s.pulled[image.Ref], known = true, true
		}
	}
	if !known {
		s.received = append(slices.DeleteFunc(s.received, func(p session.ImageParts) bool { return p.ID == parts.ID }),
			parts)
	}
	s.mu.Unlock()
	if err := s.save(); err != nil {
		return session.Image{}, err
	}
	return s.Image(ctx, parts.ID)
}

// imported are the images that were brought and that no catalogue has; needs mu.
func (s *Sim) imported() []session.Image {
	var images []session.Image
	for _, parts := range s.received {
		if len(parts.Refs) == 0 {
			continue
		}
		var size gpu.Bytes
		for _, layer := range parts.Layers {
			size += layer.Size
		}
		images = append(images, session.Image{ID: parts.ID, Refs: parts.Refs, Size: size, Arch: parts.Arch})
	}
	return images
}
