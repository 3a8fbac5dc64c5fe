package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

var (
	moveToLab = hub.Relocating{Agent: "lab"}
	copyToLab = hub.Relocating{Agent: "lab", Copy: true}
)

// wantAsItWas wants the session that was copied to run as before, with its files.
func (p *twoHomes) wantAsItWas(t *testing.T, from session.Session) {
	t.Helper()
	s, err := p.near.Get(t.Context(), from.ID)
	if err != nil || s.Status != session.Running || s.Parked || s.Attempt != from.Attempt ||
		!s.StartedAt.Equal(*from.StartedAt) {
		t.Fatalf("it is %+v, %v", s, err)
	}
	if at := p.live(t, from.Name); !slices.Equal(at, []string{"local"}) {
		t.Errorf("it is live on %v", at)
	}
	if got := contentOf(t, p.near, session.Place{Session: s.ID}, "notes"); got != "one\n" {
		t.Errorf("its notes are %q", got)
	}
}

// wantCopied wants one copy with all files on the other machine, and nothing more.
func (p *twoHomes) wantCopied(t *testing.T, from session.Session, name string) session.Session {
	t.Helper()
	p.wantAsItWas(t, from)
	list, err := p.lab.List(t.Context(), session.Filter{})
	if err != nil || len(list) != 1 || list[0].Name != name || list[0].Status != session.Running || list[0].From != "" {
		t.Fatalf("on the other machine are %+v, %v", list, err)
	}
	place := session.Place{Session: list[0].ID}
	for file, want := range map[session.FilePath]string{"notes": "one\n", "sets/set.csv": "a,b\n"} {
		if got := contentOf(t, p.lab, place, file); got != want {
			t.Errorf("%s is %q", file, got)
		}
	}
	if got := p.foldersOf(t, p.lab); !slices.Equal(got, []string{"sets", name}) {
		t.Errorf("its folders are %v", got)
	}
	p.wantNoImages(t, p.near)
	return list[0]
}

// wantNothing wants nothing of a move or a copy on the other machine.
func (p *twoHomes) wantNothing(t *testing.T) {
	t.Helper()
	if list, err := p.lab.List(t.Context(), session.Filter{Live: true}); err != nil || len(list) > 0 {
		t.Errorf("on the other machine are %+v, %v", list, err)
	}
	if got := p.foldersOf(t, p.lab); len(got) > 0 {
		t.Errorf("the folders %v are left", got)
	}
}

