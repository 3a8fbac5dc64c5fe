package hub_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// deviceBoard is a machine with one device that is so busy.
func deviceBoard(util int) session.DeviceBoard {
	return session.DeviceBoard{Source: "sim", Quantum: 100, At: time.Now(), Devices: []session.DeviceState{
		{Device: gpu.Device{UUID: "GPU-0", Model: "Sim", Memory: 16 * gpu.GiB},
			DeviceStatus: session.DeviceStatus{Free: 400, MemoryFree: 6 * gpu.GiB, Util: &util}}}}
}

func utilOf(t *testing.T, e hub.Event) int {
	t.Helper()
	if e.Devices == nil || len(e.Devices.Devices) != 1 || e.Devices.Devices[0].Util == nil {
		t.Fatalf("event %+v, want a board", e)
	}
	return *e.Devices.Devices[0].Util
}

func TestBoardsAreMergedBeforeTheyAreNumbered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local", "lab")
		w.run(t)
		watcher := w.Watch(hub.Cursor{}, false)
		defer watcher.Close()
		before := next(t, watcher)
		if len(before.Snapshot.Devices) != 0 {
			t.Fatalf("snapshot has boards that nobody told: %+v", before.Snapshot.Devices)
		}
		tell := func(agent, util int) {
			w.agents[agent].SetBoard(deviceBoard(util))
			synctest.Wait()
		}
		tell(0, 1)
		if e := next(t, watcher); utilOf(t, e) != 1 || e.Seq != before.Seq+1 || e.Devices.Agent != "local" ||
			!e.Devices.Online {
			t.Fatalf("event %+v, want the first board at once", e)
		}
		for n := range 50 {
			tell(0, n+2)
			tell(1, n+102)
		}
		first, second := next(t, watcher), next(t, watcher)
		if utilOf(t, first) != 51 || utilOf(t, second) != 151 || second.Devices.Agent != "lab" ||
			second.Seq != before.Seq+3 {
			t.Fatalf("events %+v and %+v, want only the last board of each agent", first, second)
		}
		fresh := w.Watch(hub.Cursor{}, false)
		defer fresh.Close()
		if s := next(t, fresh).Snapshot; len(s.Devices) != 2 || *s.Devices[0].Devices[0].Util != 51 {
			t.Fatalf("snapshot %+v", s.Devices)
		}
		w.agents[1].SetDown(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		e := next(t, watcher)
		for e.Devices == nil {
			e = next(t, watcher)
		}
		if e.Devices.Agent != "lab" || e.Devices.Online {
			t.Fatalf("board %+v, want that of an agent that is not reached", e.Devices)
		}
	})
}

func TestBoardsOfThoseThatAnswer(t *testing.T) {
	w := open(t, "local", "lab")
	w.agents[0].SetBoard(deviceBoard(1))
	w.agents[1].SetDown(true)
	boards, err := w.Boards(t.Context(), "")
	if err != nil || len(boards) != 1 || boards[0].Agent != "local" {
		t.Fatalf("boards %+v, %v", boards, err)
	}
	w.agents[0].SetDown(true)
	if _, err := w.Boards(t.Context(), ""); session.CodeOf(err).Detail() != session.DetailUnavailable {
		t.Fatalf("nobody answers: %v", err)
	}
}

func TestDependentsAreKnownOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.agents[0].Put(session.Session{ID: "aaaaaaaaaaaa", Name: "first", Status: session.Running})
		w.run(t)
		watcher := w.Watch(hub.Cursor{}, false)
		defer watcher.Close()
		next(t, watcher)
		second := w.agents[0].Put(session.Session{ID: "bbbbbbbbbbbb", Status: session.Pending,
			Resolved: session.Resolved{DependsOn: []session.ID{"aaaaaaaaaaaa"}}})
		if e := next(t, watcher); e.Session.ID != "bbbbbbbbbbbb" || len(e.Session.Dependents) != 0 {
			t.Fatalf("event %+v", e)
		}
		if e := next(t, watcher); e.Session.ID != "aaaaaaaaaaaa" ||
			!slices.Equal(e.Session.Dependents, []session.ID{"bbbbbbbbbbbb"}) {
			t.Fatalf("event %+v, want the session that is waited for", e)
		}
		w.agents[0].Put(second)
		if e := next(t, watcher); e.Session.ID != "bbbbbbbbbbbb" {
			t.Fatalf("event %+v", e)
		}
		fresh := w.Watch(hub.Cursor{}, false)
		defer fresh.Close()
		for _, s := range next(t, fresh).Snapshot.Sessions {
			if s.ID == "aaaaaaaaaaaa" && !slices.Equal(s.Dependents, []session.ID{"bbbbbbbbbbbb"}) ||
				s.ID == "bbbbbbbbbbbb" && len(s.Dependents) != 0 {
				t.Fatalf("snapshot %+v", s)
			}
		}
		w.agents[0].Remove("bbbbbbbbbbbb")
		synctest.Wait()
		if ids := w.View(session.Session{ID: "aaaaaaaaaaaa"}).Dependents; len(ids) != 0 {
			t.Fatalf("dependents %v after the record of the only one is gone", ids)
		}
		w.agents[0].Put(second)
		w.agents[0].Restart("epoch-2")
		synctest.Wait()
		ids := w.View(session.Session{ID: "aaaaaaaaaaaa"}).Dependents
		if !slices.Equal(ids, []session.ID{"bbbbbbbbbbbb"}) {
			t.Fatalf("dependents %v after a restart of the agent", ids)
		}
	})
}

