package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/environments"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// world is a hub over agents in memory, following them.
type world struct {
	*hub.Hub
	shelf  *hubtest.Shelf
	agents []*hubtest.Agent
}

func open(t *testing.T, names ...string) world {
	t.Helper()
	w := world{shelf: &hubtest.Shelf{}}
	var members []hub.Member
	for _, name := range names {
		a := hubtest.New(name)
		w.agents = append(w.agents, a)
		members = append(members, hub.Member{Name: name, Local: name == "local", Agent: a.Agent()})
	}
	w.Hub = openOn(t, w.shelf, members)
	return w
}

func openOn(t *testing.T, shelf hub.Shelf, members []hub.Member) *hub.Hub {
	t.Helper()
	h, err := hub.Open(hub.Config{Catalogue: environments.In(t.TempDir()), Members: members, Shelf: shelf,
		Settings: noSettings(t), Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// run follows the agents until the test ends, and waits until each was heard.
func (w world) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	w.WaitHeard(t.Context())
}

func next(t *testing.T, w *hub.Watcher) hub.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e, err := w.Next(ctx)
	if err != nil {
		t.Fatalf("no event came: %v", err)
	}
	return e
}

func spec(image string) session.Spec { return session.Spec{Image: image} }

func TestWatcherBeginsWithASnapshotAndThenSeesEveryChange(t *testing.T) {
	w := open(t, "local")
	first, err := w.agents[0].Launch(t.Context(), session.LaunchRequest{Spec: spec("a:1")})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t)
	watcher := w.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	e := next(t, watcher)
	if e.Snapshot == nil || len(e.Snapshot.Sessions) != 1 || e.Snapshot.Sessions[0].ID != first.ID {
		t.Fatalf("first event %+v, want a snapshot with %s", e, first.ID)
	}
	if m := e.Snapshot.Machines; len(m) != 1 || !m[0].Online || m[0].CPUs != 8 {
		t.Fatalf("machines %+v, want local, online, with 8 CPUs", m)
	}
	first.Status = session.Running
	w.agents[0].Put(first)
	changed := next(t, watcher)
	if changed.Session == nil || changed.Session.Status != session.Running || changed.Seq != e.Seq+1 {
		t.Fatalf("event %+v, want the session RUNNING with seq %d", changed, e.Seq+1)
	}
	w.agents[0].Remove(first.ID)
	if e := next(t, watcher); e.Removed != string(first.ID) {
		t.Fatalf("event %+v, want the removal", e)
	}
}

