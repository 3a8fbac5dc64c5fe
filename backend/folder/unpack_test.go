package folder

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// entry is one of an archive.
type entry struct {
	name, content, link string
	kind                byte
	mode                int64
}

func archived(t *testing.T, at time.Time, entries ...entry) *bytes.Buffer {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Linkname: e.link, ModTime: at,
			Size: int64(len(e.content))}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &archive
}

func TestAHomeIsUnpackedAsItWas(t *testing.T) {
	disk := Disk{Dir: t.TempDir()}
	f := session.Folder{ID: "abcdefghijkl", Name: "home"}
	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	home := []entry{
		{name: "work/", kind: tar.TypeDir, mode: 0o755},
		{name: "work/closed/", kind: tar.TypeDir, mode: 0o500},
		{name: "work/closed/note", kind: tar.TypeReg, mode: 0o4640, content: "note"},
		{name: "work/latest", kind: tar.TypeSymlink, link: "closed/note"},
		{name: "work/same", kind: tar.TypeLink, link: "work/closed/note"},
		{name: "work/pipe", kind: tar.TypeFifo},
	}
	for range 2 { // also after an attempt that was interrupted
		var told gpu.Bytes
		if err := disk.Unpack(t.Context(), f, archived(t, at, home...), func(n gpu.Bytes) { told = n }); err != nil {
			t.Fatal(err)
		}
		if told != 4 {
			t.Errorf("%d bytes were told", told)
		}
	}
	at = at.Local()
	in := func(name string) string { return filepath.Join(disk.Path(f), name) }
	for name, mode := range map[string]os.FileMode{"": 0o755, "closed": 0o500, "closed/note": 0o640} {
		info, err := os.Stat(in(name))
		if err != nil || info.Mode().Perm() != mode || !info.ModTime().Equal(at) {
			t.Errorf("%q is %v, %v", name, info, err)
		}
	}
	if content, err := os.ReadFile(in("latest")); err != nil || string(content) != "note" {
		t.Errorf("behind the link is %q, %v", content, err)
	}
	one, err := os.Stat(in("same"))
	other, otherErr := os.Stat(in("closed/note"))
	if err != nil || otherErr != nil || !os.SameFile(one, other) {
		t.Errorf("the two names are of %v and %v", one, other)
	}
	if _, err := os.Lstat(in("pipe")); err == nil {
		t.Error("a pipe was made")
	}
	if err := os.Chmod(in("closed"), 0o700); err != nil { //nolint:gosec // so that it can be removed
		t.Fatal(err)
	}
}

func TestNoHomeLeavesItsFolder(t *testing.T) {
	outside := t.TempDir()
	for name, home := range map[string][]entry{
		"above":           {{name: "work/../../out", kind: tar.TypeReg, mode: 0o644, content: "x"}},
		"absolute":        {{name: "/etc/out", kind: tar.TypeReg, mode: 0o644, content: "x"}},
		"another's":       {{name: "works/out", kind: tar.TypeReg, mode: 0o644, content: "x"}},
		"a name of above": {{name: "work/out", kind: tar.TypeLink, link: "../../out"}},
		"through a link": {{name: "work/l", kind: tar.TypeSymlink, link: outside},
			{name: "work/l/out", kind: tar.TypeReg, mode: 0o644, content: "x"}},
	} {
		disk := Disk{Dir: filepath.Join(t.TempDir(), "folders")}
		f := session.Folder{ID: "abcdefghijkl", Name: "home"}
		if err := disk.Unpack(t.Context(), f, archived(t, time.Now(), home...), func(gpu.Bytes) {}); err == nil {
			t.Errorf("%s is unpacked", name)
		}
		for _, dir := range []string{outside, disk.Dir, filepath.Dir(disk.Dir)} {
			if _, err := os.Lstat(filepath.Join(dir, "out")); err == nil {
				t.Errorf("%s leaves the folder", name)
			}
		}
	}
}
