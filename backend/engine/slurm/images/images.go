// Package images keeps images without a daemon, in a folder that the nodes of a cluster share. Each layer
// is stored once, as an uncompressed archive that is named by its digest. The nodes unpack them.
//
//	layers/<digest>.tar
//	images/<digest>.json     names and layers of an image
//	images/<digest>.config   its configuration, whose digest is the id of the image
package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Store is the images in one folder. It is safe for concurrent use, by one process at a time.
type Store struct {
	dir   string
	users func(id string) []string // the containers that use an image, by name
	turn  chan struct{}            // holds a token while layers are added or removed

	mu   sync.Mutex // guards byID
	byID map[string]record
}

// record is what is stored of an image.
type record struct {
	session.ImageParts
	Starts  Starts            `json:"starts"`
	Labels  map[string]string `json:"labels,omitempty"`
	Created time.Time         `json:"created,omitzero"`
}

// Starts is what an image sets for the program that it starts by itself.
type Starts struct {
	Argv []string         `json:"argv,omitempty"` // ENTRYPOINT and CMD
	Dir  string           `json:"dir,omitempty"`
	Env  []session.EnvVar `json:"env,omitempty"`
}

const (
	configMost = 8 << 20 // bytes of a configuration
	idPrefix   = "sha256:"
)

var idRule = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Open opens the images of a folder, and removes what an interrupted import left. users returns the names of the
// containers that use an image.
func Open(dir string, users func(id string) []string) (*Store, error) {
	s := &Store{dir: dir, users: users, turn: make(chan struct{}, 1), byID: map[string]record{}}
	for _, sub := range []string{s.Layers(), s.records()} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, s.failure(err)
		}
	}
	found, err := filepath.Glob(filepath.Join(s.records(), "*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range found {
		one, err := read(path)
		if err != nil {
			return nil, session.WrapError(err, session.CodeServerInvalid, "The file "+path+" is not readable.",
				"Remove it, and upload the image again.")
		}
		if len(one.Refs) > 0 || len(users(one.ID)) > 0 {
			s.byID[one.ID] = one
		}
	}
	return s, s.sweep()
}

func read(path string) (one record, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return one, err
	}
	if err := json.Unmarshal(data, &one); err != nil {
		return one, err
	}
	digests := []string{one.ID}
	for _, layer := range one.Layers {
		digests = append(digests, layer.Digest)
	}
	if !slices.ContainsFunc(digests, func(digest string) bool { return !idRule.MatchString(digest) }) &&
		filepath.Base(path) == fileOf(one.ID)+".json" {
		return one, nil
	}
	return one, errors.New("it describes another image")
}

// Layers is the folder with the layers of all images.
func (s *Store) Layers() string { return filepath.Join(s.dir, "layers") }

func (s *Store) records() string { return filepath.Join(s.dir, "images") }

func fileOf(digest string) string { return strings.TrimPrefix(digest, idPrefix) }

func (s *Store) layer(digest string) string { return filepath.Join(s.Layers(), fileOf(digest)+".tar") }

func (s *Store) config(id string) string { return filepath.Join(s.records(), fileOf(id)+".config") }

// sweep removes the layers that no image has, and files that were not finished.
func (s *Store) sweep() error {
	used := map[string]bool{}
	for _, one := range s.byID {
		for _, layer := range one.Layers {
			used[s.layer(layer.Digest)] = true
		}
		used[s.config(one.ID)], used[filepath.Join(s.records(), fileOf(one.ID)+".json")] = true, true
	}
	for _, dir := range []string{s.Layers(), s.records()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return s.failure(err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if used[path] {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return s.failure(err)
			}
		}
	}
	return nil
}

// resolve finds an image by a name, an id, or a name with a digest. The caller holds mu.
func (s *Store) resolve(ref string) (record, bool) {
	if one, ok := s.byID[ref]; ok {
		return one, true
	}
	if digest := session.ImageDigest(ref); digest != "" {
		one, ok := s.byID[digest]
		return one, ok
	}
	for _, one := range s.byID {
		if slices.ContainsFunc(one.Refs, func(name string) bool { return session.SameImage(name, ref) }) {
			return one, true
		}
	}
	return record{}, false
}

func (s *Store) find(ctx context.Context, ref string) (record, error) {
	if err := ended(ctx); err != nil {
		return record{}, err
	}
	if session.IsEmptyImage(ref) {
		return record{ImageParts: session.ImageParts{ID: emptyID, Refs: []string{session.EmptyImage}, OS: "linux"}}, nil
	}
	if !session.ValidImage(ref) {
		return record{}, session.NewError(session.CodeEngineInvalid,
			fmt.Sprintf("%q is not the name of an image.", ref), "Write it with its tag, for example python:3.12.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.resolve(ref)
	if !ok {
		return record{}, session.NewError(session.CodeNoImage, "The image "+ref+" is not on this cluster.", uploadHint)
	}
	return one, nil
}

const uploadHint = "Pull it, or send it from a machine that has it: slipway image send."

// emptyID is the id of the image without files, which is not stored.
var emptyID = idPrefix + strings.Repeat("0", 64)

func (r record) image() session.Image {
	image := session.Image{ID: r.ID, Refs: slices.Clone(r.Refs), Arch: r.Arch, CreatedAt: r.Created,
		Labels: maps.Clone(r.Labels), Origin: session.OriginOf(r.Labels)}
	for _, layer := range r.Layers {
		image.Size += layer.Size
	}
	return image
}

// Images implements [engine.ImageStore], as the methods below do.
func (s *Store) Images(ctx context.Context) ([]session.Image, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	images := []session.Image{}
	for _, one := range s.all() {
		if len(one.Refs) > 0 {
			images = append(images, one.image())
		}
	}
	return images, nil
}

// all returns what is stored of each image, in the order of their names.
func (s *Store) all() []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.byID), func(a, b record) int {
		return slices.Compare(append(slices.Clone(a.Refs), a.ID), append(slices.Clone(b.Refs), b.ID))
	})
}

