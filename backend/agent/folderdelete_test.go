package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// trashed makes a folder in the trash with files of 100 bytes in it.
func (w *world) trashed(name string, files int) session.Folder {
	w.t.Helper()
	ctx := context.Background()
	f, err := w.agent.CreateFolder(ctx, session.FolderRequest{Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait() // it was counted while it was empty
	for i := range files {
		if err := os.WriteFile(filepath.Join(w.agent.folders.disk.Path(f), fmt.Sprint(i)), make([]byte, 100),
			0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.agent.TrashFolder(ctx, f.ID); err != nil {
		w.t.Fatal(err)
	}
	if err := w.agent.folders.count(ctx, f.ID); err != nil {
		w.t.Fatal(err)
	}
	return w.folder(f.ID)
}

func (w *world) folder(id session.FolderID) session.Folder {
	w.t.Helper()
	f, err := w.agent.GetFolder(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// holdRemoval has the deleting of folders wait, with every further file, until
// the test lets it go on.
func (w *world) holdRemoval() (goOn chan struct{}) {
	goOn = make(chan struct{})
	remove := w.agent.folders.disk.Remove
	w.agent.folders.remove = func(ctx context.Context, f session.Folder, gone func(int, gpu.Bytes)) error {
		return remove(ctx, f, func(files int, bytes gpu.Bytes) {
			gone(files, bytes)
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		})
	}
	return goOn
}

func (w *world) purge(id session.FolderID) {
	w.t.Helper()
	if err := w.agent.DeleteFolder(context.Background(), id); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) wantGone(id session.FolderID) {
	w.t.Helper()
	if f, err := w.agent.GetFolder(context.Background(), id); session.CodeOf(err) != "folder_read_not-found" {
		w.t.Errorf("there is still %+v, %v", f, err)
	}
	if entries, err := os.ReadDir(filepath.Join(w.dir, "folders")); err != nil || len(entries) != 0 {
		w.t.Errorf("there is still %v, %v", entries, err)
	}
}

func TestDeletingAFolderIsToldOfStoppedAndFinished(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, enginetest.NewFake(enginetest.FakeConfig{}), nil)
		ctx := context.Background()
		f := w.trashed("data", 5)
		goOn := w.holdRemoval()
		w.purge(f.ID)
		goOn <- struct{}{}
		synctest.Wait()
		if got := w.folder(f.ID); got.State != session.FolderDeleting || got.Removed == nil ||
			*got.Removed != (session.FolderRemoval{Files: 2, Bytes: 200, OfFiles: 5, OfBytes: 500}) {
			t.Errorf("being deleted is %+v, %+v", got, got.Removed)
		}
		if _, err := w.agent.RestoreFolder(ctx, f.ID); session.CodeOf(err) != "folder_restore_conflict" {
			t.Errorf("restored meanwhile: %v", err)
		}
		got, err := w.agent.StopDeleting(ctx, f.ID)
		if err != nil || got.State != session.FolderTrashed || got.Missing || got.Removed == nil ||
			got.Removed.Files != 2 {
			t.Errorf("stopped is %+v, %+v, %v", got, got.Removed, err)
		}
		if again, err := w.agent.StopDeleting(ctx, f.ID); err != nil || again.State != session.FolderTrashed {
			t.Errorf("stopped again is %+v, %v", again, err)
		}
		synctest.Wait()
		if got := w.folder(f.ID); got.Usage == nil || got.Usage.Files != 3 {
			t.Errorf("left is %+v", got.Usage)
		}

		w.purge(f.ID)
		if got := w.folder(f.ID); got.Removed == nil ||
			*got.Removed != (session.FolderRemoval{Files: 3, Bytes: 300, OfFiles: 5, OfBytes: 500}) {
			t.Errorf("deleted again is %+v, %+v", got, got.Removed)
		}
		close(goOn)
		synctest.Wait()
		w.wantGone(f.ID)
		if _, err := w.agent.StopDeleting(ctx, f.ID); session.CodeOf(err) != "folder_read_not-found" {
			t.Errorf("stopped too late: %v", err)
		}
	})
}

func TestAStoppedFolderIsRestoredWithWhatIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, enginetest.NewFake(enginetest.FakeConfig{}), nil)
		ctx := context.Background()
		first, second := w.trashed("first", 3), w.trashed("second", 3)
		w.holdRemoval()
		w.purge(first.ID)
		w.purge(second.ID)
		for _, id := range []session.FolderID{second.ID, first.ID} { // the second has not begun
			removed := id == first.ID
			got, err := w.agent.StopDeleting(ctx, id)
			if err != nil || got.State != session.FolderTrashed || removed != (got.Removed != nil) {
				t.Errorf("stopped is %+v, %+v, %v", got, got.Removed, err)
			}
			got, err = w.agent.RestoreFolder(ctx, id)
			if err != nil || got.State != session.FolderReady || got.Missing || got.Removed != nil {
				t.Errorf("restored is %+v, %v", got, err)
			}
			if entries, err := os.ReadDir(w.agent.folders.disk.Path(got)); err != nil || len(entries) < 2 {
				t.Errorf("restored holds %v, %v", entries, err)
			}
		}
	})
}

func TestAFolderIsDeletedAfterAKill(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		dead := false
		w := newWorld(t, enginetest.NewFake(enginetest.FakeConfig{}), nil)
		w.halt()
		w.fault = func(string) error {
			if dead {
				return errors.New("killed")
			}
			return nil
		}
		w.start()
		f := w.trashed("data", 9)
		goOn := w.holdRemoval()
		w.purge(f.ID)
		goOn <- struct{}{}
		time.Sleep(2 * keepRemoved)
		goOn <- struct{}{} // long enough after it began, so that it is stored
		goOn <- struct{}{}
		synctest.Wait()
		dead = true
		w.halt()
		dead = false
		before := 0
		w.config = func(c *Config) {
			stored, err := c.Store.Folder(f.ID)
			if err != nil || stored.State != session.FolderDeleting || stored.Removed == nil ||
				stored.Removed.OfFiles != 9 {
				t.Errorf("stored is %+v, %+v, %v", stored, stored.Removed, err)
			} else {
				before = stored.Removed.Files
			}
		}
		w.start()
		synctest.Wait()
		if before < 2 || before > 4 {
			t.Errorf("%d files are known to be gone", before)
		}
		w.wantGone(f.ID)
	})
}
