package notebook_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"slipway/backend/engine/sim/notebook"
)

// tree is a session's file system in a directory of the test. Like the real one
// it cannot be left, and what is in readOnly cannot be changed.
type tree struct {
	root     *os.Root
	readOnly string
}

func rel(p string) string { return filepath.FromSlash(strings.TrimPrefix(p, "/")) }

func (t tree) free(p string) error {
	if t.readOnly != "" && strings.HasPrefix(p, t.readOnly) {
		return fs.ErrPermission
	}
	return nil
}

func (t tree) OpenFile(p string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		if err := t.free(p); err != nil {
			return nil, err
		}
	}
	return t.root.OpenFile(rel(p), flag, perm)
}
func (t tree) Stat(p string) (fs.FileInfo, error)  { return t.root.Stat(rel(p)) }
func (t tree) Lstat(p string) (fs.FileInfo, error) { return t.root.Lstat(rel(p)) }
func (t tree) ReadDir(p string) ([]fs.DirEntry, error) {
	return fs.ReadDir(t.root.FS(), strings.TrimPrefix(p, "/"))
}
func (t tree) Mkdir(p string) error              { return errors.Join(t.free(p), t.root.Mkdir(rel(p), 0o755)) }
func (t tree) Rename(from, to string) error      { return t.root.Rename(rel(from), rel(to)) }
func (t tree) Link(from, to string) error        { return t.root.Link(rel(from), rel(to)) }
func (t tree) Remove(p string) error             { return t.root.Remove(rel(p)) }
func (t tree) RemoveAll(p string) error          { return t.root.RemoveAll(rel(p)) }
func (t tree) Readlink(p string) (string, error) { return t.root.Readlink(rel(p)) }
func (t tree) Symlink(target, p string) error    { return t.root.Symlink(target, rel(p)) }
func (t tree) SetAttributes(p string, mode fs.FileMode, modified time.Time) error {
	return errors.Join(t.root.Chmod(rel(p), mode), t.root.Chtimes(rel(p), time.Time{}, modified))
}

// desk is a notebook over a session's files, and who asks it.
type desk struct {
	t    *testing.T
	home string // of the session, on this machine
	url  string
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"etc/passwd": "root", "home/work/data.csv": "a,b\n1,2\n",
		"home/work/models/one.txt": "one", "home/work/fixed/old.txt": "old"} {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	page := fstest.MapFS{"index.html": {Data: []byte("<p>page</p>")}, "assets/a.js.gz": {Data: packed(t, "let a = 1")},
		"assets/p.wasm.gz": {Data: packed(t, "wasm")}}
	server := httptest.NewServer(notebook.Handler(notebook.Config{Files: tree{root, "/home/work/fixed"},
		Home: "/home/work", Page: page}))
	t.Cleanup(server.Close)
	return &desk{t: t, home: filepath.Join(dir, "home", "work"), url: server.URL}
}

// answer is what came back.
type answer struct {
	status int
	body   string
	header http.Header
}

func (d *desk) ask(method, path string, query url.Values, body string, headers ...string) answer {
	d.t.Helper()
	request, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path+"?"+query.Encode(),
		strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return answer{response.StatusCode, string(data), response.Header}
}

func (d *desk) disk(method, op, path string, more ...string) answer {
	d.t.Helper()
	query := url.Values{"path": {path}}
	body := ""
	for i := 0; i < len(more); i += 2 {
		if more[i] == "body" {
			body = more[i+1]
			continue
		}
		query.Set(more[i], more[i+1])
	}
	return d.ask(method, "/api/disk/"+op, query, body)
}

