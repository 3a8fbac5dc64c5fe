package folders

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway/backend/session"
)

// stage begins a folder and fills it.
func (w *world) stage(name string) *Staging {
	w.t.Helper()
	s, err := Stage(w.folders, session.FolderRequest{Name: name})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Dir, "said"), []byte(name), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// entries are the names in the directory of all folders.
func (w *world) entries() (names []string) {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "folders"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// settled waits until only these are in the directory of all folders.
func (w *world) settled(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	for deadline := time.Now().Add(10 * time.Second); !slices.Equal(w.entries(), want); {
		if time.Now().After(deadline) {
			w.t.Fatalf("there are %q, want %q", w.entries(), want)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAFolderIsFilledBeforeItExists(t *testing.T) {
	w := newWorld(t)
	kept, discarded := w.stage("kept"), w.stage("discarded")
	if all, err := w.folders.ListFolders(t.Context(), session.FolderFilter{}); err != nil || len(all) > 0 {
		t.Errorf("there are %+v, %v", all, err)
	}
	rival := w.stage("kept")
	if err := errors.Join(kept.Keep(), discarded.Discard()); err != nil {
		t.Fatal(err)
	}
	if err := rival.Keep(); session.CodeOf(err) != session.CodeFolderExists {
		t.Errorf("two of one name: %v", err)
	}
	w.settled(string(kept.folder.ID))
	f, err := w.folders.GetFolder(t.Context(), kept.folder.ID)
	if err != nil || f.Missing || f.Name != "kept" || f.Owner != "ada" {
		t.Errorf("the folder is %+v, %v", f, err)
	}
	_, err = Stage(w.folders, session.FolderRequest{Name: "kept"})
	if session.CodeOf(err) != session.CodeFolderExists {
		t.Errorf("once more: %v", err)
	}
}

func TestWhatAKilledAgentHasStagedIsSettled(t *testing.T) {
	w := newWorld(t)
	left, stored := w.stage("left"), w.stage("stored")
	if err := stored.Keep(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.dir, "folders")
	id := string(stored.folder.ID)
	if err := os.Rename(filepath.Join(dir, id), filepath.Join(dir, ".staged-"+id)); err != nil { // killed just before
		t.Fatal(err)
	}
	w.halt()
	w.start()
	w.settled(id)
	if f, err := w.folders.GetFolder(t.Context(), stored.folder.ID); err != nil || f.Missing {
		t.Errorf("what was stored is %+v, %v", f, err)
	}
	if _, err := w.folders.GetFolder(t.Context(), left.folder.ID); session.CodeOf(err) != session.CodeFolderNotFound {
		t.Errorf("what was not stored: %v", err)
	}
}

func TestAFolderThatCannotBeStoredLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.halt()
	full := false
	w.fault = func(string) error {
		if full {
			full = false // only the first change fails
			return errors.New("no space left on device")
		}
		return nil
	}
	w.start()
	s := w.stage("kept")
	full = true
	if err := s.Keep(); err == nil {
		t.Fatal("it was stored")
	}
	w.settled()
}
