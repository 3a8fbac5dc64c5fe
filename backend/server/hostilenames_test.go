package server_test

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/server"
	"slipway/backend/session"
)

// hostileFiles is a place whose listing holds whatever an agent may send.
type hostileFiles struct {
	session.Files
	entries []session.FileInfo
}

func (f hostileFiles) StatFile(context.Context, session.Place, session.FilePath) (session.FileInfo, error) {
	return session.FileInfo{Name: "..", Kind: session.KindDirectory}, nil
}

func (f hostileFiles) ListFiles(
	_ context.Context, _ session.Place, req session.ListRequest,
) (session.FileListing, error) {
	if req.Path != "" || req.After != "" {
		return session.FileListing{Entries: []session.FileInfo{{Name: "inner", Kind: session.KindFile}}}, nil
	}
	return session.FileListing{Entries: f.entries}, nil
}

func (f hostileFiles) ReadFile(context.Context, session.Place, session.ReadRequest) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("evil")), nil
}

// hostileNames are names of files that lead out of a folder, or that a terminal
// or a program for archives takes for something else.
var hostileNames = []string{
	"", ".", "..", "../evil", "../../.ssh/authorized_keys", "/etc/cron.d/evil", "a/../../evil", "a/", "//host/share",
	`..\evil`, `..\..\evil`,
	`C:\evil`, "C:evil", "c:", `\\host\share\evil`, `\\?\C:\evil`, "... ", ".. ", " ..",
	"..\x00", "a\x00b", "a\nb", "a\rb",
	"\x1b]0;owned\a", "\u202egnp.exe",
	"\u0085", "\xff\xfe", "a/b", "~", "~/.bashrc", strings.Repeat("a", 70_000), ".", "..",
}

func TestAnArchiveStaysInItsDirectory(t *testing.T) {
	w := start(t)
	f, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	files := hostileFiles{Files: w.agent.Files}
	for _, name := range hostileNames {
		files.entries = append(files.entries, session.FileInfo{Name: session.FilePath(name), Kind: session.KindFile},
			session.FileInfo{Name: session.FilePath(name), Kind: session.KindDirectory})
	}
	files.entries = append(files.entries, session.FileInfo{Name: "honest.txt", Kind: session.KindFile, Size: -1 << 62})
	w.agent.Files = files
	r := w.request(t, "GET", "/api/v1/folders/"+string(f.ID)+"/files/zip?path=", "")
	response, body := do(t, http.DefaultClient, r)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", response.Status, body)
	}
	archive, err := zip.NewReader(strings.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	honest := false
	for _, file := range archive.File {
		honest = honest || path.Base(file.Name) == "honest.txt"
		checkEntry(t, file.Name)
	}
	if !honest || len(archive.File) < 10 {
		t.Errorf("the archive has %d files, the honest one: %v", len(archive.File), honest)
	}
}

// checkEntry fails for a name that does not stay where an archive is unpacked,
// on any system, or that changes how a list of names reads.
func checkEntry(t *testing.T, name string) {
	t.Helper()
	if len(name) > 8<<10 || strings.HasPrefix(name, "/") || strings.Contains(name, `\`) ||
		strings.ContainsFunc(name, session.Unprintable) {
		t.Errorf("the archive holds %.100q", name)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
		if strings.Trim(part, ". ") == "" || len(part) > 1 && part[1] == ':' && part[0] != '_' {
			t.Errorf("the archive holds %.100q", name)
		}
	}
}

func TestAnEndlessDirectoryEndsTheArchive(t *testing.T) {
	w := start(t)
	f, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	w.agent.Files = endlessFiles{hostileFiles{Files: w.agent.Files}}
	response, err := http.DefaultClient.Do(w.request(t, "GET", "/api/v1/folders/"+string(f.ID)+"/files/zip?path=", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	began := time.Now()
	n, err := io.Copy(io.Discard, response.Body)
	if err == nil {
		t.Errorf("%d bytes are taken for a whole archive", n)
	}
	t.Logf("ended after %s and %d bytes", time.Since(began).Round(time.Millisecond), n)
}

// endlessFiles is a directory that holds itself.
type endlessFiles struct{ hostileFiles }

func (f endlessFiles) ListFiles(context.Context, session.Place, session.ListRequest) (session.FileListing, error) {
	return session.FileListing{Entries: []session.FileInfo{{Name: "again", Kind: session.KindDirectory}}}, nil
}

func FuzzArchiveNames(f *testing.F) {
	for _, name := range hostileNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		entry, ok := server.ArchiveName(session.FilePath(name))
		if !ok {
			return
		}
		if strings.Contains(entry, "/") || entry == "" {
			t.Errorf("%q is %q", name, entry)
		}
		checkEntry(t, entry)
		var archive bytes.Buffer
		w := zip.NewWriter(&archive)
		if _, err := w.Create(entry); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	})
}

// TestAnAppsAddressStaysHere has an agent name apps that would become addresses
// of other hosts, with a ticket in them.
func TestAnAppsAddressStaysHere(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	web := session.App{Title: "Notebook", Kind: "web", Path: "/lab", Port: 8888, State: session.AppReady}
	offer := func(app session.App) (listed api.App, opened api.Opened, status int) {
		t.Helper()
		w.agent.SetApps("aaaaaaaaaaaa", app)
		var apps []api.App
		if status := w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/apps", "", &apps); status != 200 ||
			len(apps) != 1 {
			t.Fatalf("%d %+v", status, apps)
		}
		status = w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/apps/"+url.PathEscape(app.ID)+"/open", "{}", &opened)
		return apps[0], opened, status
	}
	for _, id := range []string{
		"evil.example/", "x@evil.example/", "evil.example:80/#", "a.b", "A", "ä", "-", "a--b", "a b", "a\nb", `a\b`,
		"a%2e",
		"\x1b[2J",
		strings.Repeat("a", 64), "notebook-aaaaaaaaaaaa.localhost:1/", "x-bbbbbbbbbbbb.localhost/",
	} {
		web.ID = id
		if listed, opened, status := offer(web); listed.URL != "" || status == 200 {
			t.Errorf("%q: listed at %q, opened with %d at %q", id, listed.URL, status, opened.URL)
		}
	}
	web.ID = "honest"
	for _, path := range []string{
		"", "/", "/lab?x=1", "lab", "//evil.example/", `\\evil.example`, "/\x1b[2J", "/a\nb",
		"@evil.example/", ":80@evil.example/",
		"javascript:alert(1)",
		"/?slipway_ticket=theirs", "/#slipway_ticket", "http://evil.example/", "/%zz",
	} {
		web.Path = path
		listed, opened, status := offer(web)
		for _, address := range []string{listed.URL, opened.URL} {
			parsed, err := url.Parse(address)
			const host = "honest-aaaaaaaaaaaa.localhost:"
			if status != 200 || err != nil || parsed.Host != host+w.port || parsed.User != nil ||
				parsed.Scheme != "http" ||
				strings.ContainsFunc(address, session.Unprintable) {
				t.Errorf("%q: %d %q, %v", path, status, address, err)
			}
		}
	}
}