func TestWatcherResumesAfterItsCursor(t *testing.T) {
	w := open(t, "local")
	w.run(t)
	watcher := w.Watch(hub.Cursor{}, false)
	snapshot := next(t, watcher)
	for i := range 5 {
		w.agents[0].Put(session.Session{ID: session.ID(fmt.Sprintf("aaaaaaaaaaa%d", i)), Status: session.Pending})
	}
	second := next(t, watcher)
	watcher.Close()

	t.Run("in the same epoch it goes on", func(t *testing.T) {
		again := w.Watch(hub.Cursor{Epoch: second.Epoch, Seq: second.Seq}, false)
		defer again.Close()
		for i := range 4 {
			if e := next(t, again); e.Seq != second.Seq+uint64(i)+1 || e.Session == nil {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
	})
	t.Run("of another epoch it begins anew", func(t *testing.T) {
		other := w.Watch(hub.Cursor{Epoch: "other", Seq: snapshot.Seq}, false)
		defer other.Close()
		if e := next(t, other); e.Snapshot == nil {
			t.Fatalf("event %+v, want a snapshot", e)
		}
	})
	t.Run("from the future it begins anew", func(t *testing.T) {
		future := w.Watch(hub.Cursor{Epoch: second.Epoch, Seq: 1 << 40}, false)
		defer future.Close()
		if e := next(t, future); e.Snapshot == nil {
			t.Fatalf("event %+v, want a snapshot", e)
		}
	})
}

func TestNothingSecretIsTold(t *testing.T) {
	w := open(t, "local")
	hidden := spec("a:1")
	hidden.Env = []session.EnvVar{{Name: "HF_TOKEN", Value: "hush"}}
	s, err := w.agents[0].Launch(t.Context(), session.LaunchRequest{Spec: hidden})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t)
	watcher := w.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	snapshot := next(t, watcher)
	w.agents[0].Put(s)
	for _, told := range []any{snapshot, next(t, watcher), w.View(s)} {
		text, err := json.Marshal(told)
		if err != nil || strings.Contains(string(text), "hush") || !strings.Contains(string(text), "HF_TOKEN") {
			t.Errorf("a secret is told: %s, %v", text, err)
		}
	}
	if known, _, err := w.Get(t.Context(), string(s.ID)); err != nil || known.Spec.Env[0].Value != "hush" {
		t.Errorf("what the hub knows was changed: %+v, %v", known.Spec.Env, err)
	}
}

func TestSlowWatcherTakesASnapshotAndHoldsUpNobody(t *testing.T) {
	w := open(t, "local")
	w.run(t)
	slow, quick := w.Watch(hub.Cursor{}, false), w.Watch(hub.Cursor{}, false)
	defer slow.Close()
	defer quick.Close()
	next(t, slow)
	next(t, quick)
	s := session.Session{ID: "aaaaaaaaaaaa", Status: session.Pending}
	for range 3000 {
		s = w.agents[0].Put(s)
		if e := next(t, quick); e.Session == nil || e.Session.Revision != s.Revision {
			t.Fatalf("the quick watcher got %+v, want revision %d", e, s.Revision)
		}
	}
	e := next(t, slow)
	if e.Snapshot == nil || e.Snapshot.Sessions[0].Revision != s.Revision {
		t.Fatalf("the slow watcher got %+v, want a snapshot with revision %d", e, s.Revision)
	}
}

func TestUsageSamplesAreMergedBeforeTheyAreNumbered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		w.agents[0].Put(session.Session{ID: "aaaaaaaaaaaa", Status: session.Running})
		synctest.Wait()
		watcher := w.Watch(hub.Cursor{}, false)
		defer watcher.Close()
		before := next(t, watcher)
		sample := func(cpu float64) {
			w.agents[0].Tell(session.Event{Usage: []session.Usage{{Session: "aaaaaaaaaaaa", CPU: cpu}}})
			synctest.Wait()
		}
		sample(1)
		if e := next(t, watcher); len(e.Usage) != 1 || e.Usage[0].CPU != 1 || e.Seq != before.Seq+1 {
			t.Fatalf("event %+v, want the first sample at once", e)
		}
		for cpu := range 50 {
			sample(float64(cpu + 2))
		}
		if e := next(t, watcher); len(e.Usage) != 1 || e.Usage[0].CPU != 51 || e.Seq != before.Seq+2 {
			t.Fatalf("event %+v, want only the last of 50 samples", e)
		}
		if u := w.View(session.Session{ID: "aaaaaaaaaaaa"}).Usage; u == nil || u.CPU != 51 {
			t.Fatalf("newest usage %+v", u)
		}
	})
}

func TestAgentThatGoesSilentStaysVisibleAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		s := w.agents[0].Put(session.Session{ID: "aaaaaaaaaaaa", Name: "train", Status: session.Running})
		w.run(t)
		heard := w.Machines()[0].LastHeard
		time.Sleep(time.Minute)
		w.agents[0].SetDown(true)
		synctest.Wait()
		m := w.Machines()[0]
		if m.Online || m.CPUs != 8 || !m.LastHeard.Equal(heard) {
			t.Fatalf("machine %+v, want it offline as last heard at %v", m, heard)
		}
		list, err := w.List(t.Context(), "", session.Filter{})
		if err != nil || len(list) != 1 || list[0].ID != s.ID {
			t.Fatalf("list %v, %v; want what was last known", list, err)
		}
		w.agents[0].Restart("epoch-2")
		w.agents[0].SetDown(false)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if !w.Machines()[0].Online {
			t.Fatal("the agent came back and is still shown offline")
		}
	})
}

