package server_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/files"
	"slipway/backend/session"
)

// diskFiles is [session.Files] in a directory of this machine.
type diskFiles struct{ tree files.Tree }

type rootFS struct{ *os.Root }

func rel(p string) string {
	if p = strings.TrimPrefix(p, "/"); p == "" {
		return "."
	}
	return p
}

func (r rootFS) OpenFile(p string, flag int, perm fs.FileMode) (*os.File, error) {
	return r.Root.OpenFile(rel(p), flag, perm)
}
func (r rootFS) Stat(p string) (fs.FileInfo, error)  { return r.Root.Stat(rel(p)) }
func (r rootFS) Lstat(p string) (fs.FileInfo, error) { return r.Root.Lstat(rel(p)) }
func (r rootFS) ReadDir(p string) ([]fs.DirEntry, error) {
	return fs.ReadDir(r.FS(), rel(p))
}
func (r rootFS) Mkdir(p string) error     { return r.Root.Mkdir(rel(p), 0o755) }
func (r rootFS) Rename(a, b string) error { return r.Root.Rename(rel(a), rel(b)) }
func (r rootFS) Link(a, b string) error   { return r.Root.Link(rel(a), rel(b)) }
func (r rootFS) Remove(p string) error    { return r.Root.Remove(rel(p)) }
func (r rootFS) RemoveAll(p string) error { return r.Root.RemoveAll(rel(p)) }
func (r rootFS) Readlink(p string) (string, error) {
	return r.Root.Readlink(rel(p))
}
func (r rootFS) Symlink(target, p string) error { return r.Root.Symlink(target, rel(p)) }
func (r rootFS) SetAttributes(p string, mode fs.FileMode, modified time.Time) error {
	return errors.Join(r.Chmod(rel(p), mode), r.Chtimes(rel(p), time.Time{}, modified))
}

func (d diskFiles) ListFiles(ctx context.Context, _ session.Place,
	req session.ListRequest) (session.FileListing, error) {
	return d.tree.ListFiles(ctx, req)
}
func (d diskFiles) StatFile(ctx context.Context, _ session.Place, p session.FilePath) (session.FileInfo, error) {
	return d.tree.StatFile(ctx, p)
}
func (d diskFiles) ReadFile(ctx context.Context, _ session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	return d.tree.ReadFile(ctx, req)
}
func (d diskFiles) ChecksumFile(ctx context.Context, _ session.Place, p session.FilePath) (string, error) {
	return d.tree.ChecksumFile(ctx, p)
}
func (d diskFiles) UploadOffset(ctx context.Context, _ session.Place, up session.Upload) (int64, error) {
	return d.tree.UploadOffset(ctx, up)
}
func (d diskFiles) WriteUpload(ctx context.Context, _ session.Place, up session.Upload, from io.Reader) (int64, error) {
	return d.tree.WriteUpload(ctx, up, from)
}
func (d diskFiles) FinishUpload(ctx context.Context, _ session.Place,
	req session.FinishRequest) (session.FileInfo, error) {
	return d.tree.FinishUpload(ctx, req)
}
func (d diskFiles) DropUpload(ctx context.Context, _ session.Place, up session.Upload) error {
	return d.tree.DropUpload(ctx, up)
}
func (d diskFiles) MakeLink(ctx context.Context, _ session.Place, p, target session.FilePath) error {
	return d.tree.MakeLink(ctx, p, target)
}
func (d diskFiles) SetAttributes(ctx context.Context, _ session.Place, p session.FilePath, a session.Attributes) error {
	return d.tree.SetAttributes(ctx, p, a)
}
func (d diskFiles) MakeDirectory(ctx context.Context, _ session.Place, p session.FilePath, parents bool) error {
	return d.tree.MakeDirectory(ctx, p, parents)
}
func (d diskFiles) MoveFile(ctx context.Context, _ session.Place, from, to session.FilePath) error {
	return d.tree.MoveFile(ctx, from, to)
}
func (d diskFiles) RemoveFile(ctx context.Context, _ session.Place, p session.FilePath, all bool) error {
	return d.tree.RemoveFile(ctx, p, all)
}

// startWithFiles starts a server over an agent whose files lie on the disk, in
// the directory returned.
func startWithFiles(t *testing.T) (*world, *os.Root) {
	t.Helper()
	w := start(t)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	onDisk := diskFiles{files.Tree{FS: files.Of(rootFS{root}), Home: "/"}}
	w.agent.Files, w.agent.Uploads = onDisk, onDisk
	return w, root
}

