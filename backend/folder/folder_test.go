package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// world is a disk with one folder, beside which lies what nobody may reach.
type world struct {
	*testing.T
	disk    Disk
	folder  session.Folder
	outside string // a directory with the file secret in it
}

const secret = "what lies outside"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{T: t, disk: Disk{Dir: filepath.Join(dir, "folders"), UID: os.Getuid(), GID: os.Getgid()},
		outside: filepath.Join(dir, "outside")}
	w.folder = session.Folder{ID: session.FolderID(session.NewID()), Name: "data", Permission: session.FolderReadWrite}
	w.must(w.disk.Make(w.folder))
	w.must(os.Mkdir(w.outside, 0o755))
	w.must(os.WriteFile(filepath.Join(w.outside, "secret"), []byte(secret), 0o600))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) open() *Tree {
	w.Helper()
	tree, err := w.disk.Open(w.folder)
	w.must(err)
	w.Cleanup(func() { tree.Close() })
	return tree
}

// at is a path on this machine of something in the folder.
func (w *world) at(parts ...string) string {
	return filepath.Join(append([]string{w.disk.Path(w.folder)}, parts...)...)
}

// unharmed fails where anything outside has changed.
func (w *world) unharmed() {
	w.Helper()
	entries, err := os.ReadDir(w.outside)
	w.must(err)
	data, err := os.ReadFile(filepath.Join(w.outside, "secret"))
	if err != nil || string(data) != secret || len(entries) != 1 {
		w.Fatalf("outside there is %v with %q, %v", entries, data, err)
	}
	for _, name := range []string{".", "secret"} {
		info, err := os.Stat(filepath.Join(w.outside, name))
		if err != nil || info.Mode().Perm() == 0o777 || info.ModTime().Equal(time.Unix(1, 0)) {
			w.Fatalf("outside %s is %v, %v", name, info, err)
		}
	}
}

// put uploads a file.
func put(tree *Tree, path session.FilePath, content string, conflict session.Conflict) error {
	up := session.Upload{Path: path, Key: "k"}
	if _, err := tree.WriteUpload(context.Background(), up, strings.NewReader(content)); err != nil {
		return err
	}
	_, err := tree.FinishUpload(context.Background(), session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: int64(len(content)),
			Conflict: conflict}})
	return err
}

func read(tree *Tree, path session.FilePath) (string, error) {
	from, err := tree.Tree.ReadFile(context.Background(), session.ReadRequest{Path: path})
	if err != nil {
		return "", err
	}
	defer from.Close()
	data, err := io.ReadAll(from)
	return string(data), err
}

// everything does to a path all that can be done, and returns what was read.
func everything(tree *Tree, path session.FilePath) string {
	got, _ := read(tree, path)
	sum, _ := tree.ChecksumFile(context.Background(), path)
	inner, _ := read(tree, path+"/secret")
	listing, _ := tree.ListFiles(context.Background(), session.ListRequest{Path: path})
	names := ""
	for _, e := range listing.Entries {
		names += string(e.Name) + " "
	}
	_ = put(tree, path, "changed", session.ConflictReplace)
	_ = put(tree, path+"/made", "made", session.ConflictKeep)
	_ = tree.MakeDirectory(context.Background(), path+"/dir", true)
	_ = tree.MakeLink(context.Background(), path+"/link", "secret")
	_ = tree.SetAttributes(context.Background(), path, session.Attributes{Mode: 0o777, Modified: time.Unix(1, 0)})
	_ = tree.SetAttributes(context.Background(), path+"/secret", session.Attributes{Mode: 0o777})
	_ = tree.MoveFile(context.Background(), "plain", path+"/moved")
	_ = tree.MoveFile(context.Background(), path+"/secret", "stolen")
	stolen, _ := read(tree, "stolen")
	_ = tree.RemoveFile(context.Background(), path+"/secret", true)
	_ = tree.RemoveFile(context.Background(), path, true)
	return got + sum + inner + names + stolen
}