func TestRestartOfAnAgentReplacesWhatWasKnownOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.agents[0].Put(session.Session{ID: "aaaaaaaaaaaa", Status: session.Running})
		w.run(t)
		watcher := w.Watch(hub.Cursor{}, false)
		defer watcher.Close()
		next(t, watcher)
		w.agents[0].SetDown(true)
		w.agents[0].Remove("aaaaaaaaaaaa")
		w.agents[0].Fill([]session.Session{{ID: "bbbbbbbbbbbb", Status: session.Running}})
		w.agents[0].Restart("epoch-2")
		synctest.Wait()
		w.agents[0].SetDown(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		e := next(t, watcher) // the machine went offline
		for e.Snapshot == nil {
			e = next(t, watcher)
		}
		if len(e.Snapshot.Sessions) != 1 || e.Snapshot.Sessions[0].ID != "bbbbbbbbbbbb" {
			t.Fatalf("snapshot %+v, want only what the agent has now", e.Snapshot.Sessions)
		}
	})
}

func TestSnapshotHoldsTheNewestFinishedSessions(t *testing.T) {
	w := open(t, "local")
	begin := time.Now()
	var old []session.Session
	for i := range 700 {
		old = append(old, session.Session{ID: session.ID(fmt.Sprintf("a%011d", i)), Status: session.Terminated,
			CreatedAt: begin.Add(time.Duration(i) * time.Second)})
	}
	old = append(old, session.Session{ID: "live00000000", Status: session.Running, CreatedAt: begin.Add(-time.Hour)})
	w.agents[0].Fill(old)
	w.run(t)
	watcher := w.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	sessions := next(t, watcher).Snapshot.Sessions
	if len(sessions) != session.ResetFinished+1 || sessions[0].ID != "a00000000699" ||
		sessions[session.ResetFinished].ID != "live00000000" {
		t.Fatalf("%d sessions from %s to %s, want the newest finished ones and the live one", len(sessions),
			sessions[0].ID, sessions[len(sessions)-1].ID)
	}
	if _, id, err := w.Find(t.Context(), "a00000000001"); err != nil || id != "a00000000001" {
		t.Fatalf("an old session is not found: %v", err)
	}
}

func TestWindowGoesToOneShellAndNobodyElse(t *testing.T) {
	w := open(t, "local")
	w.run(t)
	if w.OpenWindow(hub.Window{URL: "u"}) {
		t.Fatal("a window was opened without a shell")
	}
	page, shell := w.Watch(hub.Cursor{}, false), w.Watch(hub.Cursor{}, true)
	defer page.Close()
	seen := next(t, shell)
	next(t, page)
	if !w.OpenWindow(hub.Window{URL: "u", Title: "t"}) {
		t.Fatal("the shell did not take the window")
	}
	if e := next(t, shell); e.Window == nil || e.Window.URL != "u" || e.Seq != seen.Seq {
		t.Fatalf("the shell got %+v", e)
	}
	shell.Close()
	w.agents[0].Put(session.Session{ID: "aaaaaaaaaaaa", Status: session.Pending})
	if e := next(t, page); e.Session == nil {
		t.Fatalf("the page got %+v, want the session only", e)
	}
	if w.OpenWindow(hub.Window{}) {
		t.Fatal("a shell that is gone took a window")
	}
}

