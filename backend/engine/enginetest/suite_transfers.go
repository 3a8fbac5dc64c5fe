package enginetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// caseTransfer exports an image in parts and imports it.
func caseTransfer(s *suite) {
	parts, err := s.engine.DescribeImage(s.ctx, s.Image)
	s.ok(err)
	if present, err := s.engine.PresentLayers(s.ctx, parts.Layers); err != nil || present != len(parts.Layers) {
		s.Fatalf("%d of its own %d layers are present (%v)", present, len(parts.Layers), err)
	}
	content := map[string]engine.Content{}
	err = s.engine.ExportImage(s.ctx, parts.ID, func(string) bool { return true },
		func(part string, from io.Reader) error {
			data, err := io.ReadAll(from)
			if sum := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); part != session.ImageConfig && part != sum {
				s.Errorf("the layer %s has the content %s", part, sum)
			}
			content[part] = engine.Content{Size: gpu.Bytes(len(data)),
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
			return err
		})
	s.ok(err)
	if len(content) != 1+len(parts.Layers) {
		s.Fatalf("%d parts were given of an image with %d layers", len(content), len(parts.Layers))
	}
	for _, layer := range parts.Layers[1:] {
		delete(content, layer.Digest) // it is here
	}
	image, err := s.engine.ImportImage(s.ctx, parts, content)
	if err != nil || image.ID != parts.ID {
		s.Errorf("the image put together is %s and should be %s (%v)", image.ID, parts.ID, err)
	}
	parts.Layers = append(parts.Layers, session.ImageLayer{Digest: "sha256:" + strings.Repeat("0", 64)})
	if _, err := s.engine.ImportImage(s.ctx, parts, content); session.CodeOf(err) != session.CodeImageInvalid {
		s.Errorf("with a layer that nobody has it fails with %v", err)
	}
}

// caseTransferEnds stops in the middle of an image.
func caseTransferEnds(s *suite) {
	parts, err := s.engine.DescribeImage(s.ctx, s.Image)
	s.ok(err)
	enough := errors.New("that is enough")
	calls := 0
	err = s.engine.ExportImage(s.ctx, parts.ID, func(string) bool { return true }, func(string, io.Reader) error {
		calls++
		return enough
	})
	if !errors.Is(err, enough) || calls != 1 {
		s.Errorf("it ends with %v after %d parts", err, calls)
	}
	if _, err := s.engine.DescribeImage(s.ctx, noImage); session.CodeOf(err) != session.CodeNoImage {
		s.Errorf("an image that is not there is described: %v", err)
	}
}