func TestNothingLeadsOutOfAFolder(t *testing.T) {
	for _, path := range []session.FilePath{
		"..", "../outside", "../../outside/secret", "/../../outside", "a/../../../outside", "absolute",
		"absolute/secret", "relative", "chain", "chain/secret", "file", "self", "./../outside", "deep/up",
		"deep/up/secret",
	} {
		t.Run(string(path), func(t *testing.T) {
			w := newWorld(t)
			tree := w.open()
			w.must(tree.MakeDirectory(context.Background(), "deep", false))
			for name, target := range map[string]string{
				"absolute": w.outside, "relative": "../../outside", "chain": "absolute",
				"file": filepath.Join(w.outside, "secret"), "self": "self", "deep/up": "../relative",
			} {
				w.must(tree.MakeLink(context.Background(), session.FilePath(name), session.FilePath(target)))
				if got, err := os.Readlink(w.at(name)); got != target || err != nil {
					t.Errorf("%s leads to %q, %v", name, got, err)
				}
			}
			w.must(put(tree, "plain", "plain", ""))
			if got := everything(tree, path); strings.Contains(got, secret) || strings.Contains(got, "secret") {
				t.Errorf("%q shows %q", path, got)
			}
			w.unharmed()
		})
	}
}

func TestALinkInsideAFolderIsFollowed(t *testing.T) {
	w := newWorld(t)
	tree := w.open()
	w.must(tree.MakeDirectory(context.Background(), "a/b", true))
	w.must(put(tree, "a/b/file", "content", ""))
	w.must(os.Symlink("a/b", w.at("link")))
	if got, err := read(tree, "link/file"); got != "content" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNobodyWinsARaceOutOfAFolder(t *testing.T) {
	w := newWorld(t)
	tree := w.open()
	stop, swapped := make(chan struct{}), make(chan struct{})
	go func() { // a directory that is a link now and then
		defer close(swapped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Mkdir(w.at("door"), 0o755)
			_ = os.WriteFile(w.at("door", "secret"), []byte("inside"), 0o600)
			_ = os.RemoveAll(w.at("door"))
			_ = os.Symlink(w.outside, w.at("door"))
			_ = os.Remove(w.at("door"))
		}
	}()
	for range 500 {
		if got := everything(tree, "door"); strings.Contains(got, secret) {
			t.Errorf("it shows %q", got)
		}
		if source, err := w.disk.Find(w.folder, "door"); err == nil {
			if info, err := os.Stat(w.outside); err == nil {
				if device, inode := identity(info); source.Device == device && source.Inode == inode {
					t.Error("what lies outside would be mounted and held to be right")
				}
			}
		}
	}
	close(stop)
	<-swapped
	w.unharmed()
}

func TestAnyNameCanBeKept(t *testing.T) {
	w := newWorld(t)
	tree := w.open()
	w.must(tree.MakeDirectory(context.Background(), "dir", false))
	names := []session.FilePath{"line\nbreak", "\xff\xfe not text", "-rf", " ", "'; rm -rf $HOME", "a\\b", "…",
		".hidden", "tab\t"}
	for _, name := range names {
		w.must(put(tree, "dir/"+name, string(name), ""))
	}
	listing, err := tree.ListFiles(context.Background(), session.ListRequest{Path: "dir"})
	if err != nil || len(listing.Entries) != len(names) {
		t.Fatalf("%+v, %v", listing, err)
	}
	for _, e := range listing.Entries {
		if got, err := read(tree, "dir/"+e.Name); err != nil || got != string(e.Name) {
			t.Errorf("%q holds %q, %v", e.Name, got, err)
		}
		w.must(tree.MoveFile(context.Background(), "dir/"+e.Name, "dir/moved"))
		w.must(tree.RemoveFile(context.Background(), "dir/moved", false))
	}
}

func FuzzPathsStayInside(f *testing.F) {
	for _, seed := range []string{"a", "../x", "/etc/passwd", "a/../../b", "l/secret", "l", "\xff\n/..", "./.././..",
		strings.Repeat("a/", 100), ".slipway-k.part", "a\x00b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		w := newWorld(t)
		tree := w.open()
		w.must(os.Symlink(w.outside, w.at("l")))
		if got := everything(tree, session.FilePath(path)); strings.Contains(got, secret) {
			t.Errorf("%q shows %q", path, got)
		}
		if source, err := w.disk.Find(w.folder, path); err == nil && source.Path != w.at() &&
			!strings.HasPrefix(source.Path, w.at()+string(filepath.Separator)) {
			t.Errorf("%q would mount %s", path, source.Path)
		}
		w.unharmed()
	})
}