func TestPresetsAreKept(t *testing.T) {
	w := open(t, "local")
	w.run(t)
	watcher := w.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	next(t, watcher)
	mine, err := w.AddPreset(hub.PresetContent{Name: "Half", Resources: session.Resources{CPU: 2, Memory: gpu.GiB},
		Accelerator: gpu.Request{Shares: 500}})
	if err != nil {
		t.Fatal(err)
	}
	if e := next(t, watcher); e.Presets == nil || len(*e.Presets) != 4 || (*e.Presets)[3] != mine {
		t.Fatalf("event %+v", e)
	}
	again := openOn(t, w.shelf, nil)
	if all := again.Presets(); len(all) != 4 || all[3] != mine {
		t.Fatalf("after a restart: %+v", all)
	}
	t.Run("a change that cannot be saved is none", func(t *testing.T) {
		w.shelf.Fail(errors.New("the disk is full"))
		defer w.shelf.Fail(nil)
		if _, err := w.UpdatePreset(mine.ID, hub.PresetUpdate{Name: ptr("Other")}); err == nil {
			t.Error("no error")
		}
		if err := w.DeletePreset(mine.ID); err == nil || w.Presets()[3] != mine {
			t.Errorf("%v, presets %+v", err, w.Presets())
		}
	})
	t.Run("only so many", func(t *testing.T) {
		for n := range 100 {
			_, err := w.AddPreset(hub.PresetContent{Name: "p" + strings.Repeat("x", n%60) + string(rune('a'+n/60))})
			if (n == 99) != (session.CodeOf(err) == "settings_update_conflict") {
				t.Fatalf("preset %d: %v", n, err)
			}
		}
	})
}

func FuzzPresetsOnTheShelfNeverKeepTheHubFromOpening(f *testing.F) {
	for _, seed := range []string{
		`[{"id":"p-1","name":"Half","resources":{"cpu":2,"memory":1073741824},"accelerator":{"shares":500}}]`, `[]`,
		`null`, `{}`, `[{"id":"p"},{"id":"p"}]`,
		`[{"id":"a","name":"x","accelerator":{"shares":5,"devices":1}}]`,
		`[{"id":"a","name":"x","resources":{"memory":"1x"}}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		shelf := &hubtest.Shelf{}
		shelf.SetRaw("hub.presets", data)
		for _, p := range openOn(t, shelf, nil).Presets() {
			s := session.Spec{Image: "a:1", Resources: p.Resources, Accelerator: p.Accelerator}
			if wrong := s.Validate(time.Now(), session.Limits{}); len(wrong) > 0 || p.ID == "" || p.Name == "" {
				t.Fatalf("preset %+v: %v", p, wrong)
			}
		}
	})
}

func TestLaunchesAreSpreadAndNamed(t *testing.T) {
	w := open(t, "local", "lab")
	w.run(t)
	outcomes, err := w.LaunchMany(t.Context(),
		hub.LaunchRequest{Spec: session.Spec{Image: "a:1", Name: "train", Schedule: session.Schedule{After: nil}}}, 2)
	if err != nil || len(outcomes) != 2 || outcomes[0].Session.Name != "train-1" ||
		outcomes[1].Session.Name != "train-2" {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	if first := outcomes[0].Session.Launch; first == "" || outcomes[1].Session.Launch != first {
		t.Errorf("the launches are %q and %q, want one", first, outcomes[1].Session.Launch)
	}
	if alone := launch(t, w, spec("a:1")); alone.Launch != "" {
		t.Errorf("what is launched alone has the launch %q", alone.Launch)
	}
	t.Run("random names without one", func(t *testing.T) {
		outcomes, err := w.LaunchMany(t.Context(), hub.LaunchRequest{Spec: session.Spec{Image: "a:1"}}, 2)
		if err != nil || outcomes[0].Session.Name == "" || outcomes[0].Session.Name == outcomes[1].Session.Name {
			t.Fatalf("%+v, %v", outcomes, err)
		}
	})
	t.Run("what failed is launched when it is sent again", func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		req := hub.LaunchRequest{Key: "k", Spec: session.Spec{Image: "a:1", Name: "train"}}
		w.agents[0].Refuse("train-2", &session.Error{Code: "session_create_already-exists", Message: "Taken."})
		first, err := w.LaunchMany(t.Context(), req, 3)
		if err != nil || first[1].Err == nil || w.agents[0].Launches() != 2 {
			t.Fatalf("%+v, %v", first, err)
		}
		w.agents[0].Refuse("train-2", nil)
		again, err := w.LaunchMany(t.Context(), req, 3)
		if err != nil || again[1].Err != nil || again[0].Session.ID != first[0].Session.ID ||
			again[1].Session.Launch != first[0].Session.Launch || w.agents[0].Launches() != 3 {
			t.Fatalf("%+v, %v, %d launches", again, err, w.agents[0].Launches())
		}
	})
	t.Run("what is waited for is remembered by its name", func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		first := spec("a:1")
		first.Name = "prepare"
		s := launch(t, w, first)
		second := spec("b:1")
		second.After = []string{string(s.ID)}
		if got := launch(t, w, second); len(got.DependsOn) != 1 {
			t.Fatalf("session %+v", got)
		}
		if recent := w.Recents()[0]; !slices.Equal(recent.Spec.After, []string{"prepare"}) {
			t.Errorf("recent %+v", recent)
		}
	})
}
