package hub_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/agentrpc"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/tunnel"
)

// noise returns n bytes that are the same in each run.
func noise(n int64) []byte {
	data, err := io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{3}), n))
	if err != nil {
		panic(err)
	}
	return data
}

// watchedUploads lets a test see, and end, what an agent receives.
type watchedUploads struct {
	session.Uploads
	receive func(up session.Upload, from io.Reader) io.Reader
}

func (w watchedUploads) WriteUpload(ctx context.Context, place session.Place, up session.Upload,
	from io.Reader) (int64, error) {
	return w.Uploads.WriteUpload(ctx, place, up, w.receive(up, from))
}

// twoMachines returns a hub over two simulated machines, and a directory of the first one that is its folder data.
func twoMachines(t *testing.T, lab session.Agent) (world, string) {
	t.Helper()
	dir := ""
	near := simulated.Open(t, func(c *agent.Config) { dir = filepath.Join(c.Dir, "disk", "scratch", "data") })
	w := world{shelf: &hubtest.Shelf{}}
	w.Hub = openOn(t, w.shelf,
		[]hub.Member{{Name: "local", Local: true, Agent: near.Agent()}, {Name: "lab", Agent: lab}})
	for _, sub := range []string{"deep/er", "empty"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{"big.bin": noise(12 << 20), "none": nil, "deep/a": []byte("a\n"),
		"deep/er/b\xff": []byte("b\n")} {
		put(t, filepath.Join(dir, name), content)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.CreateFolder(t.Context(), "local",
		session.FolderRequest{Name: "data", Path: "/scratch/data"}); err != nil {
		t.Fatal(err)
	}
	return w, dir
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o640); err != nil {
		t.Fatal(err)
	}
}

func toLab(name string) hub.FileCopying {
	return hub.FileCopying{From: hub.FileEnd{Folder: "data", Agent: "local"},
		To: hub.FileEnd{Folder: name, Agent: "lab"}}
}

// copies copies and returns how that ended.
func (w world) copies(t *testing.T, req hub.FileCopying) hub.Operation {
	t.Helper()
	begun, err := w.CopyFiles(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return w.operation(t, begun.ID, ended)
}

// folderNames returns the names of a machine's folders.
func (w world) folderNames(t *testing.T, agent string) []string {
	t.Helper()
	all, err := w.Folders(t.Context(), agent)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names
}

// sameAs fails unless a folder has the files of a directory, with their times and permissions, and its link.
func (w world) sameAs(t *testing.T, dir, folder, agent string) {
	t.Helper()
	files, _, err := w.FilesIn(t.Context(), folder, agent)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"big.bin", "none", "deep/a", "deep/er/b\xff"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := files.StatFile(t.Context(), files.Place, session.FilePath(name))
		if err != nil || got.Mode != 0o640 || !got.Modified.Equal(info.ModTime()) {
			t.Errorf("%q is %+v, %v", name, got, err)
			continue
		}
		from, err := files.Read(t.Context(), session.ReadRequest{Path: session.FilePath(name)})
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(from); err != nil || !bytes.Equal(content, want) {
			t.Errorf("%q has %d bytes, %v", name, len(content), err)
		}
		from.Close()
	}
	listing, err := files.ListFiles(t.Context(), files.Place, session.ListRequest{Path: "."})
	if err != nil || len(listing.Entries) != 5 || listing.Entries[3].Target != "/etc/passwd" {
		t.Errorf("%+v, %v", listing, err)
	}
}

func TestAFolderIsCopiedOverACut(t *testing.T) {
	_, host := farAgent(t)
	way := &path{dir: t.TempDir(), host: host}
	line := tunnel.NewLine(tunnel.LineConfig{Dialer: way})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		line.Run(ctx) //nolint:errcheck // ends with ctx
	}()
	t.Cleanup(func() { cancel(); <-done })
	if err := line.WaitUp(ctx); err != nil {
		t.Fatal(err)
	}
	client := agentrpc.NewClient(agentrpc.ClientConfig{Name: func() string { return "lab" }, Opener: line})
	lab := client.Agent()
	cuts := 0
	lab.Uploads = watchedUploads{lab.Uploads, func(_ session.Upload, from io.Reader) io.Reader {
		return &flow{Reader: from, at: []int64{4 << 20}, do: func() {
			cuts++
			way.cut(300 * time.Millisecond)
		}}
	}}
	w, dir := twoMachines(t, lab)
	near, f, err := w.FindFolder(ctx, "data", "local")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := near.UpdateFolder(ctx, f.ID,
		session.FolderChange{Permission: new(session.FolderReadOnly)}); err != nil {
		t.Fatal(err)
	}
	o := w.copies(t, toLab("data"))
	if o.State != hub.OperationDone || o.Subject != "data" || o.Agent != "lab" || o.Folder != "data" || cuts == 0 {
		t.Fatalf("after %d cuts it ended as %+v", cuts, o)
	}
	if got := o.Steps[1].Detail; got != "5 files, 12 MiB" {
		t.Errorf("it says %q", got)
	}
	if o.Progress == nil || o.Progress.Done != o.Progress.Total {
		t.Errorf("it is at %+v", o.Progress)
	}
	if got := w.folderNames(t, "lab"); !slices.Equal(got, []string{"data"}) {
		t.Errorf("the lab has the folders %q", got)
	}
	w.sameAs(t, dir, "data", "lab")
	if _, f, err = w.FindFolder(ctx, "data", "lab"); err != nil || f.Permission != session.FolderReadOnly {
		t.Errorf("the copy is %+v, %v", f, err)
	}
}