func (d *desk) file(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.home, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

func (a answer) code(t *testing.T) string {
	t.Helper()
	var said struct{ Code, Errno string }
	if err := json.Unmarshal([]byte(a.body), &said); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return said.Code + said.Errno
}

func TestNoPathLeavesTheFolder(t *testing.T) {
	d := newDesk(t)
	if err := os.Symlink("../../etc/passwd", filepath.Join(d.home, "link")); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(d.home, "out"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../../etc/passwd", "/../../etc/passwd", "models/../../../etc/passwd", "..", "out",
		"out/x"} {
		for _, got := range []answer{
			d.disk("GET", "read", path, "length", "100"), d.ask("GET", "/api/contents", url.Values{"path": {path}}, ""),
			d.disk("POST", "write", path, "body", "x"), d.disk("POST", "truncate", path),
		} {
			if got.status < 400 || strings.Contains(got.body, "root") || strings.Contains(got.body, "secret") {
				t.Errorf("%s: got %d %q", path, got.status, got.body)
			}
		}
	}
	if got := d.disk("POST", "create", "../../etc/new"); got.code(t) != "ENOENT" {
		t.Errorf("got %d %q", got.status, got.body)
	}
	if got := d.disk("POST", "rename", "data.csv", "to", "../../../../etc/data.csv"); got.code(t) != "ENOENT" {
		t.Errorf("got %d %q", got.status, got.body)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestThePageSavesNothingOverWhatItHasNotSeen(t *testing.T) {
	d := newDesk(t)
	at := url.Values{"path": {"data.csv"}}
	read := d.ask("GET", "/api/contents", at, "")
	version := read.header.Get("Slipway-Version")
	if read.status != http.StatusOK || read.body != "a,b\n1,2\n" || version == "" {
		t.Fatalf("got %+v", read)
	}
	saved := d.ask("PUT", "/api/contents", at, "mine", "Slipway-Version", version)
	if saved.status != http.StatusNoContent || d.file("data.csv") != "mine" {
		t.Fatalf("got %+v", saved)
	}
	t.Run("an old version is refused and nothing changes", func(t *testing.T) {
		if got := d.ask("PUT", "/api/contents", at, "yours", "Slipway-Version",
			version); got.status != http.StatusPreconditionFailed || got.code(t) != "file_use_changed" ||
			d.file("data.csv") != "mine" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the new version goes on", func(t *testing.T) {
		if got := d.ask("PUT", "/api/contents", at, "more", "Slipway-Version",
			saved.header.Get("Slipway-Version")); got.status != http.StatusNoContent || d.file("data.csv") != "more" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a new file does not replace an old one", func(t *testing.T) {
		if got := d.ask("PUT", "/api/contents", at, "new", "Slipway-Version",
			"new"); got.status != http.StatusPreconditionFailed || got.code(t) != "file_use_already-exists" ||
			d.file("data.csv") != "more" {
			t.Errorf("got %+v", got)
		}
		if got := d.ask("PUT", "/api/contents", url.Values{"path": {"new.ipynb"}}, "{}", "Slipway-Version",
			"new"); got.status != http.StatusNoContent || d.file("new.ipynb") != "{}" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("one that has gone is not made again unasked", func(t *testing.T) {
		if got := d.ask("PUT", "/api/contents", url.Values{"path": {"gone.ipynb"}}, "{}", "Slipway-Version",
			version); got.code(t) != "file_use_changed" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a person may replace whatever is there", func(t *testing.T) {
		if got := d.ask("PUT", "/api/contents", at, "forced"); got.status != http.StatusNoContent ||
			d.file("data.csv") != "forced" {
			t.Errorf("got %+v", got)
		}
	})
	entries, err := os.ReadDir(d.home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".part") {
			t.Errorf("%s was left", e.Name())
		}
	}
}

func TestTheDiskIsThatOfTheSession(t *testing.T) {
	d := newDesk(t)
	ok := func(got answer) {
		t.Helper()
		if got.status >= 300 {
			t.Fatalf("got %d %q", got.status, got.body)
		}
	}
	ok(d.disk("POST", "mkdir", "out"))
	ok(d.disk("POST", "create", "out/a.txt", "mode", "420"))
	ok(d.disk("POST", "write", "out/a.txt", "offset", "0", "body", "hello world"))
	ok(d.disk("POST", "write", "out/a.txt", "offset", "6", "body", "there"))
	if got := d.disk("GET", "read", "out/a.txt", "offset", "6", "length", "3"); got.body != "the" {
		t.Errorf("got %q", got.body)
	}
	if got := d.disk("GET", "read", "out/a.txt", "offset", "100", "length", "3"); got.status != http.StatusOK ||
		got.body != "" {
		t.Errorf("got %+v", got)
	}
	ok(d.disk("POST", "truncate", "out/a.txt", "size", "5"))
	ok(d.disk("POST", "rename", "out/a.txt", "to", "out/b.txt"))
	ok(d.disk("POST", "symlink", "out/c", "target", "b.txt"))
	if d.file("out/b.txt") != "hello" || d.disk("GET", "readlink", "out/c").body != "\"b.txt\"\n" ||
		d.disk("GET", "list", "out").body != "[\"b.txt\",\"c\"]\n" {
		t.Errorf("got %q %q", d.disk("GET", "list", "out").body, d.file("out/b.txt"))
	}
	var told struct {
		Mode           uint32
		Size, Modified int64
	}
	if err := json.Unmarshal([]byte(d.disk("GET", "stat", "out/b.txt").body), &told); err != nil ||
		told.Mode&0o170000 != 0o100000 || told.Size != 5 || time.Since(time.UnixMilli(told.Modified)) > time.Hour {
		t.Errorf("got %+v, %v", told, err)
	}
	for _, c := range []struct{ op, path, want string }{
		{"rmdir", "out", "ENOTEMPTY"}, {"rmdir", "data.csv", "ENOTDIR"}, {"rmdir", "", "EBUSY"},
		{"unlink", "out", "EISDIR"}, {"unlink", "none", "ENOENT"},
		{"create", "data.csv", "EEXIST"}, {"write", "models", "EISDIR"}, {"write", "none", "ENOENT"},
		{"create", "fixed/new.txt", "EACCES"}, {"write", "fixed/old.txt", "EACCES"},
	} {
		if got := d.disk("POST", c.op, c.path); got.status < 400 || got.code(t) != c.want {
			t.Errorf("%s %q: got %d %q, want %s", c.op, c.path, got.status, got.body, c.want)
		}
	}
	if got := d.disk("GET", "read", "data.csv", "offset", "-1"); got.code(t) != "EINVAL" {
		t.Errorf("got %+v", got)
	}
	ok(d.disk("POST", "unlink", "out/c"))
	ok(d.disk("POST", "unlink", "out/b.txt"))
	ok(d.disk("POST", "rmdir", "out"))
}

func TestThePageIsShutAgainstOthers(t *testing.T) {
	d := newDesk(t)
	page := d.ask("GET", "/", nil, "")
	if page.body != "<p>page</p>" || !strings.Contains(page.header.Get("Content-Security-Policy"),
		"default-src 'none'") || page.header.Get("Cross-Origin-Embedder-Policy") != "require-corp" {
		t.Errorf("got %+v", page)
	}
	for _, encoding := range []string{"gzip", "identity"} {
		got := d.ask("GET", "/assets/p.wasm", nil, "", "Accept-Encoding", encoding)
		if got.header.Get("Content-Type") != "application/wasm" ||
			(got.header.Get("Content-Encoding") == "gzip") != (encoding == "gzip") || encoding == "identity" &&
			got.body != "wasm" {
			t.Errorf("%s: got %+v", encoding, got)
		}
	}
	if got := d.ask("GET", "/assets/../../etc/passwd", nil, ""); got.status != http.StatusNotFound {
		t.Errorf("got %+v", got)
	}
	if got := d.ask("POST", "/api/disk/unlink", url.Values{"path": {"data.csv"}}, "", "Origin",
		"http://elsewhere.test"); got.status != http.StatusForbidden || d.file("data.csv") == "" {
		t.Errorf("got %+v", got)
	}
}

func TestTheAddressOfANotebookIsAsInJupyter(t *testing.T) {
	d := newDesk(t)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{"/lab/tree/a/my%20notes.ipynb": "/#a/my%20notes.ipynb",
		"/notebooks/Untitled.ipynb": "/#Untitled.ipynb"} {
		got, err := client.Get(d.url + path)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close() //nolint:errcheck // nothing is read
		if got.StatusCode != http.StatusFound || got.Header.Get("Location") != want {
			t.Errorf("%s: got %s, %v", path, got.Status, got.Header)
		}
	}
}

func TestKernelsAreToldAsJupyterTellsThem(t *testing.T) {
	d := newDesk(t)
	list := func() (kernels []struct {
		State string    `json:"execution_state"`
		Last  time.Time `json:"last_activity"`
	}) {
		t.Helper()
		if err := json.Unmarshal([]byte(d.ask("GET", "/api/kernels", nil, "").body), &kernels); err != nil {
			t.Fatal(err)
		}
		return kernels
	}
	if got := list(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	d.ask("PUT", "/api/kernels/one", nil, `{"state":"busy"}`)
	if got := list(); len(got) != 1 || got[0].State != "busy" || time.Since(got[0].Last) > time.Hour {
		t.Errorf("got %+v", got)
	}
	d.ask("PUT", "/api/kernels/one", nil, `{"state":"idle"}`)
	idle := list()
	d.ask("PUT", "/api/kernels/one", nil, `{"state":"idle"}`)
	if got := list(); len(got) != 1 || got[0].State != "idle" || !got[0].Last.Equal(idle[0].Last) {
		t.Errorf("a page that is only open counts as use: %+v", got)
	}
	if got := d.ask("PUT", "/api/kernels/two", nil, `{"state":"dead"}`); got.status != http.StatusBadRequest {
		t.Errorf("got %+v", got)
	}
	d.ask("DELETE", "/api/kernels/one", nil, "")
	if got := list(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}
