package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"

	"slipway/backend/api"
	"slipway/backend/demo"
	"slipway/backend/demo/run"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
)

// canary is a directory of this computer that no simulated machine may notice. The kernel tells of everything that
// opens, reads or changes it or its files.
type canary struct {
	dir    string
	events int // of inotify
}

const canarySecret = "the canary's secret"

func newCanary(t *testing.T) canary {
	t.Helper()
	c := canary{dir: filepath.Join(t.TempDir(), "canary")}
	err := errors.Join(os.Mkdir(c.dir, 0o755),
		os.WriteFile(filepath.Join(c.dir, "secret"), []byte(canarySecret), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if c.events, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(c.events, c.dir, unix.IN_ALL_EVENTS); err != nil {
		t.Fatal(err)
	}
	return c
}

// untouched fails if anything opened the canary.
func (c canary) untouched(t *testing.T) {
	t.Helper()
	noticed := make([]byte, 4096)
	if n, err := unix.Read(c.events, noticed); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the canary was opened or changed: %q, %v", noticed[:max(n, 0)], err)
	}
	if err := unix.Close(c.events); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(filepath.Join(c.dir, "secret"))
	if entries, dirErr := os.ReadDir(c.dir); err != nil || dirErr != nil || string(data) != canarySecret ||
		len(entries) != 1 {
		t.Errorf("the canary has %v, %q, %v", entries, data, errors.Join(err, dirErr))
	}
}

// guarded is a control plane with simulated machines, and a canary beside it.
type guarded struct {
	*running
	canary canary
}

// get returns the status and body of an answer.
func (g guarded) get(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	status, data := answer(t, http.DefaultClient, method, g.URL+"/api/v1"+path, body, g.header())
	return status, string(data)
}

// refused fails if a call succeeds or tells the secret.
func (g guarded) refused(t *testing.T, method, path, body string) {
	t.Helper()
	if status, answer := g.get(t, method, path, body); status < 400 || strings.Contains(answer, canarySecret) {
		t.Errorf("%s %s %s answers %d: %s", method, path, body, status, answer)
	}
}

// outside are paths that would lead to the canary if they were those of this computer, or if links led out.
func (g guarded) outside() []string {
	return []string{g.canary.dir, "/../../../.." + g.canary.dir, "/home/../.." + g.canary.dir, "/data/absolute",
		"/data/relative"}
}

// trapDisk puts links to the canary on the disk of a machine, as somebody with access to this computer may.
func (g guarded) trapDisk(t *testing.T, disk string) {
	t.Helper()
	data := filepath.Join(disk, "data")
	rel, err := filepath.Rel(data, g.canary.dir)
	if err == nil {
		err = errors.Join(os.Symlink(g.canary.dir, filepath.Join(data, "absolute")),
			os.Symlink(rel, filepath.Join(data, "relative")))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (g guarded) launch(t *testing.T, agent, image, spec string) string {
	t.Helper()
	var launched api.Session
	body := fmt.Sprintf(`{"spec":{"agent":%q,"image":%q,"resources":{"cpu":1,"memory":"128m"},%s}}`, agent, image, spec)
	if status := g.call(t, "POST", "/api/v1/sessions", body, &launched); status != 201 {
		t.Fatalf("launch answers %d", status)
	}
	return string(launched.ID)
}

// checkMachine tries every way from a machine to the canary.
func (g guarded) checkMachine(t *testing.T, agent, owner string) {
	list := func(path string) (listing session.DirectoryListing) {
		t.Helper()
		g.call(t, "GET", "/api/v1/machines/"+agent+"/directories?path="+url.QueryEscape(path), "", &listing)
		return listing
	}
	named := func(listing session.DirectoryListing, name string) bool {
		return slices.ContainsFunc(listing.Entries,
			func(e session.DirectoryEntry) bool { return e.Name == name && e.Writable })
	}
	if home := list(""); home.Path != "/home/"+owner || !named(home, "projects") {
		t.Errorf("the home is %+v", home)
	}
	if root := list("/"); !named(root, "data") || !named(root, "scratch") || named(root, "proc") {
		t.Errorf("the root is %+v", root)
	}
	if data := list("/data"); !named(data, "imagenet-mini") || len(data.Entries) != 2 {
		t.Errorf("the data are %+v", data)
	}
	for i, path := range append(g.outside(), filepath.Dir(g.canary.dir), g.home.Dir) {
		g.refused(t, "GET", "/machines/"+agent+"/directories?path="+url.QueryEscape(path), "")
		g.refused(t, "POST", "/sessions", fmt.Sprintf(`{"spec":{"agent":%q,"image":"python:3.12",`+
			`"resources":{"cpu":1,"memory":"128m"},"mounts":[{"source":%q,"target":"m"}]}}`, agent, path))
		g.refused(t, "POST", "/folders", fmt.Sprintf(`{"agent":%q,"name":"outside-%d","path":%q}`, agent, i, path))
	}
	g.checkShell(t, agent)
	g.checkFiles(t, agent)
}

func (g guarded) checkShell(t *testing.T, agent string) {
	t.Helper()
	script := "head -1 set/labels.csv\necho kept > data/kept\n"
	for _, path := range append(g.outside(), "/home/work/data/absolute", "data/relative") {
		for _, line := range []string{"cat %s/secret", "cat < %s/secret", "ls -a %s", "cp -r %s copy; cat copy/secret",
			"rm -rf %s/secret", "echo x > %s/new", "mkdir %s/new", "mv %s/secret moved; cat moved", "touch %s/secret",
			"source %s/secret", "cd %s && cat secret", "grep . %s/*", "[ -e %s/secret ] && echo is-there"} {
			script += strings.ReplaceAll(line, "%s", path) + "\n"
		}
	}
	id := g.launch(t, agent, "python:3.12", fmt.Sprintf(`"type":"batch","command":%q,"mounts":`+
		`[{"source":"/data/imagenet-mini","target":"set","readOnly":true},{"source":"/data","target":"data"}]`, script))
	g.until(t, id, "TERMINATED")
	_, said := g.get(t, "GET", "/sessions/"+id+"/logs", "")
	if !strings.Contains(said, "file,label") || strings.Contains(said, canarySecret) ||
		strings.Contains(said, "is-there") || strings.Contains(said, "\nsecret\n") {
		t.Errorf("the session printed %s", said)
	}
}

func (g guarded) checkFiles(t *testing.T, agent string) {
	t.Helper()
	id := g.launch(t, agent, "quay.io/jupyter/minimal-notebook:latest", `"mounts":[{"source":"/data","target":"data"}]`)
	g.until(t, id, "RUNNING")
	in := "/sessions/" + id + "/files"
	if status, labels := g.get(t, "GET", in+"/content?path=data/imagenet-mini/labels.csv", ""); status != 200 ||
		!strings.HasPrefix(labels, "file,label\n") {
		t.Errorf("a file of the machine's disk: %d %s", status, labels)
	}
	var opened api.Opened
	if status := g.call(t, "POST", "/api/v1/sessions/"+id+"/apps/notebook/open", "{}", &opened); status != 200 {
		t.Fatalf("open answers %d: %+v", status, opened)
	}
	client, _ := browser(t)
	fetch(t, client, "GET", opened.URL, "", nil)
	origin := strings.TrimSuffix(opened.App.URL, "/")
	ask := func(method, path, body string) (int, string) {
		status, data := answer(t, client, method, origin+path, body, http.Header{})
		return status, string(data)
	}
	for name, target := range map[string]string{"link": g.canary.dir,
		"up": "../../../../../../../../.." + g.canary.dir} {
		if status, said := ask("POST", "/api/disk/symlink?path="+name+"&target="+url.QueryEscape(target), ""); status !=
			204 {
			t.Fatalf("the link is not made: %d %s", status, said)
		}
	}
	for _, path := range append(g.outside(), "link", "up", "data/absolute", "data/relative") {
		at := url.QueryEscape(path + "/secret")
		for _, call := range [][3]string{{"GET", "?path=" + url.QueryEscape(path)}, {"GET", "/content?path=" + at},
			{"GET", "/stat?path=" + at}, {"GET", "/checksum?path=" + at}, {"DELETE", "?path=" + at},
			{"POST", "/move?path=" + at, `{"to":"moved"}`},
			{"PUT", "/upload?key=one&offset=0&path=" + url.QueryEscape(path+"/new"), "x"},
			{"POST", "/directory?path=" + url.QueryEscape(path+"/new")}} {
			g.refused(t, call[0], in+call[1], call[2])
		}
		for _, call := range [][2]string{{"GET", "/api/disk/read?length=99&path=" + at},
			{"GET", "/api/contents?path=" + at}, {"GET", "/api/disk/list?path=" + url.QueryEscape(path)},
			{"POST", "/api/disk/unlink?path=" + at},
			{"POST", "/api/disk/truncate?path=" + at}, {"POST", "/api/disk/rename?to=moved&path=" + at},
			{"PUT", "/api/contents?path=" + at}} {
			if status, said := ask(call[0], call[1], "x"); status < 400 || strings.Contains(said, canarySecret) {
				t.Errorf("the notebook's %s %s answers %d: %s", call[0], call[1], status, said)
			}
		}
	}
}

// linked checks a folder that is a directory of the machine: its links lead nowhere.
func (g guarded) linked(t *testing.T, agent string) {
	t.Helper()
	var made api.Folder
	if status := g.call(t, "POST", "/api/v1/folders",
		fmt.Sprintf(`{"agent":%q,"name":"of-the-machine","path":"/data"}`, agent), &made); status != 201 {
		t.Fatalf("linking answers %d: %+v", status, made)
	}
	if made.Path != "/data" || made.Missing {
		t.Errorf("the folder is %+v", made)
	}
	in := "/folders/" + string(made.ID) + "/files"
	if status, text := g.get(t, "GET", in+"/content?path=wikitext-mini/README.md", ""); status != 200 ||
		!strings.Contains(text, "wikitext-mini") {
		t.Errorf("its file: %d %s", status, text)
	}
	for _, path := range []string{"absolute/secret", "relative/secret", "../../.." + g.canary.dir + "/secret"} {
		at := url.QueryEscape(path)
		g.refused(t, "GET", in+"/content?path="+at, "")
		g.refused(t, "DELETE", in+"?path="+at, "")
		g.refused(t, "PUT", in+"/upload?key=one&offset=0&path="+at, "x")
	}
}

var notebookPage = fstest.MapFS{"index.html": {Data: []byte("<title>Notebook</title>")}}

func TestASimulatedMachineHasNothingOfThisComputer(t *testing.T) {
	t.Run("demo", func(t *testing.T) {
		ownHome(t)
		g := guarded{canary: newCanary(t)}
		dir := filepath.Join(t.TempDir(), "demo")
		g.running = startBy(t, dir, func(ctx context.Context, ready func(service.Ready)) error {
			return run.Demo(ctx, run.Config{Options: demo.Options{Seed: 3}, Keep: dir, Notebook: notebookPage,
				Ready: func(r service.Ready, _ string) { ready(r) }})
		})
		until(t, "the lab is not reached",
			func() bool { return g.agentNamed(t, "lab").Connection.State == "connected" })
		for agent, home := range map[string]place.Home{"workstation": g.home, "lab": demo.LabHome(g.home)} {
			g.trapDisk(t, home.Join("sim", "disk"))
			g.checkMachine(t, agent, demo.Person)
			g.linked(t, agent)
		}
		g.canary.untouched(t)
	})
	t.Run("serve", func(t *testing.T) {
		g := guarded{canary: newCanary(t)}
		dir := t.TempDir()
		g.running = startBy(t, dir, func(ctx context.Context, ready func(service.Ready)) error {
			return service.Run(ctx, service.Config{Home: place.Home{Dir: dir}, Engine: local.EngineSim,
				Notebook: notebookPage, Ready: ready})
		})
		g.trapDisk(t, g.home.Join("sim", "disk"))
		g.checkMachine(t, local.AgentName, local.UserName())
		g.linked(t, local.AgentName)
		g.canary.untouched(t)
	})
}
