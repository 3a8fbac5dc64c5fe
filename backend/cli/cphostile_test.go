package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
)

// serveFiles has a session answer for files as an agent may that wants to write
// to this computer. Each directory below the first lists what inner does.
func serveFiles(f *plane, first, inner []api.FileInfo, content func(http.ResponseWriter)) {
	f.set(api.Session{Session: session.Session{ID: "abcdefghijkl", Name: "train-a", Status: "RUNNING",
		CreatedAt: noon}})
	const base = "GET /api/v1/sessions/{id}/files"
	f.handle(base+"/stat", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.FileInfo{FileInfo: session.FileInfo{Kind: "directory"}, Name: "results"})
	})
	f.handle(base, func(w http.ResponseWriter, r *http.Request) {
		listing := api.FileListing{Entries: first}
		if r.FormValue("path") != "results" {
			listing.Entries = inner
		}
		reply(w, http.StatusOK, listing)
	})
	f.handle(base+"/checksum", func(w http.ResponseWriter, _ *http.Request) {
		sum := sha256.Sum256([]byte("evil"))
		reply(w, http.StatusOK, api.Checksum{SHA256: hex.EncodeToString(sum[:])})
	})
	f.handle(base+"/content", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"v"`)
		content(w)
	})
}

func file(name string) api.FileInfo {
	return api.FileInfo{FileInfo: session.FileInfo{Kind: "file", Size: 4, Version: "v", Modified: noon}, Name: name,
		Mode: "7777"}
}

func evil(w http.ResponseWriter) { _, _ = w.Write([]byte("evil")) }

// TestACopyStaysInItsDirectory copies a directory whose names, kinds and links
// are made up to lead out of the one that is copied to.
func TestACopyStaysInItsDirectory(t *testing.T) {
	var first []api.FileInfo
	for _, name := range []string{
		"..", ".", "", "../evil", "../../evil", "/tmp/evil", "a/../../evil", "a/evil", "a\x00evil", "out/evil",
	} {
		directory := api.FileInfo{FileInfo: session.FileInfo{Kind: "directory"}, Name: name}
		encoded := file("innocent")
		encoded.Encoded = strings.NewReplacer("/", "%2F", "\x00", "%00").Replace(name)
		first = append(first, file(name), directory, encoded)
	}
	link := file("link")
	link.Link = true
	out, fine := api.FileInfo{FileInfo: session.FileInfo{Kind: "directory"}, Name: "out"},
		api.FileInfo{FileInfo: session.FileInfo{Kind: "directory"}, Name: "fine"}
	first = append(first, file("honest"), link, out, fine)
	f := newPlane(t)
	serveFiles(f, first, []api.FileInfo{file("evil")}, evil)
	around := t.TempDir()
	target, outside := filepath.Join(around, "target"), filepath.Join(around, "outside")
	for _, dir := range []string{filepath.Join(target, "results"), outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(target, "results", "out")); err != nil {
		t.Fatal(err)
	}
	got := f.run(t, "cp", "-r", "-f", "train-a:results", target)
	found := map[string]bool{}
	err := filepath.WalkDir(around, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(around, name)
		found[filepath.ToSlash(rel)] = true
		if info, statErr := entry.Info(); statErr != nil ||
			info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			t.Errorf("%s has the mode %v, %v", rel, info.Mode(), statErr)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range found {
		if !strings.HasPrefix(name, "target/results/") || strings.HasPrefix(path.Base(name), "link") {
			t.Errorf("the copy wrote %s", name)
		}
	}
	if !found["target/results/honest"] || got.code == ExitOK {
		t.Errorf("code %d, %v; a directory behind a link must be refused\n%s", got.code, found, got.stderr)
	}
	checkPrinted(t, "cp", got.stderr)
}

func TestACopyTakesNoMoreThanWasAnnounced(t *testing.T) {
	f := newPlane(t)
	const chunk, chunks = 1 << 20, 64
	sent := 0
	serveFiles(f, []api.FileInfo{file("endless")}, nil, func(w http.ResponseWriter) {
		for range chunks {
			if n, err := w.Write(make([]byte, chunk)); err != nil || n < chunk {
				return
			}
			sent += chunk
		}
	})
	target := t.TempDir()
	if got := f.run(t, "cp", "-r", "train-a:results", target); got.code == ExitOK {
		t.Errorf("it is taken for whole: %+v", got)
	}
	f.Close() // until then the handler may run
	if sent == chunk*chunks {
		t.Errorf("all of %d bytes were taken of a file of 4", sent)
	}
	err := filepath.WalkDir(target, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if info, err := entry.Info(); err != nil || info.Size() > 4 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestACopyOfAnEndlessDirectoryEnds(t *testing.T) {
	f := newPlane(t)
	again := []api.FileInfo{{FileInfo: session.FileInfo{Kind: "directory"}, Name: "again"}}
	serveFiles(f, again, again, evil)
	got := f.run(t, "cp", "-r", "train-a:results", t.TempDir())
	if got.code != ExitFailure || !strings.Contains(got.stderr, "(cli_command_failed)") {
		t.Errorf("%+.500v", got)
	}
}
