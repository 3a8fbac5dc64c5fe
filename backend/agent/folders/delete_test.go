package folders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/agent/health"
	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/offlimits"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// world is a machine with folders and nothing else.
type world struct {
	t       *testing.T
	dir     string
	store   *store.Store
	folders *Folders
	fault   func(string) error // of the store
	hold    chan struct{}      // where set, the deleting of folders waits for it with every further file
	halt    func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.start()
	t.Cleanup(func() { w.halt() })
	return w
}

// OffLimits and Opened: nothing is off limits, and nothing opened.
func (w *world) OffLimits() offlimits.Places                        { return offlimits.Places{} }
func (w *world) Opened() (dirs map[string][]string, release func()) { return nil, func() {} }

func (w *world) start() {
	w.t.Helper()
	s, err := store.Open(store.Config{Path: filepath.Join(w.dir, "agent.db"), Fault: w.fault})
	if err != nil {
		w.t.Fatal(err)
	}
	w.store = s
	w.folders = New(Config{Host: host.Host{Agent: "local", Owner: "ada", UID: os.Getuid(), GID: os.Getgid(),
		Records: records.New(records.Config{Store: s, Trouble: func() {}, Tell: func([]session.Session) {},
			Dress: func(s session.Session) session.Session { return s },
			Ended: func(session.ID) time.Time { return time.Now() }}), Log: slog.New(slog.DiscardHandler),
		Health: health.New(health.Config{})},
		Dir: filepath.Join(w.dir, "folders"), OffLimits: w.OffLimits, Opened: w.Opened, Remove: w.remove})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.folders.Run(ctx)
	}()
	w.halt = sync.OnceFunc(func() {
		cancel()
		<-ended
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

// remove deletes what a folder holds, and waits with every further file.
func (w *world) remove(ctx context.Context, f session.Folder, gone func(int, gpu.Bytes)) error {
	hold := w.hold
	return w.folders.disk.Remove(ctx, f, func(files int, bytes gpu.Bytes) {
		gone(files, bytes)
		if hold == nil {
			return
		}
		select {
		case <-hold:
		case <-ctx.Done():
		}
	})
}

// trashed makes a folder in the trash with files of 100 bytes in it.
func (w *world) trashed(name string, files int) session.Folder {
	w.t.Helper()
	ctx := context.Background()
	f, err := w.folders.CreateFolder(ctx, session.FolderRequest{Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait() // it was counted while it was empty
	for i := range files {
		if err := os.WriteFile(filepath.Join(w.folders.disk.Path(f), fmt.Sprint(i)), make([]byte, 100),
			0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.folders.TrashFolder(ctx, f.ID); err != nil {
		w.t.Fatal(err)
	}
	if err := w.folders.count(ctx, f.ID); err != nil {
		w.t.Fatal(err)
	}
	return w.folder(f.ID)
}

func (w *world) folder(id session.FolderID) session.Folder {
	w.t.Helper()
	f, err := w.folders.GetFolder(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) purge(id session.FolderID) {
	w.t.Helper()
	if err := w.folders.DeleteFolder(context.Background(), id); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) wantGone(id session.FolderID) {
	w.t.Helper()
	if f, err := w.folders.GetFolder(context.Background(), id); session.CodeOf(err) != "folder_read_not-found" {
		w.t.Errorf("there is still %+v, %v", f, err)
	}
	if entries, err := os.ReadDir(filepath.Join(w.dir, "folders")); err != nil || len(entries) != 0 {
		w.t.Errorf("there is still %v, %v", entries, err)
	}
}

func TestDeletingAFolderIsToldOfStoppedAndFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := context.Background()
		f := w.trashed("data", 5)
		goOn := make(chan struct{})
		w.hold = goOn
		w.purge(f.ID)
		goOn <- struct{}{}
		synctest.Wait()
		if got := w.folder(f.ID); got.State != session.FolderDeleting || got.Removed == nil ||
			*got.Removed != (session.FolderRemoval{Files: 2, Bytes: 200, OfFiles: 5, OfBytes: 500}) {
			t.Errorf("being deleted is %+v, %+v", got, got.Removed)
		}
		if _, err := w.folders.RestoreFolder(ctx, f.ID); session.CodeOf(err) != "folder_update_conflict" {
			t.Errorf("restored meanwhile: %v", err)
		}
		got, err := w.folders.StopDeleting(ctx, f.ID)
		if err != nil || got.State != session.FolderTrashed || got.Missing || got.Removed == nil ||
			got.Removed.Files != 2 {
			t.Errorf("stopped is %+v, %+v, %v", got, got.Removed, err)
		}
		if again, err := w.folders.StopDeleting(ctx, f.ID); err != nil || again.State != session.FolderTrashed {
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
		if _, err := w.folders.StopDeleting(ctx, f.ID); session.CodeOf(err) != "folder_read_not-found" {
			t.Errorf("stopped too late: %v", err)
		}
	})
}

func TestAStoppedFolderIsRestoredWithWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := context.Background()
		first, second := w.trashed("first", 3), w.trashed("second", 3)
		w.hold = make(chan struct{})
		w.purge(first.ID)
		w.purge(second.ID)
		for _, id := range []session.FolderID{second.ID, first.ID} { // the second has not begun
			removed := id == first.ID
			got, err := w.folders.StopDeleting(ctx, id)
			if err != nil || got.State != session.FolderTrashed || removed != (got.Removed != nil) {
				t.Errorf("stopped is %+v, %+v, %v", got, got.Removed, err)
			}
			got, err = w.folders.RestoreFolder(ctx, id)
			if err != nil || got.State != session.FolderReady || got.Missing || got.Removed != nil {
				t.Errorf("restored is %+v, %v", got, err)
			}
			if entries, err := os.ReadDir(w.folders.disk.Path(got)); err != nil || len(entries) < 2 {
				t.Errorf("restored holds %v, %v", entries, err)
			}
		}
	})
}

func TestAFolderIsDeletedAfterAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := false
		w := newWorld(t)
		w.halt()
		w.fault = func(string) error {
			if dead {
				return errors.New("killed")
			}
			return nil
		}
		w.start()
		f := w.trashed("data", 9)
		goOn := make(chan struct{})
		w.hold = goOn
		w.purge(f.ID)
		goOn <- struct{}{}
		time.Sleep(2 * storeEvery)
		goOn <- struct{}{} // long enough after it began, so that it is stored
		goOn <- struct{}{}
		synctest.Wait()
		dead = true
		w.halt()
		dead, w.hold = false, nil
		s, err := store.Open(store.Config{Path: filepath.Join(w.dir, "agent.db")})
		if err != nil {
			t.Fatal(err)
		}
		stored, err := s.Folder(f.ID)
		if err != nil || stored.State != session.FolderDeleting || stored.Removed == nil ||
			stored.Removed.OfFiles != 9 || stored.Removed.Files < 2 || stored.Removed.Files > 4 {
			t.Errorf("stored is %+v, %+v, %v", stored, stored.Removed, err)
		}
		s.Close()
		w.start()
		synctest.Wait()
		w.wantGone(f.ID)
	})
}
