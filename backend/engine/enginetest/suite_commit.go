package enginetest

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// commitOf describes a commit with a unique name. The image is removed at the end of the case.
func (s *suite) commitOf() engine.Commit {
	name := "Test_" + rand.Text()[:8]
	c := engine.Commit{Ref: "slipway-test/commit:" + name, Origin: session.ImageOrigin{
		Name: name, Owner: "tester", Instance: s.Instance, Session: "abcdefghijkl", SessionName: "work", Base: s.Image,
	}}
	s.atEnd("the image that the case made", func(ctx context.Context) error { return s.engine.RemoveImage(ctx, c.Ref) })
	return c
}

func caseCommit(s *suite) {
	id := s.start("")
	base, err := s.engine.Image(s.ctx, s.Image)
	s.ok(err)
	if changed, err := s.engine.Changed(s.ctx, id); err != nil || changed < 0 {
		s.Errorf("the container changed %s: %v", changed, err)
	}
	c := s.commitOf()
	made, err := s.engine.Commit(s.ctx, id, c)
	s.ok(err)
	if made.Origin == nil || *made.Origin != c.Origin || !slices.Contains(made.Refs, c.Ref) || made.Arch != base.Arch ||
		made.Size < base.Size {
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

func caseCommitCancel(s *suite) {
	id := s.start("")
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	c := s.commitOf()
	s.wantCancelled("Commit", failure(s.engine.Commit(ctx, id, c)))
	s.wantCode(failure(s.engine.Image(s.ctx, c.Ref)), session.CodeNoImage)
	if !s.inspect(id).Running {
		s.Error("a commit that was given up touched the container")
	}
}

// caseRemoveUsed expects an image in use to keep all its names.
func caseRemoveUsed(s *suite) {
	s.create(s.container(""))
	s.wantCode(s.engine.RemoveImage(s.ctx, s.Image), session.CodeImageConflict)
	image, err := s.engine.Image(s.ctx, s.Image)
	if err != nil || !slices.ContainsFunc(image.Refs,
		func(ref string) bool { return strings.HasSuffix(ref, s.Image) }) {
		s.Errorf("the image is %+v now: %v", image, err)
	}
}
