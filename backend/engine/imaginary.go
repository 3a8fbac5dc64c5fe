package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"

	"slipway/backend/session"
	"slipway/gpu"
)

// Imaginary is an image of an engine that runs nothing real. Its layers hold noise.
type Imaginary struct {
	Parts   session.ImageParts
	content []imaginaryPart // the configuration first
}

type imaginaryPart struct {
	name string
	data []byte
}

// The layers of imaginary images, in bytes; all images share the first.
const (
	imaginaryBase = 192 << 10 // all of them stand on it
	imaginaryOwn  = 640 << 10
)

// Imagine returns the parts of an imaginary image, which are the same on every machine.
func Imagine(image session.Image) Imaginary {
	i := Imaginary{
		Parts:   session.ImageParts{ID: image.ID, Refs: image.Refs, Arch: image.Arch, OS: "linux"},
		content: []imaginaryPart{{name: session.ImageConfig}},
	}
	var digests []string
	for _, layer := range [][]byte{noise("base", imaginaryBase), noise(image.ID, imaginaryOwn)} {
		sum := sha256.Sum256(layer)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		digests = append(digests, digest)
		i.content = append(i.content, imaginaryPart{digest, layer})
		i.Parts.Layers = append(i.Parts.Layers, session.ImageLayer{Digest: digest, Size: gpu.Bytes(len(layer))})
	}
	// Only a time outside the years 0 to 9999 fails. Then the configuration is empty.
	i.content[0].data, _ = json.Marshal(map[string]any{
		"architecture": image.Arch, "os": "linux", "created": image.CreatedAt,
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	})
	return i
}

func noise(seed string, length int) []byte {
	stream := rand.NewChaCha8(sha256.Sum256([]byte(seed)))
	data := make([]byte, length)
	_, _ = stream.Read(data) // never fails
	return data
}

// Export is [Transfers.ExportImage] of an imaginary image.
func (i Imaginary) Export(ctx context.Context, want func(part string) bool,
	fn func(part string, content io.Reader) error) error {
	for _, part := range i.content {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !want(part.name) {
			continue
		}
		if err := fn(part.name, bytes.NewReader(part.data)); err != nil {
			return err
		}
	}
	return nil
}

// CommonLayers counts the first layers that two images share.
func CommonLayers(a, b []session.ImageLayer) int {
	n := 0
	for n < len(a) && n < len(b) && a[n].Digest == b[n].Digest {
		n++
	}
	return n
}

// CheckImport fails with image_update_invalid if a part is neither in content nor among the first present layers.
func CheckImport(parts session.ImageParts, present int, content map[string]Content) error {
	if _, ok := content[session.ImageConfig]; !ok {
		return Incomplete("its configuration was not sent")
	}
	for i, layer := range parts.Layers {
		if _, ok := content[layer.Digest]; !ok && i >= present {
			return Incomplete("the layer " + layer.Digest + " was not sent")
		}
	}
	return nil
}

// Incomplete is image_update_invalid, with the reason.
func Incomplete(what string) error {
	return session.NewError(session.CodeImageInvalid, "The image cannot be put together: "+what+".",
		"Send it again. Only what is missing is transferred.")
}

// NameTaken is image_update_conflict: another image has the name.
func NameTaken(ref string) error {
	return session.NewError(session.CodeImageConflict, "There is another image named "+ref+" on that machine.",
		"Remove it there first, or give this one another name. An admin replaces it with slipway image send --replace.")
}
