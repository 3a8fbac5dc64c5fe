package agenttest

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"slipway/backend/session"
)

func caseImages(s *suite) {
	id := s.running()
	for _, image := range must(s, s.agent.ListImages) {
		for _, ref := range image.Refs {
			if strings.HasSuffix(ref, s.Image) {
				if !slices.ContainsFunc(image.UsedBy, func(u session.ImageUser) bool { return u.Session == id }) {
					s.Errorf("a session uses %s, and it is told of %+v", ref, image.UsedBy)
				}
				return
			}
		}
	}
	s.Errorf("%s is not among the images", s.Image)
}

// work waits until work on an image has ended.
func (s *suite) work(w session.ImageWork) session.ImageWork {
	s.Helper()
	for w.State == session.WorkRunning {
		w = must(s, with2(s.agent.AwaitImageWork, w.ID, w.Revision))
	}
	return w
}

// custom returns the customized image of a name.
func (s *suite) custom(name string) (session.Image, bool) {
	s.Helper()
	images := must(s, s.agent.ListImages)
	at := slices.IndexFunc(images, func(i session.Image) bool { return i.Origin != nil && i.Origin.Name == name })
	if at < 0 {
		return session.Image{}, false
	}
	return images[at], true
}

func caseCommit(s *suite) {
	id := s.running()
	commit := func(id session.ID, name string) func(context.Context) (session.ImageWork, error) {
		return with2(s.agent.CommitSession, id, session.CommitRequest{Name: name})
	}
	for _, name := range []string{"abc", "no blanks", strings.Repeat("x", 33)} {
		refused(s, "the name "+name, session.CodeImageInvalid, commit(id, name))
	}
	name := "Made-" + rand.Text()[:8]
	w, err := try(s, commit(id, name))
	switch code := session.CodeOf(err); {
	case err == nil:
		if w = s.work(w); w.State != session.WorkDone {
			s.Fatalf("the commit ended as %+v", w)
		}
	case !s.Mortal || code != session.CodeImageConflict && code != session.CodeImageExists:
		s.Fatal(err)
	default: // an earlier attempt that seemed lost was received
		for _, there := s.custom(name); !there && s.ctx.Err() == nil; _, there = s.custom(name) {
			s.pause()
		}
	}
	made, _ := s.custom(name)
	if made.Origin == nil || made.Origin.Session != id || !strings.HasSuffix(made.Origin.Base, s.Image) {
		s.Fatalf("made %+v", made)
	}
	refused(s, "a second image of that name", session.CodeImageExists, commit(id, name))
	again := s.launch(session.Spec{Image: made.Refs[0]})
	s.awaitStatus(again.ID, session.Running)
	remove := func() error {
		return s.void(func(ctx context.Context) error { return s.agent.RemoveImage(ctx, made.ID) })
	}
	want(s, "removing an image that a session uses", remove(), session.CodeImageConflict)
	disk := must(s, s.agent.ImageDisk)
	if !slices.ContainsFunc(disk.Images,
		func(r session.ImageRoom) bool { return r.ID == made.ID && len(r.UsedBy) == 1 }) {
		s.Errorf("the disk holds %+v", disk)
	}
	s.terminate(again.ID, true)
	s.awaitEnd(again.ID)
	if err := remove(); err != nil && (!s.Mortal || session.CodeOf(err) != session.CodeNoImage) {
		s.Error(err)
	}
	if _, there := s.custom(name); there {
		s.Error("the image is still there")
	}
	refused(s, "an image of a session that has ended", session.CodeImageConflict, commit(again.ID, name))
}

func caseCommitOnEnd(s *suite) {
	spec := session.Spec{Name: "ends-" + rand.Text()[:8], Lifetime: session.Lifetime{CommitOnEnd: 1}}
	var last session.Session
	for range 2 {
		last = s.launch(spec)
		s.awaitStatus(last.ID, session.Running)
		s.terminate(last.ID, false)
		last = s.awaitEnd(last.ID)
		if i := last.EndImage; last.Status != session.Terminated || i == nil || i.State != session.WorkDone || i.Kept ||
			i.Ref != session.CommitRef(last.Owner, i.Name) {
			s.Fatalf("it ended as %s with %+v", last.Status, last.EndImage)
		}
	}
	images := must(s, s.agent.ListImages)
	images = slices.DeleteFunc(images,
		func(i session.Image) bool { return i.Origin == nil || i.Origin.Series != spec.Name })
	if len(images) != 1 || images[0].Origin.Session != last.ID ||
		images[0].Origin.Name != session.SeriesName(spec.Name, 2) {
		s.Errorf("the series holds %+v", images)
	}
	for _, image := range images {
		err := s.void(func(ctx context.Context) error { return s.agent.RemoveImage(ctx, image.ID) })
		if err != nil && (!s.Mortal || session.CodeOf(err) != session.CodeNoImage) {
			s.Error(err)
		}
	}
}

func casePullImage(s *suite) {
	refused(s, "what is no name", session.CodeImageInvalid,
		with(s.agent.PullImage, session.PullRequest{Ref: "Not An Image"}))
	w := must(s, with(s.agent.PullImage, session.PullRequest{Ref: "localhost:1/nobody/has-this:1"}))
	if w = s.work(w); w.State != session.WorkFailed || w.Error == nil || w.Error.Code == "" || w.EndedAt == nil {
		s.Errorf("an image that nobody has is pulled as %+v", w)
	}
	if ended := must(s, with(s.agent.CancelImageWork, w.ID)); ended.State != session.WorkFailed {
		s.Errorf("cancelling what has ended makes it %+v", ended)
	}
	for _, call := range []func(context.Context) (session.ImageWork, error){
		with2(s.agent.AwaitImageWork, "nothing", 0),
		with(s.agent.CancelImageWork, "nothing"),
	} {
		refused(s, "work that there is not", session.CodeOperationNotFound, call)
	}
}
