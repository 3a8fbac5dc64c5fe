package images

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// made is an image for tests.
type made struct {
	parts   session.ImageParts
	content map[string]engine.Content
}

// imageOf makes an image with a layer for each text.
func imageOf(t *testing.T, ref string, texts ...string) made {
	t.Helper()
	m := made{content: map[string]engine.Content{}}
	var digests []string
	for _, text := range texts {
		var layer bytes.Buffer
		w := tar.NewWriter(&layer)
		if err := w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		digest := digestOf(layer.Bytes())
		digests = append(digests, digest)
		m.parts.Layers = append(m.parts.Layers, session.ImageLayer{Digest: digest, Size: 1})
		m.content[digest] = contentOf(layer.Bytes())
	}
	config, err := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux",
		"created": "2026-01-15T09:00:00Z", "rootfs": map[string]any{"type": "layers", "diff_ids": digests},
		"config": map[string]any{"Env": []string{"PATH=/bin", "bad"}, "Entrypoint": []string{"/serve"},
			"Cmd": []string{"--port", "1"}, "WorkingDir": "/srv", "Labels": map[string]string{"colour": "blue"}}})
	if err != nil {
		t.Fatal(err)
	}
	m.parts.ID, m.parts.Refs, m.parts.Arch, m.parts.OS = digestOf(config), []string{ref}, "amd64", "linux"
	m.content[session.ImageConfig] = contentOf(config)
	return m
}

func digestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func contentOf(data []byte) engine.Content {
	return engine.Content{Size: gpu.Bytes(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

func open(t *testing.T, dir string, users ...string) *Store {
	t.Helper()
	s, err := Open(dir, func(string) []string { return users })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (m made) into(t *testing.T, s *Store) session.Image {
	t.Helper()
	image, err := s.ImportImage(t.Context(), m.parts, m.content)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// files lists what lies in a store.
func files(t *testing.T, s *Store) (names []string) {
	t.Helper()
	for _, sub := range []string{"layers", "images"} {
		entries, err := os.ReadDir(filepath.Join(s.dir, sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestAnImageIsThereAfterARestart(t *testing.T) {
	dir := t.TempDir()
	m := imageOf(t, "work:1", "base", "work")
	image := m.into(t, open(t, dir))
	if image.ID != m.parts.ID || image.Arch != "amd64" || image.CreatedAt.Year() != 2026 ||
		image.Labels["colour"] != "blue" || image.Size <= 2 {
		t.Errorf("it is %+v", image)
	}
	s := open(t, dir)
	for _, ref := range []string{"work:1", "docker.io/library/work:1", image.ID, "work:1@" + image.ID} {
		if found, err := s.Image(t.Context(), ref); err != nil || found.ID != image.ID {
			t.Errorf("%s is %+v, %v", ref, found, err)
		}
	}
	if _, err := s.Image(t.Context(), "work:2"); session.CodeOf(err) != session.CodeNoImage {
		t.Errorf("another tag: %v", err)
	}
	id, layers, starts, err := s.Content(t.Context(), "work:1")
	if err != nil || id != image.ID || len(layers) != 2 || layers[0] != m.parts.Layers[0].Digest ||
		!slices.Equal(starts.Argv, []string{"/serve", "--port", "1"}) || starts.Dir != "/srv" ||
		!slices.Equal(starts.Env, []session.EnvVar{{Name: "PATH", Value: "/bin"}}) {
		t.Errorf("it has %q and starts %+v, %v", layers, starts, err)
	}
}

func TestLayersAreSharedAndGoWithTheLastImage(t *testing.T) {
	s := open(t, t.TempDir())
	imageOf(t, "base:1", "base").into(t, s)
	second := imageOf(t, "work:1", "base", "work")
	if present, err := s.PresentLayers(t.Context(), second.parts.Layers); err != nil || present != 1 {
		t.Fatalf("%d layers are present, %v", present, err)
	}
	delete(second.content, second.parts.Layers[0].Digest) // it is here
	second.into(t, s)
	disk, err := s.DiskUse(t.Context())
	if err != nil || len(disk.Images) != 2 || disk.Images[0].Alone != 0 || disk.Images[1].Alone <= 0 ||
		disk.Total != disk.Images[1].Size {
		t.Errorf("the disk holds %+v, %v", disk, err)
	}
	if err := s.RemoveImage(t.Context(), "base:1"); err != nil {
		t.Fatal(err)
	}
	if left := files(t, s); len(left) != 4 {
		t.Errorf("after the first there are %q", left)
	}
	if err := s.RemoveImage(t.Context(), "work:1"); err != nil {
		t.Fatal(err)
	}
	if left := files(t, s); len(left) != 0 {
		t.Errorf("after the last there are %q", left)
	}
}

func TestAnImageInUseStays(t *testing.T) {
	s := open(t, t.TempDir(), "slipway-abcdefghijkl-main1-1")
	imageOf(t, "work:1", "base").into(t, s)
	if err := s.RemoveImage(t.Context(), "work:1"); session.CodeOf(err) != session.CodeImageConflict {
		t.Errorf("it is removed: %v", err)
	}
}

func TestANameMovesOnlyWhenAsked(t *testing.T) {
	s := open(t, t.TempDir())
	first := imageOf(t, "work:1", "one").into(t, s)
	other := imageOf(t, "work:1", "two")
	if _, err := s.ImportImage(t.Context(), other.parts, other.content); session.CodeOf(
		err) != session.CodeImageConflict {
		t.Errorf("it took the name: %v", err)
	}
	other.parts.Replace = true
	second := other.into(t, s)
	if found, err := s.Image(t.Context(), "work:1"); err != nil || found.ID != second.ID {
		t.Errorf("the name has %+v, %v", found, err)
	}
	if _, err := s.Image(t.Context(), first.ID); session.CodeOf(err) != session.CodeNoImage {
		t.Errorf("an image without a name stays: %v", err)
	}
	if left := files(t, s); len(left) != 3 {
		t.Errorf("there are %q", left)
	}
}

func TestWhatIsNotWhatItSaysIsNotStored(t *testing.T) {
	for name, spoil := range map[string]func(*made){
		"another layer":            func(m *made) { m.content[m.parts.Layers[0].Digest] = contentOf([]byte("other")) },
		"a missing layer":          func(m *made) { delete(m.content, m.parts.Layers[1].Digest) },
		"no configuration":         func(m *made) { delete(m.content, session.ImageConfig) },
		"another configuration":    func(m *made) { m.content[session.ImageConfig] = contentOf([]byte(`{}`)) },
		"no name":                  func(m *made) { m.parts.Refs = nil },
		"a path as a digest":       func(m *made) { m.parts.Layers[0].Digest = "sha256:../../etc/passwd" },
		"a configuration of 9 MiB": func(m *made) { m.content[session.ImageConfig] = contentOf(make([]byte, 9<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir())
			m := imageOf(t, "work:1", "base", "work")
			spoil(&m)
			if _, err := s.ImportImage(t.Context(), m.parts, m.content); session.CodeOf(
				err) != session.CodeImageInvalid {
				t.Errorf("got %v", err)
			}
			if left := files(t, s); len(left) != 0 {
				t.Errorf("it left %q", left)
			}
		})
	}
}

func TestAnImportThatIsCutLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	m := imageOf(t, "work:1", "base", "work")
	ctx, cancel := context.WithCancel(t.Context())
	cut := m.content[m.parts.Layers[1].Digest]
	m.content[m.parts.Layers[1].Digest] = engine.Content{Size: cut.Size, Open: func() (io.ReadCloser, error) {
		cancel()
		return cut.Open()
	}}
	if _, err := s.ImportImage(ctx, m.parts, m.content); ctx.Err() == nil || !strings.Contains(fmt.Sprint(err),
		"cancel") {
		t.Errorf("got %v", err)
	}
	if left := files(t, s); len(left) != 0 {
		t.Errorf("it left %q", left)
	}
	// A killed process leaves what it wrote.
	if err := os.WriteFile(s.layer(m.parts.Layers[0].Digest)+".X.new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if left := files(t, open(t, dir)); len(left) != 0 {
		t.Errorf("after a restart there are %q", left)
	}
}

func TestTheEmptyImageIsThereAndNotListed(t *testing.T) {
	s := open(t, t.TempDir())
	if _, layers, _, err := s.Content(t.Context(), session.EmptyImage); err != nil || len(layers) != 0 {
		t.Errorf("it has %q, %v", layers, err)
	}
	if images, err := s.Images(t.Context()); err != nil || len(images) != 0 {
		t.Errorf("listed are %+v, %v", images, err)
	}
}
