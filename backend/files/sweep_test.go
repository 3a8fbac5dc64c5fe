package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/files"
	"slipway/backend/session"
)

func TestAbandonedUploadsAreSwept(t *testing.T) {
	for name, look := range map[string]func(files.Tree) error{
		"by a look at their directory": func(tree files.Tree) error {
			_, err := tree.ListFiles(t.Context(), session.ListRequest{Path: "/"})
			return err
		},
		"by the next upload beside them": func(tree files.Tree) error {
			_, err := tree.WriteUpload(t.Context(), session.Upload{Path: "b.txt", Key: "next"}, strings.NewReader("b"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tree := files.Tree{FS: files.Of(under{dir}), Home: "/"}
			age := map[string]time.Duration{"old": 8 * 24 * time.Hour, "recent": 6 * 24 * time.Hour}
			for key, old := range age {
				if _, err := tree.WriteUpload(t.Context(), session.Upload{Path: "a.txt", Key: key},
					strings.NewReader("half")); err != nil {
					t.Fatal(err)
				}
				then := time.Now().Add(-old)
				if err := os.Chtimes(filepath.Join(dir, ".slipway-"+key+".part"), then, then); err != nil {
					t.Fatal(err)
				}
			}
			own := filepath.Join(dir, "old.part")
			if err := os.WriteFile(own, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(own, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if err := look(tree); err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]int64{"old": 0, "recent": 4} {
				up := session.Upload{Path: "a.txt", Key: key}
				if n, err := tree.UploadOffset(t.Context(), up); n != want || err != nil {
					t.Errorf("%s: %d bytes are there, %v", key, n, err)
				}
			}
			if _, err := os.Stat(own); err != nil {
				t.Errorf("a person's own file: %v", err)
			}
		})
	}
}

// looked lists the directory before each change of a name.
type looked struct {
	under
	look func()
}

func (l looked) Rename(from, to string) error {
	l.look()
	return l.under.Rename(from, to)
}

func (l looked) Link(from, to string) error {
	l.look()
	return l.under.Link(from, to)
}

func TestAnUploadWithAnOldTimeIsNotSwept(t *testing.T) {
	for _, conflict := range []session.Conflict{session.ConflictFail, session.ConflictReplace} {
		dir := t.TempDir()
		tree := files.Tree{Home: "/"}
		tree.FS = files.Of(looked{under{dir}, func() {
			if _, err := tree.ListFiles(t.Context(), session.ListRequest{Path: "/"}); err != nil {
				t.Error(err)
			}
		}})
		up, then := session.Upload{Path: "a.txt", Key: "k"}, time.Unix(1_000_000_000, 123_456_789)
		if _, err := tree.WriteUpload(t.Context(), up, strings.NewReader("old")); err != nil {
			t.Fatal(err)
		}
		info, err := tree.FinishUpload(t.Context(), session.FinishRequest{Upload: up,
			Finish: session.Finish{Size: 3, Mode: 0o600, Modified: then, Conflict: conflict}})
		if err != nil || !info.Modified.Equal(then) || info.Mode != 0o600 {
			t.Errorf("%s: %+v, %v", conflict, info, err)
		}
	}
}