func TestACancelledCopyContinuesWhereItEnded(t *testing.T) {
	lab := simulated.Open(t, nil).Agent()
	var w world
	begun := make(chan string, 1)
	var offsets []int64
	lab.Uploads = watchedUploads{lab.Uploads, func(up session.Upload, from io.Reader) io.Reader {
		if string(up.Path) != "big.bin" {
			return from
		}
		offsets = append(offsets, up.Offset)
		if len(offsets) > 1 {
			return from
		}
		return &flow{Reader: from, at: []int64{5 << 20}, do: func() {
			if _, err := w.CancelOperation(<-begun); err != nil {
				t.Error(err)
			}
		}}
	}}
	w, dir := twoMachines(t, lab)
	first, err := w.CopyFiles(t.Context(), toLab("data"))
	if err != nil {
		t.Fatal(err)
	}
	begun <- first.ID
	if o := w.operation(t, first.ID, ended); o.State != hub.OperationCancelled ||
		o.Steps[1].State != hub.StepSkipped || o.Steps[1].Detail != "" {
		t.Fatalf("it ended as %+v", o)
	}
	// A part of the folder is not mistaken for the folder.
	if got := w.folderNames(t, "lab"); !slices.Equal(got, []string{"data.part"}) {
		t.Errorf("the lab has the folders %q", got)
	}
	if o := w.copies(t, toLab("data")); o.State != hub.OperationDone {
		t.Fatalf("it ended as %+v", o)
	}
	if len(offsets) != 2 || offsets[0] != 0 || offsets[1] < 1<<20 {
		t.Errorf("the file was sent from %d", offsets)
	}
	w.sameAs(t, dir, "data", "lab")

	t.Run("what is there is not sent again, and what differs is not replaced", func(t *testing.T) {
		put(t, filepath.Join(dir, "deep/a"), []byte("changed\n"))
		o := w.copies(t, toLab("data"))
		if o.State != hub.OperationFailed || session.CodeOf(o.Error) != "file_use_already-exists" ||
			!strings.Contains(o.Error.Message, "deep/a") {
			t.Fatalf("it ended as %+v", o)
		}
		again := toLab("data")
		again.Replace = true
		if o = w.copies(t, again); o.State != hub.OperationDone ||
			!strings.Contains(o.Steps[1].Detail, "; 4 were there already") || len(offsets) != 2 {
			t.Errorf("it ended as %+v, and the file was sent from %d", o, offsets)
		}
		w.sameAs(t, dir, "data", "lab")
	})
	t.Run("one file goes to one path", func(t *testing.T) {
		req := toLab("data")
		req.From.Path, req.To.Path = "deep/a", "deep/c"
		if o := w.copies(t, req); o.State != hub.OperationDone {
			t.Fatalf("it ended as %+v", o)
		}
		if o := w.copies(t, req); o.State != hub.OperationDone || !strings.Contains(o.Steps[1].Detail, "1 were there") {
			t.Errorf("it ended as %+v", o)
		}
	})
	t.Run("nothing is copied into itself, or to a folder without a machine", func(t *testing.T) {
		req := hub.FileCopying{From: hub.FileEnd{Folder: "data", Agent: "lab", Path: "deep"},
			To: hub.FileEnd{Folder: "data", Agent: "lab", Path: "deep/er/../er"}}
		if _, err := w.CopyFiles(t.Context(), req); session.CodeOf(err) != "file_use_invalid" {
			t.Errorf("%v", err)
		}
		req.To = hub.FileEnd{Folder: "new"}
		if _, err := w.CopyFiles(t.Context(), req); session.CodeOf(err) != "folder_read_not-found" {
			t.Errorf("%v", err)
		}
		req.To = hub.FileEnd{Folder: "not a name", Agent: "lab"}
		if _, err := w.CopyFiles(t.Context(), req); session.CodeOf(err) == "" {
			t.Error("a folder was created whose name is none")
		}
	})
}

