package enginetest

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// commitOf is what a commit of the suite is asked for, under a name of its own.
// The image goes with the case.
func (s *suite) commitOf() engine.Commit {
	name := "Test_" + rand.Text()[:8]
	c := engine.Commit{Ref: "slipway-test/commit:" + name, Origin: session.ImageOrigin{
		Name: name, Owner: "tester", Instance: s.Instance, Session: "abcdefghijkl", SessionName: "work", Base: s.Image,
	}}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		if err := s.engine.RemoveImage(ctx, c.Ref); err != nil && session.CodeOf(err) != session.CodeNoImage {
			s.Errorf("removing the image that the case made: %v", err)
		}
	})
	return c
}

func caseCommit(s *suite) {
	id := s.start("")
	base, err := s.engine.Image(s.ctx, s.Image)
	if err != nil {
		s.Fatal(err)
	}
	if changed, err := s.engine.Changed(s.ctx, id); err != nil || changed < 0 {
		s.Errorf("the container changed %s: %v", changed, err)
	}
	c := s.commitOf()
	made, err := s.engine.Commit(s.ctx, id, c)
	if err != nil {
		s.Fatal(err)
	}
	if made.Origin == nil || *made.Origin != c.Origin || !slices.Contains(made.Refs, c.Ref) || made.Arch != base.Arch ||
		made.Size < base.Size {
		s.Errorf("made %+v of %+v", made, base)
	}
	if state := s.inspect(id); !state.Running {
		s.Errorf("the container does not run any more: %+v", state)
	}
	_, err = s.engine.Commit(s.ctx, id, c)
	s.wantCode(err, session.CodeImageExists)
	s.begins(c.Ref)

	if err := s.engine.Stop(s.ctx, id, 0); err != nil {
		s.Fatal(err)
	}
	if _, err := s.engine.Commit(s.ctx, id, s.commitOf()); err != nil {
		s.Errorf("a container that has ended is not committed: %v", err)
	}
	_, err = s.engine.Commit(s.ctx, "nonexistent", s.commitOf())
	s.wantCode(err, session.CodeNoContainer)

	if err := s.engine.RemoveImage(s.ctx, c.Ref); err != nil {
		s.Fatal(err)
	}
	_, err = s.engine.Image(s.ctx, c.Ref)
	s.wantCode(err, session.CodeNoImage)
	s.wantCode(s.engine.RemoveImage(s.ctx, c.Ref), session.CodeNoImage)
}

// begins starts a container of an image and removes it. Nothing of the container
// that the image was made of is left in its labels.
func (s *suite) begins(ref string) {
	s.Helper()
	c := s.container(s.Commands.Exit)
	c.Image = ref
	id := s.create(c)
	if err := s.engine.Start(s.ctx, id); err != nil {
		s.Fatalf("a container of the image does not start: %v", err)
	}
	state := s.inspect(id)
	for name, value := range c.Labels {
		if state.Labels[name] != value {
			s.Errorf("its label %s is %q and should be %q", name, state.Labels[name], value)
		}
	}
	disk, err := s.engine.DiskUse(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	at := slices.IndexFunc(disk.Images, func(r session.ImageRoom) bool { return slices.Contains(r.Refs, ref) })
	if at < 0 || disk.Images[at].Containers != 1 || disk.Images[at].Origin == nil || disk.Total <= 0 {
		s.Errorf("the disk holds %+v", disk)
	}
	s.wantCode(s.engine.RemoveImage(s.ctx, ref), session.CodeImageConflict)
	if err := s.engine.Remove(s.ctx, id); err != nil {
		s.Fatal(err)
	}
}

func caseCommitCancel(s *suite) {
	id := s.start("")
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	c := s.commitOf()
	_, err := s.engine.Commit(ctx, id, c)
	s.wantCancelled("Commit", err)
	_, err = s.engine.Image(s.ctx, c.Ref)
	s.wantCode(err, session.CodeNoImage)
	if !s.inspect(id).Running {
		s.Error("a commit that was given up touched the container")
	}
}

// caseRemoveUsed wants an image to keep every name while a container uses it.
func caseRemoveUsed(s *suite) {
	s.create(s.container(""))
	s.wantCode(s.engine.RemoveImage(s.ctx, s.Image), session.CodeImageConflict)
	image, err := s.engine.Image(s.ctx, s.Image)
	if err != nil || !slices.ContainsFunc(image.Refs,
		func(ref string) bool { return strings.HasSuffix(ref, s.Image) }) {
		s.Errorf("the image is %+v now: %v", image, err)
	}
}