func TestWatchersLearnThatTheHubStops(t *testing.T) {
	w := open(t, "local")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	watcher := w.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	cancel()
	<-done
	for {
		_, err := watcher.Next(t.Context())
		if session.CodeOf(err) == "server_request_unavailable" {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLaunch(t *testing.T) {
	t.Run("the same key gives the same session and one launch", func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		req := hub.LaunchRequest{Key: "k", Spec: spec("a:1")}
		first, err := w.Launch(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.Launch(t.Context(), req)
		if err != nil || second.ID != first.ID || w.agents[0].Launches() != 1 {
			t.Fatalf("second launch %s, %v, %d launches; want %s and 1", second.ID, err, w.agents[0].Launches(),
				first.ID)
		}
		if first.Owner != "ada" {
			t.Fatalf("owner %q, want ada", first.Owner)
		}
	})
	t.Run("an unknown agent is a wrong field", func(t *testing.T) {
		w := open(t, "local")
		s := spec("a:1")
		s.Agent = "lab"
		_, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: s})
		var e *session.Error
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != "agent" || w.agents[0].Launches() != 0 {
			t.Fatalf("error %+v", err)
		}
		p, err := w.Preview(t.Context(), "", s, 1)
		if err != nil || len(p.Errors) != 1 || p.Errors[0].Field != "agent" {
			t.Fatalf("preview %+v, %v", p, err)
		}
	})
	t.Run("an unknown agent and group are told together with the rest", func(t *testing.T) {
		w := open(t, "local", "lab")
		s := spec("a:1")
		s.Agent, s.Group, s.Accelerator = "gone", "nowhere", gpu.Request{Shares: 50}
		fields := func(wrong []session.FieldError) string {
			var names []string
			for _, e := range wrong {
				names = append(names, e.Field)
			}
			return strings.Join(names, " ")
		}
		p, err := w.Preview(t.Context(), "", s, 1)
		if err != nil || fields(p.Errors) != "group agent accelerator" || p.Spec.Agent != "gone" ||
			p.Spec.Group != "nowhere" {
			t.Errorf("preview %+v, %v", p, err)
		}
		_, err = w.Launch(t.Context(), hub.LaunchRequest{Spec: s})
		if got := fields(session.AsError(err, "").Fields); got != "group agent accelerator" {
			t.Errorf("launch %v, fields %s", err, got)
		}
	})
	t.Run("of several agents the one that has the image is chosen", func(t *testing.T) {
		w := open(t, "local", "lab")
		w.agents[1].SetImages(session.Image{ID: "i", Refs: []string{"a:1"}})
		s, err := w.Launch(t.Context(), hub.LaunchRequest{Key: "k", Spec: spec("a:1")})
		if err != nil || s.Agent != "lab" {
			t.Fatalf("launched on %q, %v; want lab", s.Agent, err)
		}
		w.agents[1].SetImages()
		again, err := w.Launch(t.Context(), hub.LaunchRequest{Key: "k", Spec: spec("a:1")})
		if err != nil || again.ID != s.ID {
			t.Fatalf("the key led to %s on %s, %v; want %s", again.ID, again.Agent, err, s.ID)
		}
	})
	t.Run("of several that could start it at once, this computer is chosen", func(t *testing.T) {
		w := open(t, "lab", "local")
		s, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: spec("a:1")})
		if err != nil || s.Agent != "local" {
			t.Fatalf("launched on %q, %v; want local", s.Agent, err)
		}
	})
	t.Run("several are forecast where each would be launched after those before it", func(t *testing.T) {
		w := open(t, "local", "lab")
		s := spec("a:1")
		s.Resources.CPU = 2
		p, err := w.Preview(t.Context(), "", s, 4)
		var agents []string
		for _, one := range p.All {
			agents = append(agents, one.Agent)
			if one.Wait != nil || !one.Pulls {
				t.Errorf("a forecast is %+v", one)
			}
		}
		if got := strings.Join(agents, " "); err != nil || p.Agent != agents[0] || got != "local local local local" {
			t.Errorf("forecast on %s, the first on %s, %v", got, p.Agent, err)
		}
	})
	t.Run("an agent that is not reached is not chosen", func(t *testing.T) {
		w := open(t, "local", "lab")
		w.agents[0].SetDown(true)
		s, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: spec("a:1")})
		if err != nil || s.Agent != "lab" {
			t.Fatalf("launched on %q, %v; want lab", s.Agent, err)
		}
		w.agents[1].SetDown(true)
		if _, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: spec("a:1")}); session.CodeOf(err).
			Detail() != session.DetailUnavailable {
			t.Fatalf("error %v, want that no agent is reached", err)
		}
	})
}

