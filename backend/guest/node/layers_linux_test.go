package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// item is an entry of an archive.
type item struct {
	name string
	kind byte
	to   string // of a link; else the content
	mode int64
}

func pack(t testing.TB, items ...item) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, i := range items {
		head := &tar.Header{Name: i.name, Typeflag: i.kind, Mode: i.mode, Format: tar.FormatPAX,
			ModTime: time.Unix(1_700_000_000, 0)}
		switch i.kind {
		case tar.TypeReg:
			head.Size = int64(len(i.to))
		case tar.TypeLink, tar.TypeSymlink:
			head.Linkname = i.to
		}
		if err := writer.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if i.kind == tar.TypeReg {
			if _, err := writer.Write([]byte(i.to)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func file(name, content string) item { return item{name, tar.TypeReg, content, 0o644} }
func dir(name string) item           { return item{name, tar.TypeDir, "", 0o755} }
func symlink(name, to string) item   { return item{name, tar.TypeSymlink, to, 0o777} }
func hardlink(name, to string) item  { return item{name, tar.TypeLink, to, 0o644} }

// unpacked unpacks an archive to a folder that is next to one with a file outside.
func unpacked(t *testing.T, items ...item) (to string, err error) {
	t.Helper()
	top := t.TempDir()
	to = filepath.Join(top, "layer")
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, "outside"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	data := pack(t, items...)
	err = unpack(bytes.NewReader(data), to, int64(len(data)))
	if left, _ := os.ReadFile(filepath.Join(top, "outside")); string(left) != "outside" {
		t.Errorf("the file outside has %q", left)
	}
	if entries, _ := os.ReadDir(top); len(entries) != 2 {
		t.Errorf("there are %d entries outside", len(entries))
	}
	return to, err
}

func TestUnpack(t *testing.T) {
	to, err := unpacked(t, item{"./", tar.TypeDir, "", 0o711}, item{"bin", tar.TypeDir, "", 0o555},
		file("bin/a", "one"), hardlink("bin/b", "bin/a"), symlink("sh", "/bin/a"), item{"secret", tar.TypeReg, "", 0},
		file("a/b/c", "deep"),
		item{"su", tar.TypeReg, "", 0o6755}, item{"tmp", tar.TypeDir, "", 0o1777}, item{"locked", tar.TypeDir, "", 0},
		file("locked/x", ""), item{"dev/sda", tar.TypeBlock, "", 0o660}, item{"dev/null", tar.TypeChar, "", 0o666},
		item{"pipe", tar.TypeFifo, "", 0o600}, file("twice", "first"), file("twice", "second"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		".": fs.ModeDir | 0o711, "bin": fs.ModeDir | 0o755, "bin/a": 0o644, "secret": 0, "su": 0o755,
		"tmp": fs.ModeDir | fs.ModeSticky | 0o777, "locked": fs.ModeDir | 0o700, "pipe": fs.ModeNamedPipe | 0o600,
		"sh": fs.ModeSymlink | 0o777,
	} {
		info, err := os.Lstat(filepath.Join(to, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if info.Mode() != want || name != "." && !info.ModTime().Equal(time.Unix(1_700_000_000, 0)) && name != "sh" &&
			name != "pipe" {
			t.Errorf("%s is %s of %s, want %s", name, info.Mode(), info.ModTime(), want)
		}
	}
	for name, want := range map[string]string{"bin/b": "one", "a/b/c": "deep", "twice": "second"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(to, "dev")); len(entries) != 0 {
		t.Errorf("there are devices: %v", entries)
	}
}

func TestNoEntryLeavesItsFolder(t *testing.T) {
	for name, items := range map[string][]item{
		"up":                {file("../outside", "changed")},
		"absolute":          {file("/outside", "inside")},
		"through a link":    {symlink("up", ".."), file("up/outside", "changed")},
		"absolute link":     {symlink("root", "/"), file("root/outside", "inside")},
		"long way up":       {symlink("up", "../../../../../.."), file("up/tmp/outside", "changed")},
		"onto a link":       {symlink("x", "../outside"), file("x", "changed")},
		"hard link":         {hardlink("x", "../outside"), file("x", "changed")},
		"hard through link": {symlink("up", ".."), hardlink("x", "up/outside"), file("x", "changed")},
		"whiteout":          {file("../.wh.outside", "")},
		"whiteout via link": {symlink("up", ".."), file("up/.wh.outside", "")},
		"whiteout of dots":  {file("a/.wh...", "")},
		"opaque":            {symlink("up", ".."), file("up/.wh..wh..opq", "")},
		"directory":         {symlink("up", ".."), dir("up"), dir("../layer2")},
		"process":           {symlink("p", "/proc/self/root"), file("p/tmp/outside", "changed")},
	} {
		t.Run(name, func(t *testing.T) { _, _ = unpacked(t, items...) }) // it may fail, but nothing outside changes
	}
}

func TestWhiteouts(t *testing.T) {
	to, err := unpacked(t, dir("etc"), file("etc/.wh.gone", ""), dir("var"), file("var/.wh..wh..opq", ""),
		file("var/new", ""), file("lib", "of this layer"), file(".wh.lib", ""), dir("opt"), file("opt/x", ""),
		file(".wh.opt", ""), file(".wh.srv", ""), dir("srv"), file(".wh..wh.aufs", ""), file(".wh.run", ""),
		file("run", "again"))
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := unix.Lstat(filepath.Join(to, "etc/gone"), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR ||
		stat.Rdev != 0 {
		t.Errorf("the whiteout is %o of %d, %v", stat.Mode, stat.Rdev, err)
	}
	var opaques []string
	for _, name := range []string{".", "etc", "var", "opt", "srv"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(filepath.Join(to, name), opaque, value); err == nil && string(value[:n]) == "y" {
			opaques = append(opaques, name)
		}
	}
	if !slices.Equal(opaques, []string{"var", "opt", "srv"}) {
		t.Errorf("%q hide what is below", opaques)
	}
	for name, want := range map[string]string{"lib": "of this layer", "run": "again"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(to, ".wh..wh.aufs")); err == nil {
		t.Error("a mark of another file system became a file")
	}
}

func TestAHugeSparseFileIsRefused(t *testing.T) {
	data := pack(t, file("big", strings.Repeat("x", 4096)))
	if err := unpack(bytes.NewReader(data), t.TempDir(), 4095); err == nil {
		t.Error("files larger than the archive are unpacked")
	}
}

func TestALayerIsUnpackedOnce(t *testing.T) {
	l, err := openLocal(filepath.Join(t.TempDir(), "local"))
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	data := pack(t, file("a", "content"))
	name := digest(data)
	if err := os.WriteFile(filepath.Join(store, name+".tar"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		dir  string
		lock *os.File
		err  error
	}
	answers := make(chan answer)
	for range 8 {
		go func() {
			dir, lock, err := l.layer(nil, store, "sha256:"+name)
			answers <- answer{dir, lock, err}
		}()
	}
	var locks []*os.File
	for range 8 {
		a := <-answers
		if a.err != nil {
			t.Fatal(a.err)
		}
		if content, err := os.ReadFile(filepath.Join(a.dir, "a")); err != nil || string(content) != "content" {
			t.Errorf("the layer has %q, %v", content, err)
		}
		locks = append(locks, a.lock)
	}
	if err := os.Remove(filepath.Join(store, name+".tar")); err != nil { // it is not needed again
		t.Fatal(err)
	}

	old := time.Now().Add(-unusedLayer - time.Hour)
	age := func() {
		if err := os.Chtimes(filepath.Join(l.layers(), name+".lock"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	age()
	if _, lock, err := l.open("other"); err != nil {
		t.Fatal(err)
	} else {
		locks = append(locks, lock)
	}
	if _, err := os.Stat(filepath.Join(l.layers(), name)); err != nil {
		t.Errorf("a layer in use was removed: %v", err)
	}
	for _, lock := range locks {
		_ = lock.Close()
	}
	if _, lock, err := l.open("another"); err != nil {
		t.Fatal(err)
	} else {
		defer lock.Close()
	}
	if _, err := os.Stat(filepath.Join(l.layers(), name)); err == nil {
		t.Error("a layer that was not used for long stays")
	}
}

func TestWhatAKilledRunnerLeftIsRemoved(t *testing.T) {
	l, err := openLocal(filepath.Join(t.TempDir(), "local"))
	if err != nil {
		t.Fatal(err)
	}
	living, lock, err := l.open("living")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	killed, ended, err := l.open("killed")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(killed, "work/work"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(killed, "work/work"), 0); err != nil { // as overlays leave it
		t.Fatal(err)
	}
	if err := ended.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.open("living"); err == nil {
		t.Error("a run that lives is opened twice")
	}
	_, third, err := l.open("third")
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if _, err := os.Stat(living); err != nil {
		t.Errorf("the living one is gone: %v", err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("the killed one stays")
	}
	if _, err := os.Stat(killed + ".lock"); err == nil {
		t.Error("its lock stays")
	}
	l.empty()
	if entries, err := os.ReadDir(l.trash()); err != nil || len(entries) != 0 {
		t.Errorf("the trash has %v, %v", entries, err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack(f, dir("a"), file("a/b", "content"), symlink("c", "../.."), file("c/.wh.x", "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		top := t.TempDir()
		to := filepath.Join(top, "layer")
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = unpack(bytes.NewReader(data), to, int64(len(data)))
		if entries, err := os.ReadDir(top); err != nil || len(entries) != 1 {
			t.Fatalf("there are %d entries outside", len(entries))
		}
		if err := removeAll(to); err != nil {
			t.Fatal(err)
		}
	})
}
