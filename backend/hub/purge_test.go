package hub_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// slowFolders are folders whose deleting takes as long as a test wishes.
type slowFolders struct {
	session.Folders
	session.FolderTrash

	mu   sync.Mutex // guards what follows
	one  session.Folder
	down bool // it answers nobody
	gone bool
}

// slowly gives an agent one folder in the trash that is deleted slowly.
func slowly(t *testing.T, a *hubtest.Agent) *slowFolders {
	t.Helper()
	one, err := a.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	one.State = session.FolderTrashed
	slow := &slowFolders{Folders: a.Folders, FolderTrash: a.FolderTrash, one: one}
	a.Folders, a.FolderTrash = slow, slow
	return slow
}

func (s *slowFolders) change(with func()) (session.Folder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down:
		return session.Folder{}, &session.Error{Code: "agent_call_unavailable", Message: "The agent is not reached.",
			Hint: "Wait."}
	case s.gone:
		return session.Folder{}, session.NoFolder(string(s.one.ID))
	}
	with()
	return s.one, nil
}

func (s *slowFolders) turn(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *slowFolders) GetFolder(context.Context, session.FolderID) (session.Folder, error) {
	return s.change(func() {})
}

func (s *slowFolders) ListFolders(context.Context, session.FolderFilter) ([]session.Folder, error) {
	one, err := s.change(func() {})
	return []session.Folder{one}, err
}

func (s *slowFolders) DeleteFolder(context.Context, session.FolderID) error {
	_, err := s.change(func() { s.one.State = session.FolderDeleting })
	return err
}

func (s *slowFolders) StopDeleting(context.Context, session.FolderID) (session.Folder, error) {
	return s.change(func() { s.one.State = session.FolderTrashed })
}

// remove has so much of the folder gone.
func (s *slowFolders) remove(r session.FolderRemoval) {
	_, _ = s.change(func() { s.one.Removed = &r })
}

func TestAPurgeIsFollowedCancelledAndFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local", "lab")
		w.run(t)
		slow := slowly(t, w.agents[1])
		purge := func() hub.Operation {
			t.Helper()
			begun, err := w.PurgeFolder(t.Context(), string(slow.one.ID), "lab")
			if err != nil || begun.Kind != hub.FolderPurge || begun.Subject != "data @ lab" {
				t.Fatalf("%+v, %v", begun, err)
			}
			return begun
		}
		begun := purge()
		slow.remove(session.FolderRemoval{Files: 2, Bytes: 3 * gpu.MiB, OfFiles: 9, OfBytes: 8 * gpu.MiB})
		o := w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Progress != nil })
		if o.Agent != "lab" || o.Steps[0].Detail != "2 of 9 files" || o.Progress.Done != 3<<20 ||
			o.Progress.Total != 8<<20 {
			t.Errorf("it is told as %+v, %+v", o, o.Progress)
		}
		if _, err := w.PurgeFolder(t.Context(), string(slow.one.ID),
			"lab"); session.CodeOf(err) != "operation_answer_conflict" {
			t.Errorf("twice at a time: %v", err)
		}
		slow.turn(true)
		w.operation(t, begun.ID, func(o hub.Operation) bool { return strings.Contains(o.Steps[0].Detail, "continues") })
		slow.turn(false)
		w.operation(t, begun.ID, func(o hub.Operation) bool { return o.Steps[0].Detail == "2 of 9 files" })
		if _, err := w.CancelOperation(begun.ID); err != nil {
			t.Fatal(err)
		}
		if o := w.operation(t, begun.ID, ended); o.State != hub.OperationCancelled ||
			o.Steps[0].Detail != "Deleted are 2 of 9 files; the rest is in the trash." ||
			slow.one.State != session.FolderTrashed {
			t.Errorf("cancelled it is %+v of %+v", o, slow.one)
		}

		begun = purge()
		if _, err := slow.StopDeleting(t.Context(), ""); err != nil { // at the folder
			t.Fatal(err)
		}
		if o := w.operation(t, begun.ID, ended); o.State != hub.OperationCancelled || o.Error != nil {
			t.Errorf("stopped at the folder it is %+v", o)
		}

		begun = purge()
		_, _ = slow.change(func() { slow.one.Problem = "It cannot be changed." })
		if o := w.operation(t, begun.ID, ended); o.State != hub.OperationFailed ||
			o.Steps[0].Detail != "It cannot be changed." {
			t.Errorf("failed it is %+v", o)
		}
		_, _ = slow.change(func() { slow.one.Problem = "" })

		begun = purge()
		_, _ = slow.change(func() { slow.gone = true })
		if o := w.operation(t, begun.ID, ended); o.State != hub.OperationDone {
			t.Errorf("done it is %+v", o)
		}
		if _, err := w.PurgeFolder(t.Context(), string(slow.one.ID),
			"lab"); session.CodeOf(err) != "folder_read_not-found" {
			t.Errorf("what is gone: %v", err)
		}
	})
}

func TestACancelledPurgeSaysWhereItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		slow := slowly(t, w.agents[0])
		begun, err := w.PurgeFolder(t.Context(), string(slow.one.ID), "")
		if err != nil {
			t.Fatal(err)
		}
		slow.turn(true)
		if _, err := w.CancelOperation(begun.ID); err != nil {
			t.Fatal(err)
		}
		if o := w.operation(t, begun.ID, ended); o.State != hub.OperationCancelled ||
			o.Steps[0].State != hub.StepWarning || !strings.Contains(o.Steps[0].Detail, "continues there") {
			t.Errorf("cancelled while nobody answers it is %+v", o)
		}
	})
}

func TestAPurgeOutlivesSlipway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		ctx, shutDown := context.WithCancel(t.Context())
		down := make(chan struct{})
		go func() { defer close(down); w.Run(ctx) }()
		slow := slowly(t, w.agents[0])
		if _, err := w.PurgeFolder(t.Context(), string(slow.one.ID), ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		shutDown()
		<-down
		if slow.one.State != session.FolderDeleting {
			t.Errorf("the folder is %s after a shutdown", slow.one.State)
		}
	})
}
