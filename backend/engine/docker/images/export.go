package images

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

func (s *Store) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	found, err := s.Image(ctx, ref)
	if err != nil {
		return session.ImageParts{}, err
	}
	ctx, cancel := s.daemon.Brief(ctx)
	defer cancel()
	said, err := s.daemon.API.ImageInspect(ctx, found.ID)
	if err != nil {
		return session.ImageParts{}, daemon.Failure(ctx, err)
	}
	history, err := s.daemon.API.ImageHistory(ctx, found.ID)
	if err != nil {
		return session.ImageParts{}, daemon.Failure(ctx, err)
	}
	parts := session.ImageParts{ID: found.ID, Refs: found.Refs, Arch: found.Arch, OS: said.Os}
	sizes := layerSizes(history)
	for i, digest := range said.RootFS.Layers {
		layer := session.ImageLayer{Digest: digest}
		if len(sizes) == len(said.RootFS.Layers) {
			layer.Size = sizes[i]
		} else { // the history tells steps that made no layer as if they had
			layer.Size = found.Size / gpu.Bytes(len(said.RootFS.Layers))
		}
		parts.Layers = append(parts.Layers, layer)
	}
	return parts, nil
}

// layerSizes are those of the steps that made layers, lowest first. The history begins with the newest.
func layerSizes(history []image.HistoryResponseItem) []gpu.Bytes {
	var sizes []gpu.Bytes
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Size > 0 {
			sizes = append(sizes, gpu.Bytes(history[i].Size))
		}
	}
	return sizes
}

// PresentLayers counts the first layers that an image on this machine has. Unnamed images count too.
func (s *Store) PresentLayers(ctx context.Context, layers []session.ImageLayer) (int, error) {
	present, _, err := s.nearest(ctx, layers)
	return present, err
}

// nearest finds the image that has most of the first layers.
func (s *Store) nearest(ctx context.Context, layers []session.ImageLayer) (present int, id string, err error) {
	listing, cancel := s.daemon.Brief(ctx)
	defer cancel()
	found, err := s.daemon.API.ImageList(listing, image.ListOptions{All: true})
	if err != nil {
		return 0, "", daemon.Failure(listing, err)
	}
	for _, summary := range found {
		said, err := s.daemon.API.ImageInspect(listing, summary.ID)
		if errdefs.IsNotFound(err) {
			continue // removed meanwhile
		}
		if err != nil {
			return 0, "", daemon.Failure(listing, err)
		}
		var its []session.ImageLayer
		for _, digest := range said.RootFS.Layers {
			its = append(its, session.ImageLayer{Digest: digest})
		}
		if common := engine.CommonLayers(layers, its); common > present {
			present, id = common, summary.ID
		}
	}
	return present, id, nil
}

// ExportImage calls fn for each wanted part. Older daemons name the layers last, so it reads the archive twice.
func (s *Store) ExportImage(ctx context.Context, id string, want func(part string) bool,
	fn func(part string, content io.Reader) error) error {
	said, err := s.daemon.API.ImageInspect(ctx, id)
	if errdefs.IsNotFound(err) {
		return NotHere(session.CodeNoImage, id, err)
	}
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	x := &export{want: map[string]bool{}, files: map[string]string{}, give: fn}
	for _, part := range append([]string{session.ImageConfig}, said.RootFS.Layers...) {
		if want(part) {
			x.want[part] = true
		}
	}
	for pass := 0; len(x.want) > 0; pass++ {
		if pass == 2 {
			return session.NewError(session.CodeOperationFailed,
				fmt.Sprintf("Docker gave the image %s without %d of its parts.", id, len(x.want)),
				"Check that the image runs here. If it does not, pull it again.")
		}
		if err := s.pass(ctx, id, said, x); err != nil {
			return err
		}
	}
	return nil
}

type export struct {
	want  map[string]bool   // parts that were not given yet
	files map[string]string // which file of the archive is which part
	give  func(part string, content io.Reader) error
}

func (s *Store) pass(ctx context.Context, id string, said image.InspectResponse, x *export) error {
	stream, err := s.daemon.API.ImageSave(ctx, []string{id})
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	defer stream.Close() //nolint:errcheck // read to its end, or given up
	archive := tar.NewReader(stream)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return daemon.Failure(ctx, err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		name := path.Clean(header.Name)
		if name == "manifest.json" {
			if err := x.learn(archive, said.RootFS.Layers); err != nil {
				return err
			}
			continue
		}
		if err := x.take(ctx, x.part(name, id), archive); err != nil || len(x.want) == 0 {
			return err
		}
	}
}

// part says which part a file of the archive is, "" if that is unknown yet.
func (x *export) part(name, id string) string {
	if part, ok := x.files[name]; ok {
		return part
	}
	digest := "sha256:" + strings.TrimSuffix(path.Base(name), ".json")
	switch {
	case digest == id && (path.Dir(name) == "." || strings.HasPrefix(name, "blobs/sha256/")):
		return session.ImageConfig
	case strings.HasPrefix(name, "blobs/sha256/"):
		return digest
	}
	return ""
}

func (x *export) learn(r io.Reader, layers []string) error {
	var manifests []struct {
		Config string
		Layers []string
	}
	if err := json.NewDecoder(io.LimitReader(r, 16<<20)).Decode(&manifests); err != nil || len(manifests) != 1 ||
		len(manifests[0].Layers) != len(layers) {
		return session.WrapError(err, session.CodeOperationFailed, "Docker gave the image in a form that is not known.",
			"Say which version of Docker it is when you report this.")
	}
	x.files[path.Clean(manifests[0].Config)] = session.ImageConfig
	for i, name := range manifests[0].Layers {
		x.files[path.Clean(name)] = layers[i]
	}
	return nil
}

// take passes on a part if it is wanted. Layers may be compressed.
func (x *export) take(ctx context.Context, part string, r io.Reader) error {
	if !x.want[part] {
		return nil
	}
	content, err := layers.Inflate(io.NopCloser(r))
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	defer content.Close() //nolint:errcheck // of a reader
	delete(x.want, part)
	return x.give(part, content)
}
