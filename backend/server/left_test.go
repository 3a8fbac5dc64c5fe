package server_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// leaves begins a request and returns how to leave it, and a channel that is
// closed when it has ended for whoever asked.
func (w *world) leaves(t *testing.T, method, path string) (leave func(), left <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		response, err := http.DefaultClient.Do(w.request(t, method, path, "").WithContext(ctx))
		if err == nil {
			response.Body.Close()
			t.Errorf("%s %s is answered %s to somebody who has left", method, path, response.Status)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return cancel, ended
}

func TestTheProbesEndWithTheRequest(t *testing.T) {
	w := start(t)
	begun, ended := make(chan struct{}), make(chan error, 1)
	w.agent.Probe = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	leave, left := w.leaves(t, "GET", "/api/v1/doctor")
	<-begun
	leave()
	<-left
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// heldFolders are folders of an agent that is slow to begin to delete one.
type heldFolders struct {
	session.Folders
	session.FolderTrash
	goOn    chan struct{}
	stopped chan session.FolderID

	mu    sync.Mutex      // guards asked
	asked context.Context //nolint:containedctx // of the request, to see that it has ended
}

func (h *heldFolders) GetFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	h.mu.Lock()
	if h.asked == nil {
		h.asked = ctx // whoever looks for a folder whose agent is known asks that agent first
	}
	h.mu.Unlock()
	f, err := h.Folders.GetFolder(ctx, id)
	f.State = session.FolderDeleting
	return f, err
}

func (h *heldFolders) DeleteFolder(context.Context, session.FolderID) error {
	h.mu.Lock()
	asked := h.asked
	h.mu.Unlock()
	h.goOn <- struct{}{}
	<-asked.Done() // the server knows that nobody is there
	return nil
}

func (h *heldFolders) StopDeleting(ctx context.Context, id session.FolderID) (session.Folder, error) {
	h.stopped <- id
	return h.FolderTrash.StopDeleting(ctx, id)
}

func TestWhatNobodyLearnsOfIsCancelled(t *testing.T) {
	w := start(t)
	f, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	w.call(t, "GET", "/api/v1/folders/"+string(f.ID), "", nil) // its agent is known from now on
	held := &heldFolders{Folders: w.agent.Folders, FolderTrash: w.agent.FolderTrash, goOn: make(chan struct{}),
		stopped: make(chan session.FolderID, 1)}
	w.agent.Folders, w.agent.FolderTrash = held, held
	leave, left := w.leaves(t, "DELETE", "/api/v1/folders/"+string(f.ID))
	<-held.goOn
	leave()
	<-left
	select {
	case id := <-held.stopped:
		if id != f.ID {
			t.Errorf("stopped is %s", id)
		}
	case <-time.After(patience):
		t.Fatal("it was not stopped")
	}
	var all []api.Operation
	for len(all) != 1 || all[0].EndedAt == nil {
		all = nil
		w.call(t, "GET", "/api/v1/operations", "", &all)
	}
	if all[0].State != "cancelled" {
		t.Errorf("it is %+v", all[0])
	}
}