func TestFilesAreServedByRange(t *testing.T) {
	w, _ := startWithFiles(t)
	w.agent.Put(session.Session{ID: "abcdefghijkl", Name: "work-one", Status: session.Running})
	const base = "/api/v1/sessions/work-one/files"
	ask := func(method, path, body string, status int) (*http.Response, string) {
		t.Helper()
		response, got := do(t, http.DefaultClient, w.request(t, method, base+path, body))
		if response.StatusCode != status {
			t.Errorf("%s %s: %s %s", method, path, response.Status, got)
		}
		return response, got
	}
	const text = "0123456789 a file, page <script>"
	sum := sha256.Sum256([]byte(text))
	ask("POST", "/directory?path=dir%0Awith%FF&parents=1", "", 204)
	const name = "path=dir%0Awith%FF%2Fpage.html"
	ask("PUT", "/upload?key=k1&"+name, text[:10], 200)
	if _, got := ask("GET", "/upload?key=k1&"+name, "", 200); !strings.Contains(got, `"offset":10`) {
		t.Errorf("it stands at %s", got)
	}
	ask("PUT", "/upload?key=k1&offset=11&"+name, "gap", 409)
	ask("PUT", "/upload?key=k1&offset=10&"+name, text[10:], 200)
	ask("PUT", "/upload?key=..%2F&"+name, "x", 422)
	ask("POST", "/upload?key=k1&"+name, `{"size":3}`, 409)
	ask("POST", "/upload?key=k1&"+name,
		`{"size":`+strconv.Itoa(len(text))+`,"sha256":"`+hex.EncodeToString(sum[:])+`","mode":"600"}`, 200)
	response, got := ask("GET", "/content?"+name, "", 200)
	if got != text || response.Header.Get("Content-Type") != "application/octet-stream" ||
		!strings.HasPrefix(response.Header.Get("Content-Disposition"), "attachment") ||
		!strings.Contains(response.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("%q with %v", got, response.Header)
	}
	part := w.request(t, "GET", base+"/content?"+name, "")
	part.Header.Set("Range", "bytes=5-8")
	part.Header.Set("If-Range", response.Header.Get("ETag"))
	if response, got := do(t, http.DefaultClient, part); response.StatusCode != 206 || got != text[5:9] {
		t.Errorf("a part: %s %q", response.Status, got)
	}
	part.Header.Set("If-Range", `"another"`)
	if response, got := do(t, http.DefaultClient, part); response.StatusCode != 200 || got != text {
		t.Errorf("a part of another version: %s %q", response.Status, got)
	}
	if response, got := ask("HEAD", "/content?"+name, "", 200); response.ContentLength != int64(len(text)) ||
		got != "" {
		t.Errorf("its head: %v", response.Header)
	}
	if _, got := ask("GET", "?path=", "", 200); !strings.Contains(got, `"encoded":"dir%0Awith%FF"`) {
		t.Errorf("the list: %s", got)
	}
	ask("GET", "/content?path=dir%0Awith%FF", "", 409)
	ask("GET", "/stat?path=..%2F..%2Fetc%2Fpasswd", "", 404)
	ask("DELETE", "?path=dir%0Awith%FF", "", 409)
	ask("DELETE", "?recursive=1&path=dir%0Awith%FF", "", 204)
	ask("GET", "/checksum?"+name, "", 404)
}

// onDisk tells that it reads a file of this machine, and counts what passes
// through the program nevertheless.
type onDisk struct {
	*os.File
	through *atomic.Int64
}

func (d onDisk) OnDisk() (*os.File, bool) { return d.File, true }

func (d onDisk) Read(p []byte) (int, error) {
	n, err := d.File.Read(p)
	d.through.Add(int64(n))
	return n, err
}

type onDiskFiles struct {
	diskFiles
	through atomic.Int64
}

func (d *onDiskFiles) ReadFile(ctx context.Context, place session.Place,
	req session.ReadRequest) (io.ReadCloser, error) {
	content, err := d.diskFiles.ReadFile(ctx, place, req)
	if file, ok := content.(*os.File); ok {
		return onDisk{file, &d.through}, err
	}
	return content, err
}

// What is a file of this machine goes from the disk to the connection. The
// library looks at the first bytes of every answer.
func TestAFileOfThisMachineDoesNotPassThroughTheProgram(t *testing.T) {
	const mostSniffed = 512
	w, root := startWithFiles(t)
	dir := root.Name()
	files := &onDiskFiles{diskFiles: diskFiles{files.Tree{FS: files.Of(rootFS{root}), Home: "/"}}}
	w.agent.Files, w.agent.Uploads = files, files
	w.agent.Put(session.Session{ID: "abcdefghijkl", Name: "work-one", Status: session.Running})
	whole := strings.Repeat("0123456789abcdef", 1<<16)
	if err := os.WriteFile(filepath.Join(dir, "large"), []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	for ranges, wanted := range map[string]string{"": whole, "bytes=100003-": whole[100003:],
		"bytes=5-700004": whole[5:700005], "bytes=-4": whole[len(whole)-4:]} {
		files.through.Store(0)
		request := w.request(t, "GET", "/api/v1/sessions/work-one/files/content?path=large", "")
		if ranges != "" {
			request.Header.Set("Range", ranges)
		}
		response, got := do(t, http.DefaultClient, request)
		if got != wanted || response.ContentLength != int64(len(wanted)) {
			t.Errorf("%q: %s, %d bytes, not %d, or others", ranges, response.Status, len(got), len(wanted))
		}
		if n := files.through.Load(); runtime.GOOS == "linux" && n > mostSniffed {
			t.Errorf("%q: %d bytes passed through the program", ranges, n)
		}
	}
	request := w.request(t, "GET", "/api/v1/sessions/work-one/files/content?path=large", "")
	request.Header.Set("Range", "bytes=0-1,7-9")
	if response, got := do(t, http.DefaultClient, request); response.StatusCode != http.StatusPartialContent ||
		!strings.Contains(got, "\r\n\r\n789\r\n") {
		t.Errorf("two parts: %s %q", response.Status, got)
	}
}