// foldersOf are the folders of a machine that a person sees.
func (p *twoHomes) foldersOf(t *testing.T, a session.Agent) (names []string) {
	t.Helper()
	folders, err := a.ListFolders(t.Context(), session.FolderFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if f.State == session.FolderReady && !f.Auto() {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (p *twoHomes) wantNoImages(t *testing.T, a session.Agent) {
	t.Helper()
	images, err := a.ListImages(t.Context())
	if err != nil || slices.ContainsFunc(images, func(i session.Image) bool { return i.Origin != nil }) {
		t.Errorf("images are left: %+v, %v", images, err)
	}
}

func TestACopyLeavesTheSessionAsItIs(t *testing.T) {
	p := newHomes(t)
	w, _, _ := p.hub(t)
	s := p.running(t, w)
	plan, err := w.PlanRelocation(t.Context(), "study", copyToLab)
	if err != nil || plan.Files != 3 || plan.Name != "study-copy" || plan.Home != "" {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	o := w.operation(t, w.begins(t, "study", copyToLab).ID, ended)
	if o.State != hub.OperationDone || o.Kind != hub.SessionCopy {
		t.Fatalf("it ended as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	there := p.wantCopied(t, s, "study-copy")
	if heir := w.Heir(s.ID); heir != s.ID {
		t.Errorf("its heir is %s", heir)
	}

	// What is done in one is not in the other, and a second copy has another name.
	store(t, p.lab, session.Place{Session: there.ID}, "notes", "two\n")
	p.wantAsItWas(t, s)
	if plan, err = w.PlanRelocation(t.Context(), "study", copyToLab); err != nil || plan.Name != "study-copy-2" {
		t.Errorf("the next plan is %+v, %v", plan, err)
	}
	taken := copyToLab
	taken.Name = "study-copy"
	if _, err = w.Relocate(t.Context(), "study", taken); session.CodeOf(err) != session.CodeNameTaken {
		t.Errorf("a name that is taken: %v", err)
	}
	taken.Name = "a/b"
	if _, err = w.Relocate(t.Context(), "study", taken); session.CodeOf(err) != session.CodeInvalid {
		t.Errorf("no name: %v", err)
	}
}

// completing is a machine that writes a notebook into the home when an image is made, as keepers do.
type completing struct {
	session.Images
	write func(id session.ID)
}

func (c completing) CommitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	c.write(id)
	return c.Images.CommitSession(ctx, id, req)
}

func TestACopyHasWhatItsImageCompletes(t *testing.T) {
	p := newHomes(t)
	p.near.Images = completing{p.near.Images, func(id session.ID) {
		store(t, p.near, session.Place{Session: id}, "kept.ipynb", "{}")
	}}
	w, _, _ := p.hub(t)
	p.running(t, w)
	o := w.operation(t, w.begins(t, "study", copyToLab).ID, ended)
	there, _, err := w.Get(t.Context(), "study-copy")
	if o.State != hub.OperationDone || err != nil {
		t.Fatalf("it ended as %s: %+v, %v", o.State, o.Error, err)
	}
	if got := contentOf(t, p.lab, session.Place{Session: there.ID}, "kept.ipynb"); got != "{}" {
		t.Errorf("its notebook is %q", got)
	}
}

func TestACopyOnTheSameMachineSharesItsFolders(t *testing.T) {
	p := newHomes(t)
	w, _, _ := p.hub(t)
	s := p.running(t, w)
	o := w.operation(t, w.begins(t, "study", hub.Relocating{Agent: "local", Copy: true, Name: "twin"}).ID, ended)
	if o.State != hub.OperationDone {
		t.Fatalf("it ended as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	p.wantAsItWas(t, s)
	twin, _, err := w.Get(t.Context(), "twin")
	if err != nil || twin.Agent != "local" || twin.Status != session.Running {
		t.Fatalf("it is %+v, %v", twin, err)
	}
	store(t, p.near, session.Place{Session: twin.ID}, "sets/set.csv", "both\n")
	store(t, p.near, session.Place{Session: twin.ID}, "notes", "its own\n")
	p.wantAsItWas(t, s)
	if got := contentOf(t, p.near, session.Place{Session: s.ID}, "sets/set.csv"); got != "both\n" {
		t.Errorf("the folder has %q", got)
	}
	if got := p.foldersOf(t, p.near); !slices.Equal(got, []string{"sets", "twin"}) {
		t.Errorf("the folders are %v", got)
	}
}

func TestAStoppedSessionIsCopiedAsItWasKept(t *testing.T) {
	p := newHomes(t)
	w, _, _ := p.hub(t)
	s := p.running(t, w)
	if _, err := w.Park(t.Context(), string(s.ID)); err != nil {
		t.Fatal(err)
	}
	awaitIn(t, p.near, s.ID, session.Terminated)
	o := w.operation(t, w.begins(t, string(s.ID), copyToLab).ID, ended)
	if o.State != hub.OperationDone {
		t.Fatalf("it ended as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	there, _, err := w.Get(t.Context(), "study-copy")
	if err != nil || there.Agent != "lab" {
		t.Fatalf("it is %+v, %v", there, err)
	}
	if kept, err := p.near.Get(t.Context(), s.ID); err != nil || !kept.Continuable() {
		t.Errorf("what was kept is %+v, %v", kept, err)
	}
	if next, err := w.Continue(t.Context(), string(s.ID)); err != nil || next.From != s.ID {
		t.Errorf("it is continued as %+v, %v", next, err)
	}
}

func TestAFailedCopyLeavesNothing(t *testing.T) {
	p := newHomes(t)
	p.lab.Sessions = refusing{p.lab.Sessions}
	w, _, _ := p.hub(t)
	s := p.running(t, w)
	o := w.operation(t, w.begins(t, "study", copyToLab).ID, ended)
	if o.State != hub.OperationFailed || o.Error.Code != session.CodeDiskFull {
		t.Fatalf("it ended as %s: %+v, %+v", o.State, o.Error, o.Steps)
	}
	p.wantAsItWas(t, s)
	p.wantNothing(t)
	p.wantNoImages(t, p.near)
	p.wantNoImages(t, p.lab)
}

// withoutImages is a machine whose engine makes no images of sessions.
type withoutImages struct{ session.Host }

func (m withoutImages) Machine(ctx context.Context) (session.Machine, error) {
	known, err := m.Host.Machine(ctx)
	known.Lacks = []session.Feature{session.FeatureCommit}
	return known, err
}

func TestAnEngineThatMakesNoImagesIsToldOfBefore(t *testing.T) {
	p := newHomes(t)
	p.near.Host = withoutImages{p.near.Host}
	w, _, _ := p.hub(t)
	p.running(t, w)
	for _, req := range []hub.Relocating{copyToLab, moveToLab} {
		_, err := w.PlanRelocation(t.Context(), "study", req)
		if session.CodeOf(err) != session.CodeEngineUnsupported || !strings.Contains(err.Error(), "image") {
			t.Errorf("%+v: %v", req, err)
		}
	}
}

// crashing ends a hub at one of its writes, or cancels what it does there.
type crashing struct {
	hub.Shelf
	left   int
	cancel bool
	crash  func()
}

var errCrash = errors.New("the process is dead")

func (c *crashing) Save(key string, value any) error {
	if c.crash != nil && key == "hub.relocations" {
		if c.left--; c.left <= 0 {
			if c.crash(); !c.cancel {
				return errCrash
			}
		}
	}
	return c.Shelf.Save(key, value)
}

// TestAMoveSurvivesTheHub ends the hub at each write of a move, and wants the next one to finish it.
func TestAMoveSurvivesTheHub(t *testing.T) {
	survives(t, moveToLab, func(t *testing.T, p *twoHomes, s session.Session) { p.wantMoved(t, s) })
}

// TestACopySurvivesTheHub does so with a copy.
func TestACopySurvivesTheHub(t *testing.T) {
	survives(t, copyToLab, func(t *testing.T, p *twoHomes, s session.Session) { p.wantCopied(t, s, "study-copy") })
}

func survives(t *testing.T, req hub.Relocating, want func(*testing.T, *twoHomes, session.Session)) {
	var crashed atomic.Int32
	t.Run("each", func(t *testing.T) {
		for n := 1; n <= 12; n++ {
			t.Run(fmt.Sprint("at write ", n), func(t *testing.T) {
				t.Parallel()
				surviveTheHub(t, n, req, &crashed, want)
			})
		}
	})
	if crashed.Load() < 10 {
		t.Errorf("only %d hubs crashed", crashed.Load())
	}
}

func surviveTheHub(t *testing.T, n int, req hub.Relocating, crashed *atomic.Int32,
	want func(*testing.T, *twoHomes, session.Session)) {
	p := newHomes(t)
	inner := p.shelf
	shelf := &crashing{Shelf: inner, left: n}
	p.shelf = shelf
	dead := make(chan struct{})
	w, kill, stop := p.hub(t)
	s := p.running(t, w)
	shelf.crash = sync.OnceFunc(func() {
		kill()
		close(dead)
	})
	begun := w.begins(t, "study", req)
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.answers(t, begun.ID, "yes")
	}()
	select {
	case <-dead:
		crashed.Add(1)
	case <-over:
	}
	stop()
	<-over
	p.shelf = inner
	w, _, _ = p.hub(t)
	w.finishes(t, inner, begun.Kind)
	if n == 1 { // it was not even begun
		p.wantAsItWas(t, s)
		p.wantNothing(t)
		return
	}
	want(t, p, s)
}

// finishes waits until what an earlier hub has left under way has ended.
func (w world) finishes(t *testing.T, shelf hub.Shelf, kind hub.OperationKind) {
	t.Helper()
	for {
		for _, o := range w.Operations() {
			if o.Kind == kind {
				w.answers(t, o.ID, "yes")
			}
		}
		var left []any
		if _, err := shelf.Load("hub.relocations", &left); err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestACancelledCopyLeavesNothing cancels a copy at each write, and wants all of it or nothing.
func TestACancelledCopyLeavesNothing(t *testing.T) {
	cancels(t, copyToLab, func(t *testing.T, p *twoHomes, s session.Session, state hub.OperationState) {
		if state == hub.OperationDone {
			p.wantCopied(t, s, "study-copy")
			return
		}
		p.wantAsItWas(t, s)
		p.wantNothing(t)
		p.wantNoImages(t, p.near)
		p.wantNoImages(t, p.lab)
	})
}

// TestACancelledMoveLeavesNoFolders does so with a move.
func TestACancelledMoveLeavesNoFolders(t *testing.T) {
	cancels(t, moveToLab, func(t *testing.T, p *twoHomes, s session.Session, state hub.OperationState) {
		if slices.Equal(p.live(t, "study"), []string{"lab"}) { // too late
			p.wantMoved(t, s)
			return
		}
		if at := p.live(t, "study"); state == hub.OperationDone || !slices.Equal(at, []string{"local"}) {
			t.Errorf("it is %s, and live on %v", state, at)
		}
		p.wantNothing(t)
	})
}

func cancels(t *testing.T, req hub.Relocating,
	want func(*testing.T, *twoHomes, session.Session, hub.OperationState)) {
	for n := 1; n <= 11; n++ {
		t.Run(fmt.Sprint("at write ", n), func(t *testing.T) {
			t.Parallel()
			p := newHomes(t)
			shelf := &crashing{Shelf: p.shelf, left: n, cancel: true}
			p.shelf = shelf
			w, _, _ := p.hub(t)
			s := p.running(t, w)
			begun := make(chan string, 1)
			shelf.crash = sync.OnceFunc(func() {
				if _, err := w.CancelOperation(<-begun); err != nil {
					t.Error(err)
				}
			})
			id := w.begins(t, "study", req).ID
			begun <- id
			o := w.answers(t, id, "no")
			want(t, p, s, o.State)
		})
	}
}