func TestAFolderToReadIsNotChanged(t *testing.T) {
	w := newWorld(t)
	w.must(put(w.open(), "plain", "plain", ""))
	w.folder.Permission = session.FolderReadOnly
	tree := w.open()
	for what, err := range map[string]error{
		"upload": put(tree, "new", "x", ""), "mkdir": tree.MakeDirectory(context.Background(), "dir", false),
		"move":       tree.MoveFile(context.Background(), "plain", "moved"),
		"remove":     tree.RemoveFile(context.Background(), "plain", false),
		"remove all": tree.RemoveFile(context.Background(), "plain", true),
		"link":       tree.MakeLink(context.Background(), "link", "plain"),
		"attributes": tree.SetAttributes(context.Background(), "plain", session.Attributes{Mode: 0o777}),
	} {
		if session.CodeOf(err) != session.CodeFileForbidden {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := read(tree, "plain"); got != "plain" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSubPathsAreDirectoriesWithoutLinks(t *testing.T) {
	w := newWorld(t)
	w.must(w.open().MakeDirectory(context.Background(), "a/b", true))
	w.must(put(w.open(), "a/file", "x", ""))
	w.must(os.Symlink("a", w.at("link")))
	w.must(os.Symlink(w.outside, w.at("out")))
	if source, err := w.disk.Find(w.folder, "a/b"); err != nil || source.Path != w.at("a", "b") || source.Inode == 0 {
		t.Errorf("%+v, %v", source, err)
	}
	if source, err := w.disk.Find(w.folder, ""); err != nil || source.Path != w.at() {
		t.Errorf("%+v, %v", source, err)
	}
	for _, sub := range []string{"none", "a/file", "link", "link/b", "out", "..", "a/../..", "/a", "a//b", "."} {
		if source, err := w.disk.Find(w.folder, sub); err == nil {
			t.Errorf("%q leads to %+v", sub, source)
		}
	}
}

func TestAFolderIsRemovedWithAllThatIsInIt(t *testing.T) {
	w := newWorld(t)
	w.must(os.MkdirAll(w.at("a", "closed", "b"), 0o755))
	w.must(os.WriteFile(w.at("a", "closed", "b", "f"), nil, 0o400))
	w.must(os.Symlink(w.outside, w.at("a", "link")))
	w.must(os.Chmod(w.at("a", "closed"), 0))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.disk.Remove(gone, w.folder, untold); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	w.must(w.disk.Remove(t.Context(), w.folder, untold))
	w.must(w.disk.Remove(t.Context(), w.folder, untold))
	if entries, err := os.ReadDir(w.disk.Dir); err != nil || len(entries) != 0 {
		t.Errorf("there is still %v, %v", entries, err)
	}
	w.unharmed()
	linked := session.Folder{ID: "abc", FolderOrigin: session.FolderOrigin{Path: w.outside}}
	w.must(w.disk.Remove(t.Context(), linked, untold))
	w.must(w.disk.PutBack(linked))
	w.unharmed()
}

// untold is for a removal of which nobody is told.
func untold(int, gpu.Bytes) {}

func TestARemovalIsToldOfStoppedAndFinished(t *testing.T) {
	w := newWorld(t)
	w.must(w.disk.PutBack(w.folder)) // which nobody began to remove
	w.must(os.MkdirAll(w.at("a", "b"), 0o755))
	for i := range 4 {
		w.must(os.WriteFile(w.at("a", "b", fmt.Sprint(i)), make([]byte, 100), 0o600))
	}
	w.must(os.Link(w.at("a", "b", "0"), w.at("again")))
	w.must(os.Symlink(w.outside, w.at("link")))
	before, err := w.disk.Measure(t.Context(), w.folder)
	w.must(err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	files, bytes := 0, gpu.Bytes(0)
	count := func(f int, b gpu.Bytes) { files, bytes = files+f, bytes+b }
	err = w.disk.Remove(ctx, w.folder, func(f int, b gpu.Bytes) {
		if count(f, b); files == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || files != 2 || !w.disk.Missing(w.folder) {
		t.Errorf("stopped after %d files: %v", files, err)
	}
	w.must(w.disk.PutBack(w.folder))
	left, err := w.disk.Measure(t.Context(), w.folder)
	if err != nil || left.Files != before.Files-2 || left.Bytes != before.Bytes-bytes {
		t.Errorf("of %+v, %d files of %d bytes are gone, and left is %+v, %v", before, files, bytes, left, err)
	}
	w.must(w.disk.Remove(t.Context(), w.folder, count))
	if files != before.Files || bytes != before.Bytes {
		t.Errorf("told is of %d files of %d bytes, and there were %+v", files, bytes, before)
	}
	w.must(w.disk.PutBack(w.folder)) // of which nothing is left
	if entries, err := os.ReadDir(w.disk.Dir); err != nil || len(entries) != 0 {
		t.Errorf("there is still %v, %v", entries, err)
	}
	w.unharmed()
}

func TestWhatIsLinkedIsADirectory(t *testing.T) {
	w := newWorld(t)
	link := filepath.Join(t.TempDir(), "link")
	w.must(os.Symlink(w.outside, link))
	w.must(w.disk.CheckLink(link))
	for _, path := range []string{filepath.Join(w.outside, "none"), filepath.Join(w.outside, "secret")} {
		if err := w.disk.CheckLink(path); session.CodeOf(err) != "file_use_invalid" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What lies at the path of a linked folder must be the directory that was linked,
// whoever may write beside it.
func TestALinkedFolderIsTheDirectoryThatWasLinked(t *testing.T) {
	w := newWorld(t)
	for name, replace := range map[string]func(path string) error{
		"by a link to another directory": func(path string) error { return os.Symlink(w.outside, path) },
		"by another directory": func(path string) error {
			return os.Rename(filepath.Join(filepath.Dir(path), "another"), path)
		},
		"by a link to where it was moved":       func(path string) error { return os.Symlink(path+"-away", path) },
		"by a link, and it was linked long ago": func(path string) error { return os.Symlink(w.outside, path) },
		"by another one that begins with a link": func(path string) error {
			return os.Symlink(filepath.Dir(w.outside),
				path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			w.must(err)
			linked := session.Folder{ID: "abc", Name: "linked",
				FolderOrigin: session.FolderOrigin{Path: filepath.Join(dir, "linked")}}
			w.must(errors.Join(os.MkdirAll(filepath.Join(linked.Path, filepath.Base(w.outside)), 0o755),
				os.Mkdir(filepath.Join(dir, "another"), 0o755)))
			info, err := os.Lstat(linked.Path)
			w.must(err)
			if _, linked.Inode = identity(info); strings.Contains(name, "long ago") {
				linked.Inode = 0
			}
			if source, err := w.disk.Find(linked, ""); err != nil || source.Path != linked.Path || source.Inode == 0 {
				t.Fatalf("before: %+v, %v", source, err)
			}
			w.must(errors.Join(os.Rename(linked.Path, linked.Path+"-away"), replace(linked.Path)))
			for _, sub := range []string{"", filepath.Base(w.outside)} {
				if source, err := w.disk.Find(linked, sub); session.CodeOf(err) != session.CodeFolderChanged {
					t.Errorf("%q is mounted from %+v, %v", sub, source, err)
				}
			}
			if tree, err := w.disk.Open(linked); err == nil {
				t.Errorf("it is opened: %v", tree.Close())
			}
			if !w.disk.Missing(linked) {
				t.Error("it does not count as missing")
			}
		})
	}
}

func TestUsageCountsEachFileOnce(t *testing.T) {
	w := newWorld(t)
	w.must(os.MkdirAll(w.at("a"), 0o755))
	w.must(os.WriteFile(w.at("a", "one"), make([]byte, 1000), 0o600))
	w.must(os.Link(w.at("a", "one"), w.at("two")))
	w.must(os.WriteFile(w.at("three"), make([]byte, 24), 0o600))
	w.must(os.Symlink(w.outside, w.at("link")))
	usage, err := w.disk.Measure(t.Context(), w.folder)
	if err != nil || usage.Bytes != 1024 || usage.Files != 3 || usage.Partial {
		t.Errorf("%+v, %v", usage, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.disk.Measure(gone, w.folder); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestACountIsGivenUpForAFolderThatGoes(t *testing.T) {
	began, ended := make(chan session.FolderID), make(chan error, 1)
	c := NewCounter(func(ctx context.Context, id session.FolderID) error {
		began <- id
		if id == "large" {
			<-ctx.Done()
			ended <- ctx.Err()
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); c.Run(ctx) }()
	c.Ask("large")
	if id := <-began; id != "large" || !c.Counting("large") {
		t.Errorf("%s is counted", id)
	}
	c.Ask("next")
	c.Ask("large") // once more
	c.Forget("large")
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if id := <-began; id != "next" {
		t.Errorf("then %s is counted", id)
	}
	cancel()
	<-over
	if c.Counting("large") {
		t.Error("it is counted all the same")
	}
}
