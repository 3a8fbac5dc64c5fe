package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
)

func (f *Fake) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	image, err := f.Image(ctx, ref)
	if err != nil {
		return session.ImageParts{}, err
	}
	return engine.Imagine(image).Parts, nil
}

func (f *Fake) PresentLayers(ctx context.Context, layers []session.ImageLayer) (int, error) {
	images, err := f.Images(ctx)
	present := 0
	for _, image := range images {
		present = max(present, engine.CommonLayers(layers, engine.Imagine(image).Parts.Layers))
	}
	return present, err
}

func (f *Fake) ExportImage(ctx context.Context, id string, want func(part string) bool,
	fn func(part string, content io.Reader) error) error {
	image, err := f.Image(ctx, id)
	if err != nil {
		return err
	}
	return engine.Imagine(image).Export(ctx, want, fn)
}

func (f *Fake) ImportImage(ctx context.Context, parts session.ImageParts,
	content map[string]engine.Content) (session.Image, error) {
	present, err := f.PresentLayers(ctx, parts.Layers)
	if err != nil {
		return session.Image{}, err
	}
	if err := engine.CheckImport(parts, present, content); err != nil {
		return session.Image{}, err
	}
	made := session.Image{ID: parts.ID, Arch: parts.Arch, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if made.Labels, err = labelsOf(content[session.ImageConfig]); err != nil {
		return session.Image{}, err
	}
	made.Origin = session.OriginOf(made.Labels)
	for _, layer := range parts.Layers {
		made.Size += layer.Size
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ref := range parts.Refs {
		if taken, ok := f.images[fullRef(ref)]; ok && taken.ID != made.ID && !parts.Replace {
			return session.Image{}, engine.NameTaken(ref)
		}
	}
	for _, ref := range parts.Refs {
		f.name(fullRef(ref), made)
	}
	for _, image := range f.images {
		if image.ID == made.ID {
			return image, nil
		}
	}
	return session.Image{}, engine.Incomplete("it has no name")
}

// name gives an image a name more, which another one loses; needs mu.
func (f *Fake) name(ref string, image session.Image) {
	if old, ok := f.images[ref]; ok && old.ID != image.ID {
		delete(f.images, ref)
		f.rename(old, slices.DeleteFunc(slices.Clone(old.Refs), func(other string) bool { return other == ref }))
	}
	refs := []string{ref}
	for _, other := range f.images {
		if other.ID == image.ID {
			image, refs = other, append(slices.Clone(other.Refs), ref)
		}
	}
	slices.Sort(refs)
	f.images[ref] = image
	f.rename(image, slices.Compact(refs))
}

// rename needs mu.
func (f *Fake) rename(image session.Image, refs []string) {
	image.Refs = refs
	for _, ref := range refs {
		f.images[ref] = image
	}
}

// labelsOf reads the labels of an image from its configuration.
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
