package hub_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// twoHomes are two simulated machines that outlive the hubs over them.
type twoHomes struct {
	near, lab session.Agent
	shelf     hub.Shelf
}

func newHomes(t *testing.T) *twoHomes {
	t.Helper()
	open := func(name string) session.Agent {
		return simulated.Open(t, func(c *agent.Config) { c.Name = name }).Agent()
	}
	return &twoHomes{near: open("local"), lab: open("lab"), shelf: &hubtest.Shelf{}}
}

// hub opens a hub over the machines, which begins to end with kill and has ended after stop.
func (p *twoHomes) hub(t *testing.T) (w world, kill, stop func()) {
	t.Helper()
	w = world{Hub: openOn(t, p.shelf, []hub.Member{{Name: "local", Local: true, Agent: p.near},
		{Name: "lab", Agent: p.lab}})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	w.WaitHeard(t.Context())
	return w, cancel, stop
}

// store writes a small file.
func store(t *testing.T, a session.Agent, place session.Place, name, content string) {
	t.Helper()
	up := session.Upload{Path: session.FilePath(name), Key: "test"}
	_, err := a.WriteUpload(t.Context(), place, up, strings.NewReader(content))
	if err == nil {
		_, err = a.FinishUpload(t.Context(), place, session.FinishRequest{Upload: up,
			Finish: session.Finish{Size: int64(len(content)), Conflict: session.ConflictReplace}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// running launches a session on the first machine, with files in its home and in a folder.
func (p *twoHomes) running(t *testing.T, w world) session.Session {
	t.Helper()
	f, err := w.CreateFolder(t.Context(), "local", session.FolderRequest{Name: "sets"})
	if err != nil {
		t.Fatal(err)
	}
	store(t, p.near, session.Place{Folder: f.ID}, "set.csv", "a,b\n")
	spec := session.Spec{Name: "study", Image: "python:3.12-slim", Mounts: []session.Mount{{Folder: "sets"}}}
	spec.Agent = "local"
	s, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	s = awaitIn(t, p.near, s.ID, session.Running)
	store(t, p.near, session.Place{Session: s.ID}, "notes", "one\n")
	if err := p.near.MakeLink(t.Context(), session.Place{Session: s.ID}, "latest", "notes"); err != nil {
		t.Fatal(err)
	}
	return s
}

func awaitIn(t *testing.T, a session.Agent, id session.ID, status session.Status) session.Session {
	t.Helper()
	for {
		s, err := a.Get(t.Context(), id)
		if err != nil || s.Status.Terminal() && s.Status != status {
			t.Fatalf("it is %s (%+v): %v", s.Status, s.Error, err)
		}
		if s.Status == status {
			return s
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// live returns where live sessions of a name are.
func (p *twoHomes) live(t *testing.T, name string) (at []string) {
	t.Helper()
	for machine, a := range map[string]session.Agent{"local": p.near, "lab": p.lab} {
		list, err := a.List(t.Context(), session.Filter{Live: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Name == name {
				at = append(at, machine)
			}
		}
	}
	return at
}

// asks waits until an operation asks or has ended.
func asks(o hub.Operation) bool { return o.State.Ended() || o.Prompt != nil }

// relocates moves the session and answers what is asked at the end.
func (w world) relocates(t *testing.T, ref, to, answer string) hub.Operation {
	t.Helper()
	return w.answers(t, w.begins(t, ref, hub.Relocating{Agent: to}).ID, answer)
}

func (w world) begins(t *testing.T, ref string, req hub.Relocating) hub.Operation {
	t.Helper()
	begun, err := w.Relocate(t.Context(), ref, req)
	if err != nil {
		t.Fatal(err)
	}
	return begun
}

func (w world) answers(t *testing.T, id, answer string) hub.Operation {
	t.Helper()
	o := w.operation(t, id, asks)
	if o.Prompt != nil {
		if _, err := w.AnswerOperation(o.ID, o.Prompt.ID, answer); err != nil {
			t.Fatal(err)
		}
		o = w.operation(t, id, ended)
	}
	return o
}

// wantMoved wants the session and all its files on the other machine.
func (p *twoHomes) wantMoved(t *testing.T, from session.Session) session.Session {
	t.Helper()
	list, err := p.lab.List(t.Context(), session.Filter{Live: true})
	if err != nil || len(list) != 1 || list[0].Name != from.Name || list[0].From != from.ID {
		t.Fatalf("on the other machine are %+v, %v", list, err)
	}
	if at := p.live(t, from.Name); !slices.Equal(at, []string{"lab"}) {
		t.Fatalf("it is live on %v", at)
	}
	place := session.Place{Session: list[0].ID}
	for name, want := range map[session.FilePath]string{"notes": "one\n", "sets/set.csv": "a,b\n"} {
		if got := contentOf(t, p.lab, place, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if link, err := p.lab.StatFile(t.Context(), place, "latest"); err != nil || link.Target != "notes" {
		t.Errorf("the link is %+v, %v", link, err)
	}
	return list[0]
}

func contentOf(t *testing.T, a session.Agent, place session.Place, name session.FilePath) string {
	t.Helper()
	content, err := a.ReadFile(t.Context(), place, session.ReadRequest{Path: name})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer content.Close() //nolint:errcheck // it was only read
	all, err := io.ReadAll(content)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(all)
}

func TestASessionMovesAndLeavesNothing(t *testing.T) {
	p := newHomes(t)
	w, _, _ := p.hub(t)
	s := p.running(t, w)
	plan, err := w.PlanRelocation(t.Context(), "study", moveToLab)
	if err != nil || plan.Files != 3 || plan.Bytes != 8 || plan.Wait != nil || plan.More {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	if o := w.relocates(t, "study", "lab", "yes"); o.State != hub.OperationDone {
		t.Fatalf("it ended as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	next := p.wantMoved(t, s)
	if heir := w.Heir(s.ID); heir != next.ID {
		t.Errorf("its heir is %s, not %s", heir, next.ID)
	}
	folders, err := w.Folders(t.Context(), "local")
	left := slices.DeleteFunc(folders, func(f session.Folder) bool { return f.Auto() || f.Name == "sets" })
	if err != nil || len(left) > 0 && left[0].State == session.FolderReady {
		t.Errorf("folders are left: %+v, %v", left, err)
	}
	images, err := p.near.ListImages(t.Context())
	if err != nil || slices.ContainsFunc(images, func(i session.Image) bool { return i.Origin != nil }) {
		t.Errorf("images are left: %+v, %v", images, err)
	}

	// And back, with what was changed and deleted there.
	store(t, p.lab, session.Place{Session: next.ID}, "notes", "two\n")
	if err := p.lab.RemoveFile(t.Context(), session.Place{Session: next.ID}, "latest", false); err != nil {
		t.Fatal(err)
	}
	if o := w.relocates(t, "study", "local", "no"); o.State != hub.OperationDone {
		t.Fatalf("it went back as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	home, _, err := w.Get(t.Context(), "study")
	if err != nil || home.Agent != "local" {
		t.Fatalf("it is %+v, %v", home, err)
	}
	if got := contentOf(t, p.near, session.Place{Session: home.ID}, "notes"); got != "two\n" {
		t.Errorf("its notes are %q", got)
	}
	if _, err := p.near.StatFile(t.Context(), session.Place{Session: home.ID}, "latest"); err == nil {
		t.Error("what was deleted came back")
	}
	kept, err := p.lab.Get(t.Context(), next.ID)
	if err != nil || !kept.Continuable() {
		t.Fatalf("what was to be left is %+v, %v", kept, err)
	}

	// Once more to where its home was left: only what has changed is sent.
	store(t, p.near, session.Place{Session: home.ID}, "notes", "three\n")
	if plan, err = w.PlanRelocation(t.Context(), "study", moveToLab); err != nil || plan.Home != "study" {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	o := w.relocates(t, "study", "lab", "no")
	i := slices.IndexFunc(o.Steps, func(s hub.Step) bool { return s.Name == "rest-0" })
	if o.State != hub.OperationDone || i < 0 || !strings.Contains(o.Steps[i].Detail, "1 file, 6 B; 1 were there") {
		t.Fatalf("it went again as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	last, _, err := w.Get(t.Context(), "study")
	if err != nil || last.HomeFolder().Folder != kept.HomeFolder().Folder {
		t.Errorf("its home is %+v, %v", last.Folders, err)
	}
	if got := contentOf(t, p.lab, session.Place{Session: last.ID}, "notes"); got != "three\n" {
		t.Errorf("its notes are %q", got)
	}
}

// TestMovesToAndFroLeaveNoImages: what a machine keeps in the end is what the session that runs there came with.
func TestMovesToAndFroLeaveNoImages(t *testing.T) {
	p := newHomes(t)
	w, _, _ := p.hub(t)
	p.running(t, w)
	for _, to := range []string{"lab", "local", "lab"} {
		left := map[string]session.Agent{"lab": p.near, "local": p.lab}[to]
		if o := w.relocates(t, "study", to, "yes"); o.State != hub.OperationDone {
			t.Fatalf("to %s it ended as %s: %+v, %+v", to, o.State, o.Error, o.Steps)
		}
		images, err := left.ListImages(t.Context())
		if err != nil || slices.ContainsFunc(images, func(i session.Image) bool {
			return slices.ContainsFunc(i.Refs, session.CustomizedRef)
		}) {
			t.Errorf("images are left: %+v, %v", images, err)
		}
		if got := p.foldersOf(t, left); !slices.Equal(got, []string{"sets"}) {
			t.Errorf("the folders %v are left", got)
		}
	}
}

func TestWhatCannotMoveIsSaidBefore(t *testing.T) {
	p := newHomes(t)
	w, _, _ := p.hub(t)
	p.running(t, w)
	launch := func(spec session.Spec, on string) session.Session {
		t.Helper()
		spec.Image, spec.Agent = "python:3.12-slim", on
		s, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: spec})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	mounts := launch(session.Spec{Name: "mounts", Mounts: []session.Mount{{Source: "/scratch"}}}, "local")
	batch := launch(session.Spec{Name: "batch", Type: session.Batch, Command: "sleep 600"}, "local")
	awaitIn(t, p.near, mounts.ID, session.Running)
	awaitIn(t, p.near, batch.ID, session.Running)
	for ref, part := range map[string]string{"mounts": "directory /scratch", "batch": "cannot be moved",
		"absent": "no session"} {
		_, err := w.Relocate(t.Context(), ref, moveToLab)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	_, err := w.Relocate(t.Context(), "study", hub.Relocating{Agent: "local"})
	if session.CodeOf(err) != session.CodeSessionConflict {
		t.Errorf("to where it is: %v", err)
	}
	machine, err := p.lab.Machine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	full := launch(session.Spec{Name: "full", Resources: session.Resources{CPU: machine.CPUs,
		Memory: gpu.GiB}}, "lab")
	awaitIn(t, p.lab, full.ID, session.Running)
	if _, err := w.Relocate(t.Context(), "study", moveToLab); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("to where there is no room: %v", err)
	}
	if at := p.live(t, "study"); !slices.Equal(at, []string{"local"}) {
		t.Errorf("after that it is live on %v", at)
	}
}

// refusing does not launch.
type refusing struct{ session.Sessions }

func (refusing) Launch(context.Context, session.LaunchRequest) (session.Session, error) {
	return session.Session{}, session.NewError(session.CodeDiskFull, "The disk is full.", "Make room.")
}

func TestAFailedMoveGoesOnWhereItWas(t *testing.T) {
	p := newHomes(t)
	p.lab.Sessions = refusing{p.lab.Sessions}
	w, _, _ := p.hub(t)
	s := p.running(t, w)
	o := w.relocates(t, "study", "lab", "yes")
	if o.State != hub.OperationFailed || o.Error.Code != session.CodeDiskFull {
		t.Fatalf("it ended as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	if at := p.live(t, "study"); !slices.Equal(at, []string{"local"}) {
		t.Fatalf("it is live on %v", at)
	}
	again, _, err := w.Get(t.Context(), "study")
	if err != nil || again.From != s.ID {
		t.Fatalf("it is %+v, %v", again, err)
	}
	awaitIn(t, p.near, again.ID, session.Running)
	if got := contentOf(t, p.near, session.Place{Session: again.ID}, "notes"); got != "one\n" {
		t.Errorf("its notes are %q", got)
	}
}

// TestACircleOfSessionsHasAnEnd: an agent says of each of two sessions that it continues the other.
func TestACircleOfSessionsHasAnEnd(t *testing.T) {
	w := open(t, "local")
	for id, from := range map[session.ID]session.ID{"aaaaaaaaaaaa": "bbbbbbbbbbbb", "bbbbbbbbbbbb": "aaaaaaaaaaaa"} {
		w.agents[0].Put(session.Session{ID: id, Name: "circle", Status: session.Terminated, CreatedAt: time.Now(),
			Spec: session.Spec{Image: "a:1", Type: session.Interactive}, Move: session.Move{From: from}})
	}
	w.run(t)
	if heir := w.Heir("aaaaaaaaaaaa"); heir != "aaaaaaaaaaaa" && heir != "bbbbbbbbbbbb" {
		t.Errorf("the heir is %s", heir)
	}
}