func TestHubWithoutAgentsSaysSo(t *testing.T) {
	w := open(t)
	s := spec("a:1")
	for _, s.Agent = range []string{"", "lab"} {
		if _, err := w.Preview(t.Context(), "", s, 1); session.CodeOf(err) != "agent_call_unavailable" {
			t.Errorf("preview fails with %v", err)
		}
		if _, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: s}); err == nil {
			t.Error("launched on nothing")
		}
	}
}

func TestFind(t *testing.T) {
	w := open(t, "local", "lab")
	w.run(t)
	old := w.agents[1].Put(session.Session{ID: "aaaaaaaaaaaa", Name: "train", Status: session.Terminated})
	live := w.agents[1].Put(session.Session{ID: "bbbbbbbbbbbb", Name: "train", Status: session.Running})
	for _, ref := range []string{string(live.ID), "train"} {
		if _, id, err := w.Find(t.Context(), ref); err != nil || id != live.ID {
			t.Errorf("Find(%q) = %s, %v", ref, id, err)
		}
	}
	if _, id, err := w.Find(t.Context(), string(old.ID)); err != nil || id != old.ID {
		t.Errorf("a finished session is not found by its id: %v", err)
	}
	for _, ref := range []string{"nobody", "cccccccccccc", "", "../x"} {
		if _, _, err := w.Find(t.Context(), ref); session.CodeOf(err) != "session_read_not-found" {
			t.Errorf("Find(%q) fails with %v", ref, err)
		}
	}
}

func TestListMergesAgentsByAge(t *testing.T) {
	w := open(t, "local", "lab")
	begin := time.Now()
	for i := range 6 {
		w.agents[i%2].Put(session.Session{ID: session.ID(fmt.Sprintf("aaaaaaaaaaa%d", i)), Status: session.Running,
			CreatedAt: begin.Add(time.Duration(i) * time.Second)})
	}
	list, err := w.List(t.Context(), "", session.Filter{Offset: 1, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, string(s.ID[11:]))
	}
	if strings.Join(got, "") != "432" {
		t.Fatalf("page %v, want 4 3 2", got)
	}
}

func TestEnvironments(t *testing.T) {
	w := open(t, "local")
	w.agents[0].SetImages(
		session.Image{ID: "sha256:1", Refs: []string{"python:3.12"}, Size: 1000},
		session.Image{ID: "sha256:2", Refs: []string{"python:3.9"}, Size: 900},
		session.Image{ID: "sha256:3", Refs: []string{"slipway-test/minimal:1"}, Size: 10,
			Labels: map[string]string{"org.opencontainers.image.title": "Minimal"}},
		session.Image{ID: "sha256:4444444444444444", Refs: []string{"<none>:<none>"}, Size: 5},
	)
	all := w.Environments(t.Context())
	found := map[string]string{}
	for i, family := range all {
		for j, v := range family.Versions {
			if v.Installed {
				found[v.Image] = family.Title
				if i > 2 {
					t.Errorf("installed family %s stands at place %d", family.Title, i)
				}
				if j > 0 && !family.Versions[j-1].Installed {
					t.Errorf("installed version %s stands behind one that is not", v.Image)
				}
			}
		}
	}
	want := map[string]string{"python:3.12": "Python", "python:3.9": "Python", "slipway-test/minimal:1": "Minimal",
		"sha256:4444444444444444": "Image 444444444444"}
	for image, title := range want {
		if found[image] != title {
			t.Errorf("%s is in family %q, want %q", image, found[image], title)
		}
	}
	if len(found) != len(want) {
		t.Errorf("installed %v", found)
	}
	ids := map[string]bool{}
	for _, family := range all {
		if ids[family.ID] {
			t.Errorf("two families have the id %s", family.ID)
		}
		ids[family.ID] = true
		for _, v := range family.Versions {
			if s := (session.Spec{Image: v.Image}); len(s.Validate(time.Now(), session.Limits{})) > 0 {
				t.Errorf("%s cannot be launched", v.Image)
			}
		}
	}
	t.Run("without an agent the catalogue is offered", func(t *testing.T) {
		w.agents[0].SetDown(true)
		if got := w.Environments(t.Context()); len(got) < 5 || got[0].ID != "jupyter-scipy" {
			t.Fatalf("%d families", len(got))
		}
	})
}