// endless is a machine whose directories never end, and whose names lead out of them.
type endless struct{ session.Files }

func (e endless) ListFiles(context.Context, session.Place, session.ListRequest) (session.FileListing, error) {
	return session.FileListing{Entries: []session.FileInfo{{Name: "..", Kind: session.KindDirectory},
		{Name: "../../evil", Kind: session.KindFile}, {Name: "down", Kind: session.KindDirectory}}}, nil
}

func TestACopyOfEndlessDirectoriesEnds(t *testing.T) {
	lab := simulated.Open(t, nil).Agent()
	lab.Files = endless{lab.Files}
	w, _ := twoMachines(t, lab)
	if _, err := w.CreateFolder(t.Context(), "lab", session.FolderRequest{Name: "deep"}); err != nil {
		t.Fatal(err)
	}
	o := w.copies(t, hub.FileCopying{From: hub.FileEnd{Folder: "deep", Agent: "lab"},
		To: hub.FileEnd{Folder: "deep", Agent: "local"}})
	if o.State != hub.OperationFailed || !strings.Contains(o.Error.Message, "nested too deeply") {
		t.Errorf("it ended as %+v", o)
	}
}

func TestAFolderIsServedOnceAndAlone(t *testing.T) {
	w, _ := twoMachines(t, simulated.Open(t, nil).Agent())
	if _, err := w.CreateFolder(t.Context(), "lab", session.FolderRequest{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	first, err := w.ServeFolder(t.Context(), "kept", "")
	if err != nil {
		t.Fatal(err)
	}
	if first.Name != "sftp-kept" || first.Agent != "lab" || first.Spec.Type != session.System ||
		len(first.Folders) != 1 || first.Spec.Idle.Network != session.SystemIdle {
		t.Errorf("it is %+v", first)
	}
	if again, err := w.ServeFolder(t.Context(), "kept", "lab"); err != nil || again.ID != first.ID {
		t.Errorf("the second time it is %s, %v; want %s", again.ID, err, first.ID)
	}
	if recents := w.Recents(); len(recents) > 0 {
		t.Errorf("the launch history has %d entries", len(recents))
	}
	if _, err := w.ServeFolder(t.Context(), "none", ""); session.CodeOf(err) != session.CodeFolderNotFound {
		t.Errorf("of no folder: %v", err)
	}
}
