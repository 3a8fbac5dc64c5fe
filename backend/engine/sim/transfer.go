package sim

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
)

func (s *images) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	image, err := s.Image(ctx, ref)
	if err != nil {
		return session.ImageParts{}, err
	}
	return locked(ctx, s.machine, func() (session.ImageParts, error) { return s.partsOf(image), nil })
}

// partsOf are the parts that an image was imported with, or imaginary ones. It needs mu.
func (s *images) partsOf(image session.Image) session.ImageParts {
	for _, brought := range s.parts {
		if brought.ID == image.ID {
			return brought
		}
	}
	return engine.Imagine(image).Parts
}

func (s *images) PresentLayers(ctx context.Context, layers []session.ImageLayer) (int, error) {
	return locked(ctx, s.machine, func() (present int, err error) {
		for _, image := range s.here {
			present = max(present, engine.CommonLayers(layers, s.partsOf(image).Layers))
		}
		return present, nil
	})
}

// ExportImage implements [engine.Transfers]. A simulated machine does not keep the content of imported images.
func (s *images) ExportImage(ctx context.Context, id string, want func(part string) bool,
	fn func(part string, content io.Reader) error) error {
	image, err := s.Image(ctx, id)
	if err != nil {
		return err
	}
	parts, err := s.DescribeImage(ctx, id)
	if err != nil {
		return err
	}
	imaginary := engine.Imagine(image)
	if !slices.Equal(imaginary.Parts.Layers, parts.Layers) {
		return session.NewError(session.CodeOperationFailed,
			"This machine is simulated and kept only the name of the image.", "Send it from a machine with Docker.")
	}
	return imaginary.Export(ctx, want, fn)
}

func (s *images) ImportImage(ctx context.Context, parts session.ImageParts,
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
	brought := session.Image{ID: parts.ID, Refs: parts.Refs, Arch: parts.Arch}
	for _, layer := range parts.Layers {
		brought.Size += layer.Size
	}
	if brought.Labels, err = labelsOf(content[session.ImageConfig]); err != nil {
		return session.Image{}, err
	}
	brought.Origin = session.OriginOf(brought.Labels)
	if err := s.take(brought, parts); err != nil {
		return session.Image{}, err
	}
	if err := s.save(); err != nil {
		return session.Image{}, err
	}
	return s.Image(ctx, parts.ID)
}

func (s *images) take(brought session.Image, parts session.ImageParts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range parts.Refs {
		if taken, ok := s.resolve(ref); ok && taken.ID != parts.ID && !parts.Replace {
			return engine.NameTaken(ref)
		}
	}
	if len(parts.Refs) == 0 {
		return engine.Incomplete("it has no name")
	}
	s.parts = append(slices.DeleteFunc(s.parts, func(p session.ImageParts) bool { return p.ID == parts.ID }), parts)
	s.keep(brought)
	return nil
}

func labelsOf(stored engine.Content) (map[string]string, error) {
	reader, err := stored.Open()
	if err != nil {
		return nil, err
	}
	var config struct {
		Config struct{ Labels map[string]string } `json:"config"`
	}
	err = json.NewDecoder(reader).Decode(&config)
	return config.Config.Labels, errors.Join(err, reader.Close())
}
