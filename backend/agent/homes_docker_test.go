package agent

import (
	"context"
	"testing"
	"time"

	"slipway/backend/session"
)

// awaitFolder waits until a folder is as it should be.
func (r *real) awaitFolder(id session.FolderID, what string, done func(session.Folder, error) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := r.agent.GetFolder(ctx, id)
		if done(f, err) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("the folder did not become %s: %+v, %+v, %v", what, f, f.Home, err)
		}
	}
}

// TestRealHomesAreKept keeps homes over the loss of a container, uses one again, and removes an empty one.
func TestRealHomesAreKept(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir())
	keep := session.Lifetime{KeepHome: new(session.Duration(time.Hour))}
	data, err := r.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
	if err != nil {
		t.Fatal(err)
	}
	inside := session.Mount{Folder: "data", Target: "in/data"}
	first := r.awaitRunning(r.launch(session.Spec{Name: "train", Lifetime: keep, Mounts: []session.Mount{inside}}).ID)
	home := first.HomeFolder()
	if home == nil {
		t.Fatalf("mounted are %+v; %+v", first.Folders, first.Error)
	}
	const script = "echo kept > todo && echo too > in/data/file && stat -c %U . in in/data"
	if out, code := r.exec(first.ID, "sh", "-c", script); code != 0 || out != "work\nwork\nwork\n" {
		t.Errorf("inside it is %q, %d", out, code)
	}
	if err := r.engine.Remove(t.Context(), first.Container()); err != nil { // as somebody else would
		t.Fatal(err)
	}
	r.awaitEnd(first.ID)
	r.awaitFolder(home.Folder, "kept", func(f session.Folder, err error) bool {
		return err == nil && f.Home != nil && f.Home.Until != nil
	})

	next := r.awaitRunning(r.launch(session.Spec{Name: "next",
		Mounts: []session.Mount{{Folder: "train", Target: session.Home}, inside}}).ID)
	if out, code := r.exec(next.ID, "sh", "-c", "cat todo in/data/file && rm -r todo in/data/file"); code != 0 ||
		out != "kept\ntoo\n" {
		t.Errorf("in the next session it is %q, %d", out, code)
	}
	if _, err := r.agent.Terminate(t.Context(), next.ID, false); err != nil {
		t.Fatal(err)
	}
	r.awaitEnd(next.ID)
	r.awaitFolder(home.Folder, "removed, as it is empty", func(_ session.Folder, err error) bool {
		return session.CodeOf(err) == session.CodeFolderNotFound
	})
	if f, err := r.agent.GetFolder(t.Context(), data.ID); err != nil || f.State != session.FolderReady {
		t.Errorf("the other folder is %+v, %v", f, err)
	}
}
