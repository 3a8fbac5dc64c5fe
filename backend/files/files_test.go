package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/files"
	"slipway/backend/session"
)

// under is a directory of this machine as a tree of its own, without a guard:
// the operations must be safe by themselves as far as names go.
type under struct{ dir string }

func (u under) at(p string) string { return filepath.Join(u.dir, p) }
func (u under) OpenFile(p string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(u.at(p), flag, perm)
}
func (u under) Stat(p string) (fs.FileInfo, error)      { return os.Stat(u.at(p)) }
func (u under) Lstat(p string) (fs.FileInfo, error)     { return os.Lstat(u.at(p)) }
func (u under) ReadDir(p string) ([]fs.DirEntry, error) { return os.ReadDir(u.at(p)) }
func (u under) Mkdir(p string) error                    { return os.Mkdir(u.at(p), 0o755) }
func (u under) Rename(a, b string) error                { return os.Rename(u.at(a), u.at(b)) }
func (u under) Link(a, b string) error                  { return os.Link(u.at(a), u.at(b)) }
func (u under) Readlink(p string) (string, error)       { return os.Readlink(u.at(p)) }
func (u under) Symlink(target, p string) error          { return os.Symlink(target, u.at(p)) }
func (u under) Remove(p string) error                   { return os.Remove(u.at(p)) }
func (u under) RemoveAll(p string) error                { return os.RemoveAll(u.at(p)) }
func (u under) SetAttributes(p string, mode fs.FileMode, modified time.Time) error {
	return errors.Join(os.Chmod(u.at(p), mode), os.Chtimes(u.at(p), time.Time{}, modified))
}

func TestTenThousandFilesAreListedQuickly(t *testing.T) {
	dir := t.TempDir()
	for i := range 10_000 {
		name := filepath.Join(dir, "file-"+strings.Repeat("x", i%50)+time.Duration(i).String())
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := files.Tree{FS: files.Of(under{dir}), Home: "/"}
	began := time.Now()
	seen, req := map[session.FilePath]bool{}, session.ListRequest{}
	for more := true; more; {
		listing, err := tree.ListFiles(t.Context(), req)
		if err != nil || listing.Total != 10_000 {
			t.Fatalf("%d of %d, %v", len(listing.Entries), listing.Total, err)
		}
		for _, e := range listing.Entries {
			seen[e.Name], req.After = true, e.Name
		}
		more = listing.More
	}
	t.Logf("%d in %v", len(seen), time.Since(began))
	if len(seen) != 10_000 {
		t.Errorf("%d names were listed", len(seen))
	}
}

// broken gives some bytes and fails.
type broken struct{ r io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("the connection was lost")
	}
	return n, err
}

func TestWhatCameBeforeAFailureStays(t *testing.T) {
	dir := t.TempDir()
	tree := files.Tree{FS: files.Of(under{dir}), Home: "/"}
	up := session.Upload{Path: "a.txt", Key: "k"}
	if _, err := tree.WriteUpload(t.Context(), up, broken{strings.NewReader("half")}); err == nil {
		t.Error("a lost connection was taken for an end")
	}
	if n, err := tree.UploadOffset(t.Context(), up); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file appeared: %v", err)
	}
	up.Offset = 2
	if n, err := tree.WriteUpload(t.Context(), up, strings.NewReader("lf and half")); n != 13 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	at := time.Unix(1_700_000_000, 0)
	info, err := tree.FinishUpload(t.Context(), session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: 13, Modified: at}})
	got, _ := os.ReadFile(filepath.Join(dir, "a.txt"))
	if err != nil || string(got) != "half and half" || !info.Modified.Equal(at) {
		t.Errorf("%q, %+v, %v", got, info, err)
	}
}

func FuzzNoNameLeavesItsTree(f *testing.F) {
	for _, name := range []string{"a", "../x", "/../../etc/passwd", "a/../../b", "line\nbreak", "\xff\xfe",
		".slipway-k.part", "a/", "", ".", "a\x00b", strings.Repeat("n", 300)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "tree")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		tree := files.Tree{FS: files.Of(under{dir}), Home: "/"}
		up := session.Upload{Path: session.FilePath(name), Key: "k"}
		if _, err := tree.WriteUpload(t.Context(), up, bytes.NewReader([]byte("content"))); err == nil {
			info, err := tree.FinishUpload(t.Context(),
				session.FinishRequest{Upload: up, Finish: session.Finish{Size: 7, Conflict: session.ConflictReplace}})
			if err == nil {
				if _, err := tree.StatFile(t.Context(), up.Path); err != nil {
					t.Errorf("%q became %q and is not found: %v", name, info.Name, err)
				}
			} else if session.CodeOf(err) == "" {
				t.Errorf("%q failed without a code: %v", name, err)
			}
		} else if session.CodeOf(err) == "" {
			t.Errorf("%q failed without a code: %v", name, err)
		}
		_ = tree.RemoveFile(context.Background(), up.Path, true) // it may not exist
		if entries, err := os.ReadDir(outer); err != nil || len(entries) != 1 {
			t.Errorf("%q left its tree: %v, %v", name, entries, err)
		}
	})
}

func FuzzPathsKeepEveryByte(f *testing.F) {
	f.Add("plain")
	f.Add("\xff\n{\"bytes\"")
	f.Fuzz(func(t *testing.T, name string) {
		data, err := session.FilePath(name).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var back session.FilePath
		if err := back.UnmarshalJSON(data); err != nil || string(back) != name {
			t.Errorf("%q came back as %q, %v", name, back, err)
		}
	})
}

// counted calls removed with every file that goes.
type counted struct {
	under
	removed func()
}

func (c counted) Remove(p string) error {
	err := c.under.Remove(p)
	if err == nil {
		c.removed()
	}
	return err
}

func TestARemovalIsCancelledOnItsWay(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		inner := filepath.Join(dir, "tree", string(rune('a'+i)))
		if err := os.MkdirAll(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(inner, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	removed := 0
	tree := files.Tree{Home: "/", FS: files.Of(counted{under{dir}, func() {
		if removed++; removed == 4 {
			cancel()
		}
	}})}
	if err := tree.RemoveFile(ctx, "tree", true); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tree")); err != nil || len(left) != 18 || removed != 4 {
		t.Errorf("%d were removed and %d are left, %v", removed, len(left), err)
	}
	if err := tree.RemoveFile(t.Context(), "tree", true); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
