package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

const folderFiles = "/api/v1/folders/abcdefghijkl/files"

// interrupted runs a command as [runIn] does. Ctrl-C is what a handler calls, and
// left is closed when the command has ended.
func (f *plane) interrupted(t *testing.T, args ...string) (ctrlC func(), left <-chan struct{}, run func() result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	return cancel, ended, func() result {
		defer close(ended)
		defer cancel()
		var stdout, stderr bytes.Buffer
		code := Main(ctx, testConfig(f.home, nil, &stdout, &stderr, args))
		return result{code, stdout.String(), stderr.String()}
	}
}

// withFolder answers for a folder.
func (f *plane) withFolder() {
	f.handle("GET /api/v1/folders/data", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.Folder{Folder: session.Folder{ID: "abcdefghijkl", Name: "data", State: "ready"}})
	})
}

func TestAnUploadThatIsInterruptedGoesOn(t *testing.T) {
	f := newPlane(t)
	f.withFolder()
	whole := noise(t, 32<<20) // more than any buffer on the way holds
	source := filepath.Join(t.TempDir(), "weights.bin")
	if err := os.WriteFile(source, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	var kept, finished []byte
	var begunAt []int64
	f.handle("GET "+folderFiles+"/stat", func(w http.ResponseWriter, r *http.Request) {
		if path := r.FormValue("path"); path != "" && finished == nil {
			refuse(w, session.Error{Code: "file_use_not-found",
				Message: "There is no such file."})
			return
		}
		reply(w, http.StatusOK, api.FileInfo{FileInfo: session.FileInfo{Kind: "directory"}, Name: "/"})
	})
	f.handle("GET "+folderFiles+"/upload", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.UploadState{Offset: int64(len(kept))})
	})
	ctrlC, left, run := f.interrupted(t, "cp", source, "folder:data/")
	f.handle("PUT "+folderFiles+"/upload", func(w http.ResponseWriter, r *http.Request) {
		at, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
		if err != nil || at != int64(len(kept)) {
			t.Errorf("it goes on at %s of %d: %v", r.URL.Query().Get("offset"), len(kept), err)
		}
		begunAt = append(begunAt, at)
		body := io.Reader(r.Body)
		if len(begunAt) == 1 {
			body = io.LimitReader(body, 1<<20)
		}
		some, err := io.ReadAll(body)
		if kept = append(kept, some...); len(begunAt) == 1 {
			ctrlC()
			<-left
			return
		}
		if err != nil {
			t.Error(err)
		}
		reply(w, http.StatusOK, api.UploadState{Offset: int64(len(kept))})
	})
	f.handle("POST "+folderFiles+"/upload", func(w http.ResponseWriter, r *http.Request) {
		var asked api.FinishRequest
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.SHA256 != sumOf(kept) ||
			asked.Size != int64(len(kept)) {
			t.Errorf("of %d bytes %s it is finished as %+v, %v", len(kept), sumOf(kept), asked, err)
		}
		finished = kept
		reply(w, http.StatusOK, api.FileInfo{FileInfo: session.FileInfo{Kind: "file"}, Name: "weights.bin"})
	})

	got := run()
	if got.code != ExitInterrupted || !strings.Contains(got.stderr, "the same command to resume") || finished != nil ||
		len(begunAt) != 1 {
		t.Fatalf("interrupted: %+v, begun %v, finished %d bytes", got, begunAt, len(finished))
	}
	got = f.run(t, "cp", source, "folder:data/")
	if got.code != ExitOK || len(begunAt) != 2 || begunAt[1] != 1<<20 || !bytes.Equal(finished, whole) {
		t.Errorf("again: %+v, begun at %v, finished %d of %d bytes", got, begunAt, len(finished), len(whole))
	}
}

func TestADownloadThatIsInterruptedGoesOn(t *testing.T) {
	f := newPlane(t)
	f.withFolder()
	whole := noise(t, 32<<20)
	info := api.FileInfo{FileInfo: session.FileInfo{Kind: "file", Size: int64(len(whole)), Version: "v1",
		Modified: noon}, Name: "weights.bin", Mode: "640"}
	f.handle("GET "+folderFiles+"/stat", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, info) })
	f.handle("GET "+folderFiles+"/checksum", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.Checksum{SHA256: sumOf(whole)})
	})
	dir := t.TempDir()
	part := func() (size int64) {
		found, err := filepath.Glob(filepath.Join(dir, ".slipway-*.part"))
		if err != nil || len(found) != 1 {
			return 0
		}
		there, err := os.Stat(found[0])
		if err != nil {
			return 0
		}
		return there.Size()
	}
	ctrlC, left, run := f.interrupted(t, "cp", "folder:data/weights.bin", dir)
	var begunAt []int64
	f.handle("GET "+folderFiles+"/content", func(w http.ResponseWriter, r *http.Request) {
		var at int64
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &at); err != nil ||
			r.Header.Get("If-Range") != `"v1"` {
			t.Errorf("asked for are %q, %q: %v", r.Header.Get("Range"), r.Header.Get("If-Range"), err)
		}
		begunAt = append(begunAt, at)
		w.Header().Set("ETag", `"v1"`)
		w.WriteHeader(http.StatusPartialContent)
		if len(begunAt) > 1 {
			_, _ = w.Write(whole[at:])
			return
		}
		_, _ = w.Write(whole[:24<<20])
		for part() == 0 && r.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		ctrlC()
		<-left
	})

	target := filepath.Join(dir, "weights.bin")
	got := run()
	there := part()
	if _, err := os.Lstat(target); got.code != ExitInterrupted ||
		!strings.Contains(got.stderr, "Run the same command to resume") || !os.IsNotExist(err) || there == 0 {
		t.Fatalf("interrupted: %+v, %d bytes are there, and the file itself: %v", got, there, err)
	}
	got = f.run(t, "cp", "folder:data/weights.bin", dir)
	content, err := os.ReadFile(target)
	if got.code != ExitOK || len(begunAt) != 2 || begunAt[1] != there || err != nil || !bytes.Equal(content, whole) ||
		part() != 0 {
		t.Errorf("again: %+v, begun at %v after %d, %d of %d bytes, %v", got, begunAt, there, len(content), len(whole),
			err)
	}
}

func TestAnInterruptEndsTheProbes(t *testing.T) {
	f := newPlane(t)
	ctrlC, _, run := f.interrupted(t, "doctor")
	gone := make(chan struct{})
	f.handle("GET /api/v1/doctor", func(_ http.ResponseWriter, r *http.Request) {
		defer close(gone)
		ctrlC()
		<-r.Context().Done()
	})
	if got := run(); got.code != ExitInterrupted {
		t.Errorf("%+v", got)
	}
	<-gone
}
