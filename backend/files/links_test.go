package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/files"
	"slipway/backend/session"
)

func TestLinksAreMadeAsTheyAreGiven(t *testing.T) {
	dir := t.TempDir()
	tree := files.Tree{FS: files.Of(under{dir}), Home: "/"}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o640); err != nil {
		t.Fatal(err)
	}
	for i, target := range []session.FilePath{"file", "./file", "nowhere", "/etc/../etc/passwd", "../..", "\xff\n",
		session.FilePath(strings.Repeat("x/", 2000))} {
		name := session.FilePath(fmt.Sprint("link-", i))
		for range 2 { // it can be repeated
			if err := tree.MakeLink(t.Context(), name, target); err != nil {
				t.Fatalf("%q: %v", target, err)
			}
		}
		info, err := tree.StatFile(t.Context(), name)
		if err != nil || !info.Link || info.Target != target {
			t.Errorf("%q became %+v, %v", target, info, err)
		}
		if leads := info.Kind == session.KindFile && info.Size == 7; leads != (i < 2) {
			t.Errorf("%q leads to %+v", target, info)
		}
	}
	for what, c := range map[string]struct {
		path, target session.FilePath
		code         session.Code
	}{
		"another target":  {"link-0", "nowhere", session.CodeFileExists},
		"onto a file":     {"file", "nowhere", session.CodeFileExists},
		"in no directory": {"none/link", "file", session.CodeFileNotFound},
		"a zero":          {"new", "a\x00b", session.CodeFileInvalid},
		"too long":        {"new", session.FilePath(strings.Repeat("x", 4096)), session.CodeFileInvalid},
		"nothing":         {"new", "", session.CodeFileNotFound},
	} {
		if err := tree.MakeLink(t.Context(), c.path, c.target); session.CodeOf(err) != c.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "file")); string(got) != "content" || err != nil {
		t.Errorf("the file is %q, %v", got, err)
	}
	if info, err := tree.StatFile(t.Context(), "file"); err != nil || info.Link || info.Target != "" {
		t.Errorf("the file is %+v, %v", info, err)
	}
}

func TestAListingWithLongTargetsFitsIntoAMessage(t *testing.T) {
	dir := t.TempDir()
	tree := files.Tree{FS: files.Of(under{dir}), Home: "/"}
	const links = 100
	for i := range links {
		if err := os.Symlink(strings.Repeat("x/", 2000), filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	seen, req := 0, session.ListRequest{Path: "/"}
	for more := true; more; {
		listing, err := tree.ListFiles(t.Context(), req)
		if err != nil || len(listing.Entries) == 0 || len(listing.Entries) > links*2/3 {
			t.Fatalf("%d entries, %v", len(listing.Entries), err)
		}
		seen += len(listing.Entries)
		req.After, more = listing.Entries[len(listing.Entries)-1].Name, listing.More
	}
	if seen != links {
		t.Errorf("%d links were listed", seen)
	}
}

func TestAttributesAreSet(t *testing.T) {
	dir := t.TempDir()
	tree := files.Tree{FS: files.Of(under{dir}), Home: "/"}
	at := time.Unix(1_700_000_000, 123_456_789)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "shared"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "shared"), 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	for _, name := range []session.FilePath{"file", "shared"} {
		for _, want := range []session.Attributes{{Mode: 0o500, Modified: at}, {Mode: 0o7750}} {
			if err := tree.SetAttributes(t.Context(), name, want); err != nil {
				t.Fatal(err)
			}
			info, err := tree.StatFile(t.Context(), name)
			if err != nil || info.Mode != want.Mode&0o777 || !info.Modified.Equal(at) {
				t.Errorf("%s is %+v, %v", name, info, err)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "file")); err != nil || info.Mode() != 0o750 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "shared")); err != nil || info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("the directory is %v, %v", info.Mode(), err)
	}
	for path, code := range map[session.FilePath]session.Code{"/": session.CodeFileConflict,
		"shared/..": session.CodeFileConflict, "none": session.CodeFileNotFound} {
		if err := tree.SetAttributes(t.Context(), path, session.Attributes{}); session.CodeOf(err) != code {
			t.Errorf("%s: %v", path, err)
		}
	}
}