func (s *Store) Image(ctx context.Context, ref string) (session.Image, error) {
	one, err := s.find(ctx, ref)
	if err != nil {
		return session.Image{}, err
	}
	return one.image(), nil
}

// Content returns the layers of an image, lowest first, and what it sets for what it starts; engine_image_not-found.
func (s *Store) Content(ctx context.Context, ref string) (id string, layers []string, starts Starts, err error) {
	one, err := s.find(ctx, ref)
	if err != nil {
		return "", nil, Starts{}, err
	}
	for _, layer := range one.Layers {
		layers = append(layers, layer.Digest)
	}
	return one.ID, layers, one.Starts, nil
}

// RemoveImage also removes the layers that no other image has.
func (s *Store) RemoveImage(ctx context.Context, ref string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	one, err := s.find(ctx, ref)
	if err != nil {
		return err
	}
	if users := s.users(one.ID); len(users) > 0 {
		return session.NewError(session.CodeImageConflict,
			fmt.Sprintf("The image %s is used by the container %s.", ref, users[0]), "End that session first.")
	}
	s.mu.Lock()
	delete(s.byID, one.ID)
	s.mu.Unlock()
	return s.sweep()
}

// begin takes the turn to change which layers there are.
func (s *Store) begin(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func (s *Store) end() { <-s.turn }

// DiskUse counts layers that several images have once.
func (s *Store) DiskUse(ctx context.Context) (disk session.ImageDisk, err error) {
	if err := ended(ctx); err != nil {
		return disk, err
	}
	all, count := s.all(), map[string]int{}
	for _, one := range all {
		for digest, size := range one.sizes() {
			if count[digest]++; count[digest] == 1 {
				disk.Total += size
			}
		}
	}
	for _, one := range all {
		room := session.ImageRoom{Image: one.image(), Containers: len(s.users(one.ID))}
		for digest, size := range one.sizes() {
			if count[digest] == 1 {
				room.Alone += size
			}
		}
		disk.Images = append(disk.Images, room)
	}
	return disk, nil
}

// sizes are the sizes of the layers by digest, each once.
func (r record) sizes() map[string]gpu.Bytes {
	sizes := map[string]gpu.Bytes{}
	for _, layer := range r.Layers {
		sizes[layer.Digest] = layer.Size
	}
	return sizes
}

// failure is the error of a file of the store that cannot be read or written.
func (s *Store) failure(err error) error {
	return session.WrapError(err, session.CodeDiskFull, "The images in "+s.dir+" cannot be read or written.",
		"Check that your home has free space and that its quota is not used up.")
}

// ended fails if ctx has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return session.WrapError(errors.Join(ctx.Err(), context.Cause(ctx)), session.CodeEngineTimeout,
		"The call was cancelled.", "")
}

// ExportImage calls fn for the configuration first, then for each layer once.
func (s *Store) ExportImage(ctx context.Context, id string, want func(part string) bool,
	fn func(part string, content io.Reader) error) error {
	one, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	if want(session.ImageConfig) {
		config, err := os.ReadFile(s.config(one.ID))
		if err != nil {
			return s.failure(err)
		}
		if err := fn(session.ImageConfig, bytes.NewReader(config)); err != nil {
			return err
		}
	}
	for digest := range one.sizes() {
		if !want(digest) {
			continue
		}
		if err := ended(ctx); err != nil {
			return err
		}
		if err := s.export(digest, fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) export(digest string, fn func(part string, content io.Reader) error) error {
	file, err := os.Open(s.layer(digest))
	if err != nil {
		return s.failure(err)
	}
	defer file.Close() //nolint:errcheck // only read
	return fn(digest, file)
}

func (s *Store) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	one, err := s.find(ctx, ref)
	parts := one.ImageParts
	parts.Refs, parts.Layers = slices.Clone(parts.Refs), slices.Clone(parts.Layers)
	return parts, err
}

// PresentLayers counts the first layers whose files are here, whichever image has them.
func (s *Store) PresentLayers(ctx context.Context, layers []session.ImageLayer) (present int, err error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	for _, layer := range layers {
		if !idRule.MatchString(layer.Digest) {
			break
		}
		if _, err := os.Stat(s.layer(layer.Digest)); err != nil {
			break
		}
		present++
	}
	return present, nil
}
