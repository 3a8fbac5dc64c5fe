package images

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// config is what is read of the configuration of an image, as the OCI image specification defines it.
type config struct {
	Created string `json:"created"`
	Config  struct {
		Env        []string
		Entrypoint []string
		Cmd        []string
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Layers []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// ImportImage compares each layer with its digest while it copies it. The id of the image is the digest of its
// configuration, whatever its sender calls it.
func (s *Store) ImportImage(ctx context.Context, parts session.ImageParts,
	content map[string]engine.Content) (session.Image, error) {
	if err := s.begin(ctx); err != nil {
		return session.Image{}, err
	}
	defer s.end()
	if err := layers.Check(parts); err != nil {
		return session.Image{}, err
	}
	data, said, err := configOf(parts, content)
	if err != nil {
		return session.Image{}, err
	}
	present, err := s.PresentLayers(ctx, parts.Layers)
	if err != nil {
		return session.Image{}, err
	}
	if err := engine.CheckImport(parts, present, content); err != nil {
		return session.Image{}, err
	}
	one := recordOf(parts, data, said)
	if err := s.mayName(one, parts.Replace); err != nil {
		return session.Image{}, err
	}
	for i, layer := range one.Layers {
		size, err := s.take(ctx, layer.Digest, content)
		if err != nil {
			return session.Image{}, errors.Join(err, s.sweep())
		}
		one.Layers[i].Size = size
	}
	if err := s.put(one, data); err != nil {
		return session.Image{}, err
	}
	return s.Image(ctx, one.ID)
}

// configOf reads the configuration and checks that it has these layers.
func configOf(parts session.ImageParts, content map[string]engine.Content) (data []byte, said config, err error) {
	stored, ok := content[session.ImageConfig]
	if !ok || stored.Size > configMost {
		return nil, said, engine.Incomplete("its configuration was not sent")
	}
	reader, err := stored.Open()
	if err != nil {
		return nil, said, err
	}
	data, err = io.ReadAll(io.LimitReader(reader, configMost))
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, said, err
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return nil, said, engine.Incomplete("its configuration is missing")
	}
	if !slices.EqualFunc(said.RootFS.Layers, parts.Layers,
		func(digest string, l session.ImageLayer) bool { return digest == l.Digest }) {
		return nil, said, engine.Incomplete("its configuration is that of other layers")
	}
	return data, said, nil
}

func recordOf(parts session.ImageParts, data []byte, said config) record {
	sum := sha256.Sum256(data)
	one := record{ImageParts: parts, Labels: said.Config.Labels, Starts: Starts{Dir: said.Config.WorkingDir,
		Argv: slices.Concat(said.Config.Entrypoint, said.Config.Cmd)}}
	one.ID, one.Replace = idPrefix+hex.EncodeToString(sum[:]), false
	one.Layers = slices.Clone(parts.Layers)
	one.Refs = slices.DeleteFunc(slices.Clone(parts.Refs), func(ref string) bool {
		return strings.Contains(ref, "@") || session.IsEmptyImage(ref)
	})
	for _, entry := range said.Config.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			one.Starts.Env = append(one.Starts.Env, session.EnvVar{Name: name, Value: value})
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, said.Created); err == nil && at.Year() >= 1970 {
		one.Created = at
	}
	return one
}

// mayName fails where another image has a name of one and is to keep it.
func (s *Store) mayName(one record, replace bool) error {
	if len(one.Refs) == 0 {
		return engine.Incomplete("it has no name")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range one.Refs {
		if taken, ok := s.resolve(ref); ok && taken.ID != one.ID && !replace {
			return engine.NameTaken(ref)
		}
	}
	return nil
}

// take stores a layer, unless it is here, and returns its size.
func (s *Store) take(ctx context.Context, digest string, content map[string]engine.Content) (gpu.Bytes, error) {
	if info, err := os.Stat(s.layer(digest)); err == nil {
		return gpu.Bytes(info.Size()), nil
	}
	reader, err := content[digest].Open()
	if err != nil {
		return 0, err
	}
	defer reader.Close() //nolint:errcheck // only read
	path := s.layer(digest) + "." + rand.Text() + ".new"
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, s.failure(err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, sum), during{ctx, reader})
	if err == nil {
		err = file.Sync() // nodes read it by way of a server
	}
	if err := errors.Join(err, file.Close()); err != nil {
		if ended := ended(ctx); ended != nil {
			return 0, ended
		}
		if session.CodeOf(err) != "" { // of a registry
			return 0, err
		}
		return 0, s.failure(err)
	}
	if idPrefix+hex.EncodeToString(sum.Sum(nil)) != digest {
		return 0, engine.Incomplete("the layer " + digest + " has other content than its digest says")
	}
	if err := os.Rename(path, s.layer(digest)); err != nil {
		return 0, s.failure(err)
	}
	return gpu.Bytes(n), nil
}

// during is a reader that ends with a context.
type during struct {
	ctx  context.Context //nolint:containedctx // of the call that reads
	from io.Reader
}

func (d during) Read(p []byte) (int, error) {
	if err := ended(d.ctx); err != nil {
		return 0, err
	}
	return d.from.Read(p)
}

// put stores a complete image. Other images lose its names, and go if they have no other one and nothing uses them.
func (s *Store) put(one record, data []byte) error {
	s.mu.Lock()
	changed := []record{}
	if before, ok := s.byID[one.ID]; ok {
		for _, ref := range before.Refs {
			if !slices.ContainsFunc(one.Refs, func(name string) bool { return session.SameImage(name, ref) }) {
				one.Refs = append(one.Refs, ref)
			}
		}
	}
	for id, other := range s.byID {
		kept := slices.DeleteFunc(slices.Clone(other.Refs), func(ref string) bool {
			return slices.ContainsFunc(one.Refs, func(name string) bool { return session.SameImage(name, ref) })
		})
		if id == one.ID || len(kept) == len(other.Refs) {
			continue
		}
		other.Refs = kept
		changed = append(changed, other)
	}
	s.mu.Unlock()
	if err := engine.ReplaceFile(s.config(one.ID), data); err != nil {
		return s.failure(err)
	}
	unnamed := map[string]bool{}
	for _, other := range append(changed, one) {
		if len(other.Refs) == 0 && len(s.users(other.ID)) == 0 {
			unnamed[other.ID] = true
			continue
		}
		if err := s.write(other); err != nil {
			return err
		}
	}
	s.mu.Lock()
	for _, other := range append(changed, one) {
		if s.byID[other.ID] = other; unnamed[other.ID] {
			delete(s.byID, other.ID)
		}
	}
	s.mu.Unlock()
	return s.sweep()
}

func (s *Store) write(one record) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := engine.ReplaceFile(filepath.Join(s.records(), fileOf(one.ID)+".json"), data); err != nil {
		return s.failure(err)
	}
	return nil
}
