package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

var imageCases = []engineCase{
	{"a container is committed, running or not, and the image removed", func(s *suite) {
		id := s.start("")
		base, err := s.engine.Image(s.ctx, s.Image)
		s.ok(err)
		if changed, err := s.engine.Changed(s.ctx, id); err != nil || changed < 0 {
			s.Errorf("the container changed %s: %v", changed, err)
		}
		c := s.commitOf()
		made, err := s.engine.Commit(s.ctx, id, c)
		s.ok(err)
		if made.Origin == nil || *made.Origin != c.Origin || !slices.Contains(made.Refs, c.Ref) ||
			made.Arch != base.Arch || made.Size < base.Size {
			s.Errorf("made %+v of %+v", made, base)
		}
		if state := s.inspect(id); !state.Running {
			s.Errorf("the container does not run any more: %+v", state)
		}
		s.wantCode(failure(s.engine.Commit(s.ctx, id, c)), session.CodeImageExists)
		s.begins(c.Ref)

		s.ok(s.engine.Stop(s.ctx, id, 0))
		if _, err := s.engine.Commit(s.ctx, id, s.commitOf()); err != nil {
			s.Errorf("a container that has ended is not committed: %v", err)
		}
		s.wantCode(failure(s.engine.Commit(s.ctx, "nonexistent", s.commitOf())), session.CodeNoContainer)

		s.ok(s.engine.RemoveImage(s.ctx, c.Ref))
		s.wantCode(failure(s.engine.Image(s.ctx, c.Ref)), session.CodeNoImage)
		s.wantCode(s.engine.RemoveImage(s.ctx, c.Ref), session.CodeNoImage)
	}},
	{"a commit that is given up leaves no image", func(s *suite) {
		id := s.start("")
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		c := s.commitOf()
		s.wantCancelled("Commit", failure(s.engine.Commit(ctx, id, c)))
		s.wantCode(failure(s.engine.Image(s.ctx, c.Ref)), session.CodeNoImage)
		if !s.inspect(id).Running {
			s.Error("a commit that was given up touched the container")
		}
	}},
	{"an image is built, with its steps", func(s *suite) {
		name := rand.Text()[:8]
		hush := rand.Text()
		b := engine.Build{Ref: "slipway-test/build:" + name, Dockerfile: "Dockerfile.slipway",
			Labels:  map[string]string{"slipway.image.project": name},
			Secrets: []session.EnvVar{{Name: "TOKEN", Value: hush}},
			Context: func(_ context.Context, to io.Writer) error {
				return Archive(to, "Dockerfile.slipway", "FROM "+s.Image+"\nCOPY hello /\nRUN cat /hello\n"+
					"RUN --mount=type=secret,id=TOKEN,required=true test -s /run/secrets/TOKEN\n", "hello", name)
			}}
		s.atEnd("the image that the case built",
			func(ctx context.Context) error { return s.engine.RemoveImage(ctx, b.Ref) })
		var last session.Build
		made, err := s.engine.Build(s.ctx, b, func(now session.Build) { last = now })
		s.ok(err)
		if !slices.Contains(made.Refs, b.Ref) || made.Labels["slipway.image.project"] != name {
			s.Errorf("made %+v", made)
		}
		if len(last.Steps) < 2 || slices.ContainsFunc(last.Steps,
			func(step session.BuildStep) bool { return step.State != session.WorkDone }) {
			s.Errorf("its last progress is %+v", last)
		}
		if all := fmt.Sprintf("%+v %+v", made, last); strings.Contains(all, hush) {
			s.Errorf("the value of a secret is in %s", all)
		}
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		b.Ref += "-given-up"
		s.wantCancelled("Build", failure(s.engine.Build(ctx, b, func(session.Build) {})))
		s.wantCode(failure(s.engine.Image(s.ctx, b.Ref)), session.CodeNoImage)
	}},
	// It keeps all its names, too.
	{"an image that a container uses is not removed", func(s *suite) {
		s.create(s.container(""))
		s.wantCode(s.engine.RemoveImage(s.ctx, s.Image), session.CodeImageConflict)
		image, err := s.engine.Image(s.ctx, s.Image)
		if err != nil || !slices.ContainsFunc(image.Refs,
			func(ref string) bool { return strings.HasSuffix(ref, s.Image) }) {
			s.Errorf("the image is %+v now: %v", image, err)
		}
	}},
	{"an image is given away and put together again", func(s *suite) {
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
		s.wantCode(failure(s.engine.ImportImage(s.ctx, parts, content)), session.CodeImageInvalid)
	}},
	{"giving an image away ends when told to", func(s *suite) {
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
		s.wantCode(failure(s.engine.DescribeImage(s.ctx, noImage)), session.CodeNoImage)
	}},
}

// commitOf describes a commit with a unique name. The image is removed at the end of the case.
func (s *suite) commitOf() engine.Commit {
	name := "Test_" + rand.Text()[:8]
	c := engine.Commit{Ref: "slipway-test/commit:" + name, Origin: session.ImageOrigin{
		Name: name, Owner: "tester", Instance: s.Instance, Session: "abcdefghijkl", SessionName: "work", Base: s.Image,
	}}
	s.atEnd("the image that the case made", func(ctx context.Context) error { return s.engine.RemoveImage(ctx, c.Ref) })
	return c
}

// begins starts a container of an image and removes it. The labels of the committed container must not show.
func (s *suite) begins(ref string) {
	s.Helper()
	c := s.container(commandExit)
	c.Image = ref
	id := s.run(c)
	state := s.inspect(id)
	for name, value := range c.Labels {
		if state.Labels[name] != value {
			s.Errorf("its label %s is %q and should be %q", name, state.Labels[name], value)
		}
	}
	disk, err := s.engine.DiskUse(s.ctx)
	s.ok(err)
	at := slices.IndexFunc(disk.Images, func(r session.ImageRoom) bool { return slices.Contains(r.Refs, ref) })
	if at < 0 || disk.Images[at].Containers != 1 || disk.Images[at].Origin == nil || disk.Total <= 0 {
		s.Errorf("the disk holds %+v", disk)
	}
	s.wantCode(s.engine.RemoveImage(s.ctx, ref), session.CodeImageConflict)
	s.ok(s.engine.Remove(s.ctx, id))
}

// Archive writes files as a tar archive: pairs of a name and a content.
func Archive(to io.Writer, files ...string) error {
	w := tar.NewWriter(to)
	for i := 0; i < len(files); i += 2 {
		header := tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			return err
		}
	}
	return w.Close()
}
