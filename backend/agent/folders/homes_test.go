package folders

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/backend/store"
)

const keep = 30 * 24 * time.Hour

// begin stores a session whose home is kept and gives it its home, and returns it with the home's directory.
func (w *world) begin(name string, spec session.Spec) (session.Session, string) {
	w.t.Helper()
	spec.Image, spec.KeepHome = enginetest.ImageMinimal, new(session.Duration(keep))
	spec.Name = name
	s := records.NewSession(session.LaunchRequest{Owner: "ada", Spec: spec}, session.NewID(), "local", time.Now().UTC())
	s = w.launch(s)
	s = w.change(s.ID, w.folders.AddHome)
	if _, err := w.folders.Mounts(s); err != nil {
		w.t.Fatal(err)
	}
	return s, w.folders.disk.Path(session.Folder{ID: s.HomeFolder().Folder})
}

func (w *world) launch(s session.Session) session.Session {
	w.t.Helper()
	spec, mounted, wrong, err := w.folders.Find(s.Owner, s.Spec)
	if err != nil || len(wrong) > 0 {
		w.t.Fatalf("%+v, %v", wrong, err)
	}
	s.Spec, s.Folders = spec, mounted
	if err := w.store.Update(func(tx *store.Tx) error { return records.Create(tx, &s, "") }); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) change(id session.ID, fn func(*records.Draft) error) session.Session {
	w.t.Helper()
	s, err := w.folders.config.Records.Change(id, fn)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// end ends a session, and returns when its folders have been looked after.
func (w *world) end(id session.ID) {
	w.t.Helper()
	w.folders.Used(w.change(id, func(d *records.Draft) error { return d.To(session.Cancelled) }))
	synctest.Wait()
}

func (w *world) write(dir, name string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("kept"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func TestAHomeIsKeptForItsTimeSinceItsLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, dir := w.begin("train", session.Spec{})
		id := s.HomeFolder().Folder
		if f := w.folder(id); f.Name != "train" || f.Owner != "ada" || f.Home == nil || f.Home.Session != s.ID ||
			f.Home.Until != nil || len(f.UsedBy) != 1 || !f.UsedBy[0].Home {
			t.Errorf("in use it is %+v, %+v", f, f.Home)
		}
		if again := w.change(s.ID, w.folders.AddHome); len(again.Folders) != 1 {
			t.Errorf("another attempt has %+v", again.Folders)
		}
		w.write(dir, "work")
		w.end(s.ID)
		ended := time.Now()
		if f := w.folder(id); f.Home == nil || f.Home.Until == nil || !f.Home.Until.Equal(ended.Add(keep)) {
			t.Fatalf("after the end it is %+v", f.Home)
		}

		time.Sleep(keep - time.Minute)
		later := session.Spec{Mounts: []session.Mount{{Folder: "train", Target: session.Home}}}
		user, same := w.begin("again", later)
		if same != dir || user.HomeFolder().Folder != id {
			t.Errorf("its home is %s and not %s", same, dir)
		}
		time.Sleep(keep)
		if f := w.folder(id); f.State != session.FolderReady || f.Home.Until != nil {
			t.Errorf("in use again it is %+v, %+v", f, f.Home)
		}
		w.end(user.ID)
		time.Sleep(keep - time.Second)
		synctest.Wait()
		if f := w.folder(id); f.State != session.FolderReady {
			t.Errorf("before its time it is %s", f.State)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		w.wantGone(id)
	})
}

func TestAnEmptyHomeIsRemovedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, dir := w.begin("idle", session.Spec{Mounts: []session.Mount{{Source: t.TempDir(), Target: "data/set"}}})
		if info, err := os.Stat(filepath.Join(dir, "data/set")); err != nil || !info.IsDir() {
			t.Errorf("the mount point is %v, %v", info, err)
		}
		w.end(s.ID)
		w.wantGone(s.HomeFolder().Folder)
	})
}

func TestAKeptHomeOutlivesAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, dir := w.begin("train", session.Spec{})
		w.write(dir, "work")
		w.change(s.ID, func(d *records.Draft) error { return d.To(session.Cancelled) })
		w.halt() // before it has heard of the end
		w.start()
		synctest.Wait()
		if f := w.folder(s.HomeFolder().Folder); f.Home == nil || f.Home.Until == nil {
			t.Errorf("after a restart it is %+v", f.Home)
		}
	})
}

func TestAKeptHomeIsKeptForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, dir := w.begin("train", session.Spec{})
		id := s.HomeFolder().Folder
		w.write(dir, "work")
		w.end(s.ID)
		if _, err := w.folders.TrashFolder(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * keep)
		f, err := w.folders.RestoreFolder(t.Context(), id)
		if err != nil || f.Home == nil || !f.Home.Until.Equal(time.Now().Add(keep)) {
			t.Errorf("restored it is %+v, %v", f.Home, err)
		}
		f, err = w.folders.UpdateFolder(t.Context(), id, session.FolderChange{Keep: true})
		if err != nil || f.Home != nil {
			t.Errorf("kept for good it is %+v, %v", f.Home, err)
		}
		time.Sleep(2 * keep)
		synctest.Wait()
		if f := w.folder(id); f.State != session.FolderReady {
			t.Errorf("much later it is %s", f.State)
		}
	})
}

func TestAHomeIsOfOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.folders.CreateFolder(t.Context(), session.FolderRequest{Name: "train"}); err != nil {
			t.Fatal(err)
		}
		first, _ := w.begin("train", session.Spec{})
		const name = "train-2"
		if got := first.HomeFolder().Name; got != name {
			t.Errorf("its home is %s", got)
		}
		for _, target := range []string{session.Home, "there"} {
			_, _, wrong, err := w.folders.Find("ada",
				session.Spec{Mounts: []session.Mount{{Folder: name, Target: target}}})
			if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0].Message, "uses the folder "+name) {
				t.Errorf("at %s: %+v, %v", target, wrong, err)
			}
		}
		// two launches at a time: what Find did not see is refused before a container is made
		thief := w.launch(records.NewSession(session.LaunchRequest{Owner: "ada", Spec: session.Spec{Name: "thief"}},
			session.NewID(), "local", time.Now()))
		thief = w.change(thief.ID, func(d *records.Draft) error {
			d.Folders = []session.FolderMount{{Folder: first.HomeFolder().Folder, Name: name, Target: "/home/work/x"}}
			return nil
		})
		for _, s := range []session.Session{thief, first} {
			if _, err := w.folders.Mounts(s); session.CodeOf(err) != session.CodeFolderConflict {
				t.Errorf("%s mounts it: %v", s.Name, err)
			}
		}
	})
}

func TestAMountPointInAHomeIsNoLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s, dir := w.begin("train", session.Spec{})
		w.write(dir, "work")
		w.end(s.ID)
		if err := os.Symlink("/.slipway", filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
		spec := session.Spec{Name: "next", Mounts: []session.Mount{{Folder: "train", Target: session.Home},
			{Source: t.TempDir(), Target: session.Home + "/data"}}}
		next := w.launch(records.NewSession(session.LaunchRequest{Owner: "ada", Spec: spec}, session.NewID(), "local",
			time.Now()))
		_, err := w.folders.Mounts(next)
		if session.CodeOf(err) != session.CodeFolderConflict || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("mounted over a link: %v", err)
		}
	})
}

func TestOnlyAFolderOfSlipwayIsAHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := context.Background()
		for _, req := range []session.FolderRequest{{Name: "linked", Path: t.TempDir()},
			{Name: "read-only", Permission: session.FolderReadOnly}} {
			if _, err := w.folders.CreateFolder(ctx, req); err != nil {
				t.Fatal(err)
			}
			_, _, wrong, err := w.folders.Find("ada",
				session.Spec{Mounts: []session.Mount{{Folder: req.Name, Target: session.Home}}})
			if err != nil || len(wrong) != 1 || wrong[0].Field != "mounts[0].target" {
				t.Errorf("%s: %+v, %v", req.Name, wrong, err)
			}
		}
	})
}
