package folders

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/session"
)

func TestDirectoriesAreListed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "A", ".hidden"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "b"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	ofMachine := New(Config{})
	listing, err := ofMachine.ListDirectories(t.Context(), dir+"/b/..")
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, entry := range listing.Entries {
		names += entry.Name + " "
	}
	if names != ".hidden A b link " || listing.Path != dir || listing.Parent != filepath.Dir(dir) ||
		!listing.Entries[1].Writable {
		t.Errorf("listing %+v", listing)
	}
	t.Run("the root has no parent", func(t *testing.T) {
		root, err := ofMachine.ListDirectories(t.Context(), "/")
		if err != nil || root.Parent != "" || root.Path != "/" {
			t.Errorf("%+v, %v", root, err)
		}
	})
	t.Run("nothing means the person's home", func(t *testing.T) {
		t.Setenv("HOME", dir)
		if home, err := ofMachine.ListDirectories(t.Context(), ""); err != nil || home.Path != dir {
			t.Errorf("%+v, %v", home, err)
		}
	})
	for path, want := range map[string]session.Code{
		dir + "/none": "file_use_not-found", dir + "/file": "file_use_not-found",
		"relative": "file_use_invalid", dir + "/\x00": "file_use_invalid",
		"/" + strings.Repeat("x", maxPath): "file_use_invalid",
	} {
		if _, err := ofMachine.ListDirectories(t.Context(), path); session.CodeOf(err) != want ||
			session.AsError(err, "").Hint == "" {
			t.Errorf("%.40q: %v, want %s", path, err, want)
		}
	}
	if err := ofMachine.directoryError("/closed", fs.ErrPermission); session.CodeOf(err) != "file_use_forbidden" {
		t.Errorf("a closed directory: %v", err)
	}
}