func TestWhatHasJupyterIsKnownBeforeItRuns(t *testing.T) {
	w := open(t, "local")
	image := func(ref, base string, labels map[string]string) session.Image {
		one := session.Image{ID: "sha256:" + ref, Refs: []string{ref}, Labels: labels}
		if base != "" {
			one.Origin = &session.ImageOrigin{Name: "mine", Base: base}
		}
		return one
	}
	w.agents[0].SetImages(
		image("quay.io/jupyter/scipy-notebook:latest", "", nil),
		image("slipway-custom/ada:1", "quay.io/jupyter/r-notebook:latest", nil),
		image("slipway-custom/ada:2", "python:3.12", nil),
		image("team/jupyter:1", "", nil),
		image("team/notebook:1", "", nil),
		image("team/jupyter-free:1", "", map[string]string{"slipway.jupyter": "none"}),
		image("team/tools:1", "", map[string]string{"slipway.jupyter": "lab"}),
		image("team/tools:2", "", nil),
	)
	found := map[string]string{}
	for _, family := range w.Environments(t.Context()) {
		for _, v := range family.Versions {
			if v.Installed {
				found[v.Image] = v.Jupyter
			}
		}
	}
	want := map[string]string{"quay.io/jupyter/scipy-notebook:latest": "lab", "slipway-custom/ada:1": "lab",
		"slipway-custom/ada:2": "", "team/jupyter:1": "lab", "team/notebook:1": "notebook", "team/jupyter-free:1": "",
		"team/tools:1": "lab", "team/tools:2": ""}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

func TestPresetsCanBeLaunched(t *testing.T) {
	for _, p := range open(t, "local").Presets() {
		s := session.Spec{Image: "a:1", Resources: p.Resources}
		if wrong := s.Validate(time.Now(), session.Limits{}); len(wrong) > 0 || !p.Builtin {
			t.Errorf("preset %s: %v", p.ID, wrong)
		}
	}
}

func FuzzRecentsOnTheShelfNeverKeepTheHubFromOpening(f *testing.F) {
	good, err := json.Marshal([]hub.Recent{
		{ID: "a", Name: "n", Spec: session.Spec{Image: "a:1", Env: []session.EnvVar{{Name: "TOKEN", Value: "hush"}}}}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(good), `[]`, `null`, `{}`, `[{"id":"a"},{"id":"a"}]`,
		`[{"spec":{"resources":{"memory":"1x"}}}]`,
		`[{"id":"b","spec":{"timeout":"5m","notBefore":"2031-01-01T00:00:00Z"}}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		shelf := &hubtest.Shelf{}
		shelf.SetRaw("hub.recents", data)
		h := openOn(t, shelf, nil)
		unpinned := 0
		for _, r := range h.Recents() {
			if !r.Pinned {
				unpinned++
			}
			for _, v := range r.Spec.Env {
				if session.SecretName(v.Name) && v.Value != "" {
					t.Fatalf("the secret %s came back", v.Name)
				}
			}
		}
		if unpinned > 5 {
			t.Fatalf("%d entries are kept", unpinned)
		}
	})
}
