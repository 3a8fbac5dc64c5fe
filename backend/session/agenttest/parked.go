package agenttest

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"slipway/backend/session"
)

// caseParked ends sessions so that they can be continued, first one whose home is not a folder, then the one that
// continues it.
func caseParked(s *suite) {
	spec := session.Spec{Name: "park-" + strings.ToLower(rand.Text()[:8])}
	batch := s.launch(session.Spec{Type: session.Batch, Command: "sleep 600"})
	s.awaitStatus(batch.ID, session.Running)
	refused(s, "a batch session", session.CodeSessionConflict, with(s.agent.Park, batch.ID))
	s.terminate(batch.ID, true)
	first := s.launch(spec)
	s.awaitStatus(first.ID, session.Running)
	s.store(session.Place{Session: first.ID}, "notes", "first")
	home := s.parked(first.ID)

	if got := s.content(session.Place{Folder: home}, session.ReadRequest{Path: "notes"}); string(got) != "first" {
		s.Errorf("the home that is kept holds %q", got)
	}
	if f := must(s, with(s.agent.GetFolder, home)); f.Home != nil || f.Name != spec.Name {
		s.Errorf("the home is the folder %+v", f)
	}
	again := s.continued(first.ID)
	s.store(session.Place{Session: again.ID}, "more", "second")
	if got := s.parked(again.ID); got != home {
		s.Errorf("parked again its home is %s, not %s", got, home)
	}
	third := s.continued(again.ID)
	for name, content := range map[session.FilePath]string{"notes": "first", "more": "second"} {
		if got := s.content(session.Place{Session: third.ID}, session.ReadRequest{Path: name}); string(got) != content {
			s.Errorf("%s of the continued session holds %q", name, got)
		}
	}
	s.terminate(third.ID, true)
	s.awaitEnd(third.ID)
	for _, image := range must(s, s.agent.ListImages) {
		if image.Origin != nil && image.Origin.SessionName == spec.Name {
			err := s.void(func(ctx context.Context) error { return s.agent.RemoveImage(ctx, image.ID) })
			if err != nil && session.CodeOf(err) != session.CodeNoImage &&
				session.CodeOf(err) != session.CodeImageConflict { // it is below the next one
				s.Error(err)
			}
		}
	}
	must(s, with(s.agent.TrashFolder, home))
	s.do(func(ctx context.Context) error { return s.agent.DeleteFolder(ctx, home) })
}

// parked parks a session and returns its home.
func (s *suite) parked(id session.ID) session.FolderID {
	s.Helper()
	must(s, with(s.agent.Park, id))
	ended := s.awaitEnd(id)
	if again := must(s, with(s.agent.Park, id)); again.Status != ended.Status {
		s.Errorf("parked once more it is %s", again.Status)
	}
	if ended.Status != session.Terminated || ended.Reason != session.ReasonUser || !ended.Continuable() {
		s.Fatalf("it ended as %s (%s) with %+v, %+v", ended.Status, ended.Reason, ended.EndImage, ended.Error)
	}
	return ended.HomeFolder().Folder
}

func (s *suite) continued(id session.ID) session.Session {
	s.Helper()
	before := must(s, with(s.agent.Get, id))
	next := s.launchAs(session.LaunchRequest{Spec: before.Continued(), From: id})
	next = s.awaitStatus(next.ID, session.Running)
	asked := slices.DeleteFunc(next.Folders, func(m session.FolderMount) bool { return m.Auto })
	if next.From != id || next.Held || next.Name != before.Name || len(asked) != 1 {
		s.Errorf("%s is continued as %+v", id, next)
	}
	return next
}
