package enginetest

import (
	"context"
	"io"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// DescribeImage implements [engine.Transfers].
func (f *Fake) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	image, err := f.Image(ctx, ref)
	if err != nil {
		return session.ImageParts{}, err
	}
	return engine.Imagine(image).Parts, nil
}

// PresentLayers implements [engine.Transfers].
func (f *Fake) PresentLayers(ctx context.Context, layers []session.ImageLayer) (int, error) {
	images, err := f.Images(ctx)
	present := 0
	for _, image := range images {
		present = max(present, engine.CommonLayers(layers, engine.Imagine(image).Parts.Layers))
	}
	return present, err
}

// ExportImage implements [engine.Transfers].
func (f *Fake) ExportImage(ctx context.Context, id string, want func(part string) bool, fn func(part string, content io.Reader) error) error {
	image, err := f.Image(ctx, id)
	if err != nil {
		return err
	}
	return engine.Imagine(image).Export(ctx, want, fn)
}

// ImportImage implements [engine.Transfers].
func (f *Fake) ImportImage(ctx context.Context, parts session.ImageParts, content map[string]engine.Content) (session.Image, error) {
	present, err := f.PresentLayers(ctx, parts.Layers)
	if err != nil {
		return session.Image{}, err
	}
	if err := engine.CheckImport(parts, present, content); err != nil {
		return session.Image{}, err
	}
	for _, ref := range parts.Refs {
		f.AddImage(ref)
	}
	return f.Image(ctx, parts.ID)
}
