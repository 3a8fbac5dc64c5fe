package images

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

const configMost = 8 << 20

// ImportImage loads an image from an archive that only names layers the daemon has. containerd's store needs all layers
// and gets these from another image.
func (s *Store) ImportImage(ctx context.Context, parts session.ImageParts,
	content map[string]engine.Content) (session.Image, error) {
	config, err := configOf(parts, content)
	if err != nil {
		return session.Image{}, err
	}
	present, nearest, err := s.nearest(ctx, parts.Layers)
	if err != nil {
		return session.Image{}, err
	}
	if err := engine.CheckImport(parts, present, content); err != nil {
		return session.Image{}, err
	}
	lacking := map[string]bool{}
	for _, layer := range parts.Layers {
		if _, ok := content[layer.Digest]; !ok {
			lacking[layer.Digest] = true
		}
	}
	f, err := s.daemon.Facts(ctx)
	if err != nil {
		return session.Image{}, err
	}
	a := &archive{parts: parts, config: config, content: content}
	if f.Containerd && len(lacking) > 0 {
		a.own = func(fn func(part string, content io.Reader) error) error {
			return s.ExportImage(ctx, nearest, func(part string) bool { return lacking[part] }, fn)
		}
	}
	return s.install(ctx, a)
}

// receiving is the repository of temporary names during an import.
const receiving = "slipway-receiving"

// install loads the image under a temporary name, so that no other image loses its name meanwhile, then tags it.
func (s *Store) install(ctx context.Context, a *archive) (made session.Image, err error) {
	a.name = receiving + ":" + strings.TrimPrefix(a.id(), "sha256:")
	defer func() {
		untagging, cancel := s.daemon.Brief(context.WithoutCancel(ctx))
		defer cancel()
		// an image that has no other name goes with it
		_, gone := s.daemon.API.ImageRemove(untagging, a.name, image.RemoveOptions{})
		if gone != nil && !errdefs.IsNotFound(gone) && err == nil {
			err = daemon.Failure(untagging, gone)
		}
	}()
	if made, err = s.load(ctx, a); err != nil {
		return session.Image{}, err
	}
	refs := tags(a.parts.Refs)
	for _, ref := range refs {
		if err := s.mayMove(ctx, ref, made.ID, a); err != nil {
			return session.Image{}, err
		}
	}
	for _, ref := range refs {
		if err := s.daemon.API.ImageTag(ctx, made.ID, ref); err != nil {
			return session.Image{}, daemon.Failure(ctx, err)
		}
	}
	return s.Image(ctx, made.ID)
}

// mayMove fails where another image has the name and is to keep it. Daemons on containerd's store may know the same
// image by another id, so the configuration decides.
func (s *Store) mayMove(ctx context.Context, ref, id string, a *archive) error {
	taken, err := s.Image(ctx, ref)
	switch {
	case session.CodeOf(err) == session.CodeNoImage:
		return nil
	case err != nil || taken.ID == id || a.parts.Replace:
		return err
	}
	var config []byte
	err = s.ExportImage(ctx, taken.ID, func(part string) bool { return part == session.ImageConfig },
		func(_ string, content io.Reader) (err error) {
			config, err = io.ReadAll(io.LimitReader(content, configMost))
			return err
		})
	if err != nil || bytes.Equal(config, a.config) {
		return err
	}
	return engine.NameTaken(ref)
}

// configOf reads the configuration and checks that it has these layers.
func configOf(parts session.ImageParts, content map[string]engine.Content) ([]byte, error) {
	stored, ok := content[session.ImageConfig]
	if !ok || stored.Size > configMost {
		return nil, engine.Incomplete("its configuration was not sent")
	}
	reader, err := stored.Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(reader, configMost))
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, err
	}
	var config struct {
		RootFS struct {
			Layers []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, engine.Incomplete("its configuration is missing")
	}
	if !slices.EqualFunc(config.RootFS.Layers, parts.Layers,
		func(digest string, l session.ImageLayer) bool { return digest == l.Digest }) {
		return nil, engine.Incomplete("its configuration is that of other layers")
	}
	return data, nil
}

func (s *Store) load(ctx context.Context, a *archive) (session.Image, error) {
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := a.write(writer)
		writer.CloseWithError(err)
		written <- err
	}()
	said, err := s.daemon.API.ImageLoad(ctx, reader, client.ImageLoadWithQuiet(true))
	if err == nil {
		err = decode(said.Body, func(message) bool { return true })
		err = errors.Join(err, said.Body.Close())
	}
	_ = reader.Close() // so that the writer ends where the daemon gave up
	if broken := <-written; broken != nil && !errors.Is(broken, io.ErrClosedPipe) {
		err = broken
	}
	if err != nil {
		return session.Image{}, daemon.Failure(ctx, err)
	}
	image, err := s.Image(ctx, a.name)
	if session.CodeOf(err) == session.CodeNoImage {
		err = engine.Incomplete("Docker took it and does not have it")
	}
	return image, err
}

// archive is an image in the form of docker load.
type archive struct {
	parts   session.ImageParts
	name    string // that it is loaded under
	config  []byte
	content map[string]engine.Content
	// layers of this machine; nil: they are only named
	own func(fn func(part string, content io.Reader) error) error
}

// id is the digest of the configuration, by which most daemons know the image.
func (a *archive) id() string {
	sum := sha256.Sum256(a.config)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func layerFile(digest string) string { return strings.TrimPrefix(digest, "sha256:") + "/layer.tar" }

func (a *archive) write(to io.Writer) error {
	w := tar.NewWriter(to)
	name := strings.TrimPrefix(a.id(), "sha256:") + ".json"
	if err := add(w, name, int64(len(a.config)), bytes.NewReader(a.config)); err != nil {
		return err
	}
	if a.own != nil {
		if err := a.own(func(part string, content io.Reader) error {
			return spooled(w, layerFile(part), content)
		}); err != nil {
			return err
		}
	}
	var files []string
	done := map[string]bool{}
	for _, layer := range a.parts.Layers {
		files = append(files, layerFile(layer.Digest))
		stored, ok := a.content[layer.Digest]
		if !ok || done[layer.Digest] {
			continue
		}
		done[layer.Digest] = true
		content, err := stored.Open()
		if err != nil {
			return err
		}
		err = add(w, layerFile(layer.Digest), int64(stored.Size), content)
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": name, "RepoTags": []string{a.name}, "Layers": files}})
	if err != nil {
		return err
	}
	return errors.Join(add(w, "manifest.json", int64(len(manifest)), bytes.NewReader(manifest)), w.Close())
}

func tags(refs []string) []string {
	return slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return strings.Contains(ref, "@") })
}

func add(w *tar.Writer, name string, size int64, content io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, Typeflag: tar.TypeReg,
		Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}

// spooled adds a file of unknown size.
func spooled(w *tar.Writer, name string, content io.Reader) error {
	file, err := os.CreateTemp("", "slipway-layer-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // in the folder for what may be lost
	defer file.Close()           //nolint:errcheck // only read from here on
	size, err := io.Copy(file, content)
	if err != nil {
		return fmt.Errorf("spool %s of %s: %w", name, gpu.Bytes(size), err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return add(w, name, size, file)
}
