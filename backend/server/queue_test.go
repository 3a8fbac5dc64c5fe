package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

func ptr[T any](value T) *T { return &value }

// board is a machine with one busy device and one that tells little.
func board() session.DeviceBoard {
	return session.DeviceBoard{
		Source: "sim", Quantum: 100, Strategy: "fill", Attach: "none", At: time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC),
		Devices: []session.DeviceState{
			{Device: gpu.Device{UUID: "GPU-0", Vendor: gpu.Sim, Model: "Sim 16", Memory: 16 * gpu.GiB,
				Reserved: gpu.GiB,
				Capabilities: gpu.Capabilities{ProcessMemory: gpu.Probe{State: gpu.Yes},
					MIG: gpu.Probe{State: gpu.No, Why: "This model has none."}}},
				DeviceStatus: session.DeviceStatus{
					Free:        500,
					MemoryFree:  7 * gpu.GiB,
					Level:       gpu.LevelWatched,
					Util:        ptr(4200),
					MemoryUsed:  ptr(8 * gpu.GiB),
					Power:       ptr(gpu.MilliWatt(90500)),
					Temperature: ptr(61),
					Holders: []session.DeviceHolder{
						{Session: "aaaaaaaaaaaa", Name: "train-aaaa", Owner: "ada", Share: 500,
							Promised: 7 * gpu.GiB, Memory: ptr(6 * gpu.GiB), Util: ptr(4000)},
						{Name: "python", Owner: "bob", PID: 4312, Memory: ptr(2 * gpu.GiB)}},
				}},
			{Device: gpu.Device{UUID: "GPU-1", Vendor: gpu.Sim, Model: "Sim 16", Index: 1},
				DeviceStatus: session.DeviceStatus{Free: 1000, Level: gpu.LevelNone}},
		},
	}
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestSpecComesBackAsItWasAsked(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	spec := `{"name":"again","type":"interactive","image":"a:1",
"resources":{"cpu":1,"memory":1073741824,"shm":67108864},
		"accelerator":"0.5","uncooperative":true,"mps":true,"cluster":2,"priority":0,
"after":["aaaaaaaaaaaa"],"pendingTimeout":"2h","label":"vision","commitOnEnd":3,
		"idle":{"lifetime":"2d","network":"1h","use":{"window":"30m","grace":"5m","any":true,"cpu":0.5,"gpu":5}}}`
	var s api.Session
	if status := w.call(t, "POST", "/api/v1/sessions", `{"spec":`+spec+`}`, &s); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	want := session.Spec{Name: "again", Type: "interactive", Image: "a:1",
		Resources:   session.Resources{CPU: 1, Memory: 1 << 30, Shm: 64 << 20},
		Accelerator: gpu.Request{Shares: 500}, Tuning: session.Tuning{Uncooperative: true, MPS: true}, Cluster: 2,
		Schedule: session.Schedule{
			Priority:       ptr(0),
			After:          []string{"aaaaaaaaaaaa"},
			PendingTimeout: session.Duration(2 * time.Hour),
		}, Label: "vision",
		Lifetime: session.Lifetime{
			CommitOnEnd: 3,
			Idle: &session.IdlePolicy{Lifetime: session.Duration(2 * 24 * time.Hour),
				Network: session.Duration(1 * time.Hour),
				Use: session.UsePolicy{Window: session.Duration(30 * time.Minute),
					Grace: session.Duration(5 * time.Minute), Any: true,
					CPU: ptr(0.5), GPU: ptr(5.0)}},
		}}
	if !reflect.DeepEqual(s.Spec, want) {
		t.Errorf("spec  %+v\nwant %+v", s.Spec, want)
	}
	if s.Priority != 0 || !reflect.DeepEqual(s.DependsOn, []session.ID{"aaaaaaaaaaaa"}) {
		t.Errorf("session %+v", s)
	}
	// The hub learns of the session by an event, which may come after the answer.
	w.until(t, "the first has the new one as its dependent", func() bool {
		var first api.Session
		w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa", "", &first)
		return reflect.DeepEqual(first.Dependents, []session.ID{s.ID})
	})
}

func TestAcceleratorsAreUnderstoodAsPeopleWriteThem(t *testing.T) {
	w := start(t)
	for text, want := range map[string]gpu.Request{
		"": {}, "0": {}, "none": {},
		"0.5":           {Shares: 500},
		"2":             {Devices: 2},
		"1.0":           {Devices: 1},
		"mig:1g.10gb":   {Profile: "1g.10gb", Count: 1},
		"mig:1g.10gb:2": {Profile: "1g.10gb", Count: 2},
		"vram:12g":      {Memory: 12 << 30},
	} {
		var p api.Preview
		if status := w.call(t, "POST", "/api/v1/preview", fmt.Sprintf(`{"image":"a:1","accelerator":%q}`, text),
			&p); status != 200 || len(p.Errors) > 0 {
			t.Errorf("%q: %d %+v", text, status, p.Errors)
		}
		if p.Spec.Accelerator != want {
			t.Errorf("%q is %+v, want %+v", text, p.Spec.Accelerator, want)
		}
		if !want.IsZero() && !strings.Contains(p.Command, " --gpu "+want.String()) {
			t.Errorf("%q: command %q", text, p.Command)
		}
	}
}

func TestPreviewSaysWhatWouldBeGivenInstead(t *testing.T) {
	w := start(t)
	conn := w.dial(t, "/api/v1/events")
	nextEvent(t, conn)
	w.agent.SetBoard(board())
	nextEvent(t, conn)
	for text, want := range map[string]*api.Rounding{
		"0.5":      nil,
		"vram:12g": nil,
		"0.25": {Rounding: gpu.Rounding{Asked: 250, Given: 200, Less: true,
			Why: "Shares are given in multiples of 0.1."}, Accept: "0.2"},
		"1.999": {Rounding: gpu.Rounding{Asked: 1999, Given: 1900, Less: true,
			Why: "Shares are given in multiples of 0.1."}, Accept: "1.9"},
		"0.05": {Rounding: gpu.Rounding{Asked: 50, Given: 100, Why: "Shares are given in multiples of 0.1."},
			Accept: "0.1"},
	} {
		var p api.Preview
		if status := w.call(t, "POST", "/api/v1/preview", fmt.Sprintf(`{"image":"a:1","accelerator":%q}`, text),
			&p); status != 200 || !reflect.DeepEqual(p.Rounded, want) {
			t.Errorf("%s: %d %+v, want %+v", text, status, p.Rounded, want)
		}
		if (want != nil) != (len(p.Errors) > 0) {
			t.Errorf("%s: errors %+v", text, p.Errors)
		}
	}
}

func TestPreviewTellsOfEachSession(t *testing.T) {
	w := start(t)
	var p api.Preview
	if status := w.call(t, "POST", "/api/v1/preview?count=3", `{"image":"a:1"}`, &p); status != 200 ||
		len(p.Forecasts) != 3 || p.Forecasts[2].Agent != p.Agent || len(p.Further) > 0 ||
		p.Command != "slipway run --image a:1 --count 3" {
		t.Errorf("preview %d %+v", status, p)
	}
	for _, count := range []string{"11", "x", "-1"} {
		var e session.Error
		if status := w.call(t, "POST", "/api/v1/preview?count="+count, `{"image":"a:1"}`, &e); status != 400 {
			t.Errorf("count %s: %d", count, status)
		}
	}
}

func TestCommandLineAsksForAllOfTheSpec(t *testing.T) {
	w := start(t)
	var p api.Preview
	w.call(t, "POST", "/api/v1/preview",
		`{"image":"a:1","type":"batch","command":"true","setup":"pip install x",
"accelerator":"0.5","uncooperative":true,"admin":true,"mps":true,"cluster":3,"priority":0,
		"after":["abcd","efgh"],"pendingTimeout":"2h","label":"my vision","commitOnEnd":3,"keepHome":"2d",
		"timeout":"5m","slurm":{"partition":"gpu","account":"lab","qos":"long","gpuType":"a100","time":"4h",
		"constraint":"ib&ssd","reservation":"course","options":["--exclusive","--comment=my own"]},
		"idle":{"lifetime":"2d","network":"1h","use":{"window":"30m","grace":"5m",
"any":true,"cpu":0.5,"memory":1,"gpu":5,"vram":7.25},"park":true}}`, &p)
	want := "slipway run --image a:1 --type batch --setup 'pip install x' --gpu 0.5 --uncooperative --admin --mps " +
		"--cluster 3 --priority 0 --after abcd --after efgh --pending-timeout 2h --label 'my vision' " +
		"--commit-on-end 3 --keep-home=2d " +
		"--idle-lifetime 2d --idle-network 1h --idle-window 30m --idle-grace 5m --idle-any --idle-keep " +
		"--idle-cpu 0.5 --idle-memory 1 --idle-gpu 5 --idle-vram 7.25 " +
		"--partition gpu --account lab --qos long --gpu-type a100 " +
		"--time-limit 4h --constraint 'ib&ssd' --reservation course --sbatch-option=--exclusive " +
		"--sbatch-option='--comment=my own' --timeout 5m -- true"
	if p.Command != want {
		t.Errorf("got  %s\nwant %s", p.Command, want)
	}
	w.call(t, "POST", "/api/v1/preview", `{"image":"a:1","idle":{}}`, &p)
	if want := "slipway run --image a:1 --idle-off"; p.Command != want {
		t.Errorf("got  %s\nwant %s", p.Command, want)
	}
}

func TestSeveralAtOnce(t *testing.T) {
	launch := func(t *testing.T, w *world, body string) ([]api.Launched, int, session.Error) {
		t.Helper()
		response, text := do(t, http.DefaultClient, w.request(t, "POST", "/api/v1/launches", body))
		var launched []api.Launched
		var problem session.Error
		if response.StatusCode == 200 {
			read(t, text, &launched)
		} else {
			read(t, text, &problem)
		}
		return launched, response.StatusCode, problem
	}
	t.Run("are numbered, in their order, once for each key", func(t *testing.T) {
		w := start(t)
		body := `{"key":"k","count":3,"spec":{"image":"a:1","name":"train"}}`
		first, status, _ := launch(t, w, body)
		if status != 200 || len(first) != 3 {
			t.Fatalf("%d %+v", status, first)
		}
		for i, one := range first {
			if one.Session == nil || one.Session.Name != fmt.Sprintf("train-%d", i+1) {
				t.Errorf("%d is %+v", i, one)
			}
		}
		again, _, _ := launch(t, w, body)
		if len(again) != 3 || again[2].Session == nil || again[2].Session.ID != first[2].Session.ID ||
			w.agent.Launches() != 3 {
			t.Errorf("sent again: %+v, %d launches", again, w.agent.Launches())
		}
		var recents []hub.Recent
		w.call(t, "GET", "/api/v1/recents", "", &recents)
		if len(recents) != 1 || recents[0].Name != "train" {
			t.Errorf("recents %+v, want one", recents)
		}
	})
	t.Run("of one need no number", func(t *testing.T) {
		w := start(t)
		one, status, _ := launch(t, w, `{"spec":{"image":"a:1","name":"train"}}`)
		if status != 200 || len(one) != 1 || one[0].Session.Name != "train" {
			t.Errorf("%d %+v", status, one)
		}
	})
	t.Run("have an outcome each", func(t *testing.T) {
		w := start(t)
		w.agent.Refuse("train-2", &session.Error{Code: "session_create_already-exists", Message: "The name is taken.",
			Hint: "Choose another."})
		three, status, _ := launch(t, w, `{"count":3,"spec":{"image":"a:1","name":"train"}}`)
		if status != 200 || len(three) != 3 || three[0].Session == nil || three[1].Session != nil ||
			three[2].Session == nil {
			t.Fatalf("%d %+v", status, three)
		}
		if p := three[1].Problem; p == nil || p.Code != "session_create_already-exists" || p.Hint == "" {
			t.Errorf("problem %+v", p)
		}
	})
	t.Run("are none when the spec is wrong", func(t *testing.T) {
		w := start(t)
		for field, body := range map[string]string{
			"count":       `{"count":11,"spec":{"image":"a:1"}}`,
			"image":       `{"count":2,"spec":{}}`,
			"name":        `{"count":10,"spec":{"image":"a:1","name":"` + strings.Repeat("x", 63) + `"}}`,
			"accelerator": `{"count":2,"spec":{"image":"a:1","accelerator":"x"}}`,
			"key":         `{"count":2,"spec":{"image":"a:1"},"key":"` + strings.Repeat("k", 200) + `"}`,
		} {
			_, status, p := launch(t, w, body)
			if status != 422 || len(p.Fields) == 0 || p.Fields[0].Field != field {
				t.Errorf("%s: %d %+v", field, status, p)
			}
		}
		if _, status, p := launch(t, w, `{"count":-1,"spec":{"image":"a:1"}}`); status != 422 ||
			p.Fields[0].Field != "count" {
			t.Errorf("a negative count: %d %+v", status, p)
		}
		if n := w.agent.Launches(); n != 0 {
			t.Errorf("%d sessions were created", n)
		}
	})
}

func TestPriorityAndNameAreChanged(t *testing.T) {
	w := start(t)
	w.agent.Put(session.Session{ID: "pppppppppppp", Name: "waiting", Status: session.Pending})
	w.running("aaaaaaaaaaaa")
	var s api.Session
	if status := w.call(t, "PATCH", "/api/v1/sessions/waiting", `{"priority":90,"name":"renamed"}`,
		&s); status != 200 || s.Priority != 90 || s.Name != "renamed" {
		t.Fatalf("%d %+v", status, s)
	}
	for name, c := range map[string]struct {
		id, body, field string
		status          int
	}{
		"nothing":                {"pppppppppppp", `{}`, "name", 422},
		"too high":               {"pppppppppppp", `{"priority":101}`, "priority", 422},
		"negative":               {"pppppppppppp", `{"priority":-1,"name":"other-name"}`, "priority", 422},
		"a bad name":             {"pppppppppppp", `{"priority":5,"name":"x"}`, "name", 422},
		"no number":              {"pppppppppppp", `{"priority":"high"}`, "priority", 400},
		"of one that runs":       {"aaaaaaaaaaaa", `{"priority":5}`, "", 409},
		"of none":                {"zzzzzzzzzzzz", `{"priority":5}`, "", 404},
		"with an unknown member": {"pppppppppppp", `{"prio":5}`, "prio", 400},
	} {
		var p session.Error
		status := w.call(t, "PATCH", "/api/v1/sessions/"+c.id, c.body, &p)
		if status != c.status || p.Code == "" || p.Message == "" || p.Hint == "" && c.field == "" || c.field != "" &&
			(len(p.Fields) == 0 || p.Fields[0].Field != c.field) {
			t.Errorf("%s: %d %+v", name, status, p)
		}
	}
	w.call(t, "GET", "/api/v1/sessions/pppppppppppp", "", &s)
	if s.Priority != 90 || s.Name != "renamed" {
		t.Errorf("a refused change changed %+v", s)
	}
}

func TestKeepAndIdleSimulation(t *testing.T) {
	w := start(t)
	s := w.running("aaaaaaaaaaaa")
	var kept api.Session
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/keep", `{"for":"4h"}`, &kept); status != 200 ||
		kept.KeepUntil == nil || !kept.KeepUntil.Equal(s.CreatedAt.Add(4*time.Hour)) {
		t.Fatalf("%d %+v", status, kept.KeepUntil)
	}
	for _, text := range []string{"", "59s", "-4h", "31d", "long", "4 h"} {
		var p session.Error
		if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/keep", fmt.Sprintf(`{"for":%q}`, text),
			&p); status != 422 || p.Code != "session_update_invalid" || p.Hint == "" || p.Fields[0].Field != "for" {
			t.Errorf("keep for %q: %d %+v", text, status, p)
		}
	}
	kept = api.Session{}
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/keep", `{"for":"0"}`, &kept); status != 200 ||
		kept.KeepUntil != nil {
		t.Errorf("not kept any more: %d %v", status, kept.KeepUntil)
	}
	var simulation session.IdleSimulation
	if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/idle-simulation", `{"lifetime":"1h"}`,
		&simulation); status != 200 || !simulation.Ended || simulation.At == nil || simulation.Checker != "lifetime" {
		t.Errorf("%d %+v", status, simulation)
	}
	for field, body := range map[string]string{"lifetime": `{"lifetime":"x"}`, "network": `{"network":"5s"}`,
		"use.window": `{"use":{"gpu":5}}`, "use.gpu": `{"use":{"window":"5m","gpu":-1}}`,
		"use": `{"use":{"any":true}}`} {
		var p session.Error
		if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/idle-simulation", body, &p); status != 422 ||
			p.Code != "session_update_invalid" || p.Fields[0].Field != field {
			t.Errorf("%s: %d %+v", body, status, p)
		}
	}
}

func TestQueueIsInTheOrderOfTurns(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	start := time.Date(2031, 5, 1, 13, 0, 0, 0, time.UTC)
	for i, id := range []session.ID{"cccccccccccc", "dddddddddddd", "bbbbbbbbbbbb"} {
		s := session.Session{ID: id, Name: "wait-" + string(id[:4]), Status: session.Pending,
			CreatedAt: time.Now().Add(time.Duration(i) * time.Second)}
		if i < 2 {
			s.Wait = &session.Wait{Code: "session_schedule_no-gpu", Message: "needs 0.5, 0.2 is free", Position: 2 - i,
				Start: &start, Margin: session.Duration(5 * time.Minute)}
		}
		w.agent.Put(s)
	}
	var queue []api.Session
	w.call(t, "GET", "/api/v1/queue", "", &queue)
	var ids []string
	for _, s := range queue {
		ids = append(ids, string(s.ID))
	}
	if !reflect.DeepEqual(ids, []string{"dddddddddddd", "cccccccccccc", "bbbbbbbbbbbb"}) {
		t.Errorf("queue %v", ids)
	}
	if wait := queue[0].Wait; wait.Margin != session.Duration(5*time.Minute) || wait.Start == nil ||
		!wait.Start.Equal(start) {
		t.Errorf("wait %+v", wait)
	}
}

func TestDevicesAreTold(t *testing.T) {
	w := start(t)
	conn := w.dial(t, "/api/v1/events")
	nextEvent(t, conn)
	w.agent.SetBoard(board())
	event := nextEvent(t, conn)
	if event.Devices == nil || event.Devices.Agent != "local" || !event.Devices.Online ||
		len(event.Devices.Devices) != 2 {
		t.Fatalf("event %+v", event)
	}
	var boards []api.DeviceBoard
	w.call(t, "GET", "/api/v1/devices", "", &boards)
	if len(boards) != 1 || !reflect.DeepEqual(boards[0], *event.Devices) {
		t.Fatalf("boards %+v", boards)
	}
	busy, quiet := boards[0].Devices[0], boards[0].Devices[1]
	if busy.Util == nil || *busy.Util != 4200 || *busy.Power != 90500 || busy.Holders[1].PID != 4312 ||
		busy.Holders[1].Session != "" || *busy.Holders[0].Memory != 6<<30 {
		t.Errorf("device %+v", busy)
	}
	if quiet.Util != nil || quiet.MemoryUsed != nil || quiet.Power != nil || quiet.Temperature != nil ||
		quiet.Holders == nil {
		t.Errorf("what was not measured is told: %+v", quiet)
	}
	if c := busy.Capabilities; len(c) != 7 || c[0] != (hub.Capability{ID: "process-memory", State: "yes"}) ||
		c[4].Why == "" || c[6].State != "unknown" {
		t.Errorf("capabilities %+v", c)
	}
	var points []session.DevicePoint
	if status := w.call(t, "GET", "/api/v1/machines/local/devices/GPU-0/history?since=2031-05-01T12:00:00Z", "",
		&points); status != 200 || len(points) != 1 || *points[0].Util != 4200 {
		t.Errorf("history %d %+v", status, points)
	}
	for path, want := range map[string]int{"/api/v1/machines/lab/devices/GPU-0/history": 404,
		"/api/v1/machines/local/devices/GPU-9/history":           404,
		"/api/v1/machines/local/devices/GPU-0/history?since=now": 400} {
		var p session.Error
		if status := w.call(t, "GET", path, "", &p); status != want || p.Code == "" || p.Hint == "" {
			t.Errorf("%s: %d %+v", path, status, p)
		}
	}
	w.agent.SetDown(true)
	w.until(t, "the hub has noticed that the agent is not reached", func() bool {
		return w.call(t, "GET", "/api/v1/devices", "", &boards) == 200 && !boards[0].Online
	})
	if len(boards[0].Devices) != 2 {
		t.Errorf("an agent that is not reached: %+v", boards)
	}
}

func TestResourcesAreSummedUp(t *testing.T) {
	w := start(t)
	s := w.running("aaaaaaaaaaaa")
	s.Owner = "ada"
	s.Grants = session.Grants{CPUs: []int{1, 2}, Memory: gpu.GiB,
		GPUs: []gpu.Grant{{Device: "GPU-0", Share: 300, Memory: 4 * gpu.GiB}}}
	w.agent.Put(s)
	w.agent.Put(session.Session{ID: "cccccccccccc", Name: "waits", Owner: "ada", Status: session.Pending})
	w.agent.Put(session.Session{ID: "bbbbbbbbbbbb", Name: "of-bob", Owner: "bob", Status: session.Running,
		Allocation: session.Allocation{Grants: session.Grants{CPUs: []int{3}}}})
	w.agent.SetBoard(board())
	var all []api.ResourceSummary
	w.hub.WaitHeard(t.Context())
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) && (len(all) == 0 || len(all[0].Devices) == 0) {
		w.call(t, "GET", "/api/v1/resources", "", &all)
	}
	r := all[0]
	if r.Mine != (hub.Amount{CPU: 2, Memory: 1 << 30, GPU: 300, VRAM: 4 << 30}) {
		t.Errorf("mine %+v", r.Mine)
	}
	if r.Group != "default" || r.Live != 2 {
		t.Errorf("in the group %q, %d live", r.Group, r.Live)
	}
	if r.Total != (hub.Amount{CPU: 8, Memory: 16 << 30, GPU: 2000, VRAM: 15 << 30}) || r.Free.GPU != 1500 ||
		r.Promised.GPU != 500 || r.Promised.VRAM != 7<<30 || r.Load.GPU != 420 || r.Load.VRAM != 8<<30 {
		t.Errorf("summary %+v", r)
	}
	if d := r.Devices[0]; d != (hub.DeviceResource{Device: "GPU-0", Name: "GPU 0", Total: 1000, Promised: 500,
		Mine: 300, Memory: 15 << 30, MemFree: 7 << 30}) {
		t.Errorf("device %+v", d)
	}
}

func TestPresetsOfOnesOwn(t *testing.T) {
	w := start(t)
	var p hub.Preset
	if status := w.call(t, "POST", "/api/v1/presets",
		`{"name":" Half a card ","resources":{"cpu":2,"memory":"8g"},"accelerator":"0.5"}`, &p); status != 201 ||
		p.Name != "Half a card" || p.Builtin || p.Accelerator != (gpu.Request{Shares: 500}) ||
		p.Resources.Memory != 8<<30 || p.ID == "" {
		t.Fatalf("%d %+v", status, p)
	}
	var changed hub.Preset
	if status := w.call(t, "PATCH", "/api/v1/presets/"+p.ID, `{"name":"Third","accelerator":""}`,
		&changed); status != 200 || changed.Name != "Third" || !changed.Accelerator.IsZero() ||
		changed.Resources != p.Resources {
		t.Errorf("%d %+v", status, changed)
	}
	var all []hub.Preset
	w.call(t, "GET", "/api/v1/presets", "", &all)
	if last := all[len(all)-1]; len(all) != 4 || last != changed || !all[0].Builtin {
		t.Errorf("presets %+v", all)
	}
	for name, c := range map[string]struct {
		method, path, body, field string
		status                    int
	}{
		"without a name":       {"POST", "", `{}`, "name", 422},
		"with a long name":     {"POST", "", `{"name":"` + strings.Repeat("x", 65) + `"}`, "name", 422},
		"with a name in use":   {"POST", "", `{"name":"THIRD"}`, "name", 409},
		"with a built in name": {"POST", "", `{"name":"small"}`, "name", 409},
		"of no memory":         {"POST", "", `{"name":"abc","resources":{"memory":"1m"}}`, "resources.memory", 422},
		"of an odd amount":     {"POST", "", `{"name":"abc","resources":{"memory":"lots"}}`, "resources.memory", 422},
		"of odd devices":       {"POST", "", `{"name":"abc","accelerator":"x"}`, "accelerator", 422},
		"built in":             {"PATCH", "/small", `{"name":"abc"}`, "", 409},
		"built in, to go":      {"DELETE", "/small", ``, "", 409},
		"that is not there":    {"PATCH", "/p-none", `{"name":"abc"}`, "", 404},
		"gone":                 {"DELETE", "/p-none", ``, "", 404},
		"changed to no CPUs":   {"PATCH", "/" + p.ID, `{"resources":{"cpu":-1}}`, "resources.cpu", 422},
	} {
		var problem session.Error
		status := w.call(t, c.method, "/api/v1/presets"+c.path, c.body, &problem)
		if status != c.status || problem.Code == "" || problem.Hint == "" && c.field == "" || c.field != "" &&
			(len(problem.Fields) == 0 || problem.Fields[0].Field != c.field) {
			t.Errorf("a preset %s: %d %+v", name, status, problem)
		}
	}
	if status := w.call(t, "DELETE", "/api/v1/presets/"+p.ID, "", nil); status != 204 {
		t.Errorf("status %d", status)
	}
	w.call(t, "GET", "/api/v1/presets", "", &all)
	if len(all) != 3 {
		t.Errorf("presets %+v", all)
	}
}

func TestHistoryIsFilteredAndSorted(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	at := func(minute int) time.Time { return time.Date(2031, 5, 1, 12, minute, 0, 0, time.UTC) }
	w.agent.SetHistory(
		session.Phase{ID: "1", Phase: session.PhaseSchedule, Result: session.OutcomeSuccess, From: session.Pending,
			To: session.Scheduled, Message: "Placed on GPU 0.", CreatedAt: at(0), UpdatedAt: at(9)},
		session.Phase{ID: "2", Phase: session.PhasePrepare, Result: session.OutcomeFailure, From: session.Scheduled,
			To: session.Prepared, Code: "image_pull_not-found", CreatedAt: at(1), UpdatedAt: at(2),
			Steps: []session.Step{{Step: "pull", Message: "There is no such image.", Code: "image_pull_not-found"}}},
		session.Phase{ID: "3", Phase: session.PhaseTerminate, Result: session.OutcomeSuccess, From: session.Preparing,
			To: session.Failed, CreatedAt: at(3), UpdatedAt: at(4),
			Steps: []session.Step{{Step: "remove", Code: "engine_call_timeout"}}},
	)
	for query, want := range map[string]string{
		"": "123", "sort=created": "123", "sort=-created": "321", "sort=updated": "231", "sort=-updated": "132",
		"phase=prepare": "2", "phase=prepare,TERMINATE": "23", "result=success": "13", "from=PENDING": "1",
		"to=ERROR,PREPARED": "23", "id=3,1": "13",
		"code=not-found": "2", "code=TIMEOUT": "3", "text=no+such": "2", "text=gpu+0": "1", "text=remove": "3",
		"phase=prepare&result=SUCCESS": "", "text=nothing": "",
	} {
		var phases []session.Phase
		status := w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/history?"+query, "", &phases)
		got := ""
		for _, p := range phases {
			got += p.ID
		}
		if status != 200 || got != want {
			t.Errorf("%s chose %q, want %q", query, got, want)
		}
	}
	for field, query := range map[string]string{"phase": "phase=lunch", "result": "result=maybe", "from": "from=HERE",
		"to": "to=THERE", "sort": "sort=size"} {
		var p session.Error
		if status := w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/history?"+query, "", &p); status != 400 ||
			p.Fields[0].Field != field {
			t.Errorf("%s: %d %+v", query, status, p)
		}
	}
}

func TestKernelsAreNamedToTheAgent(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	var options session.LogOptions
	w.agent.Log = logFunc(&options)
	do(t, http.DefaultClient, w.request(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/logs?kernel=sub1", ""))
	var terminal session.Terminal
	status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/terminals", `{"kernel":"sub1","cols":80,"rows":24}`,
		&terminal)
	if options.Kernel != "sub1" || status != 201 || terminal.Kernel != "sub1" {
		t.Errorf("log of %q, terminal %d %+v", options.Kernel, status, terminal)
	}
}

func logFunc(got *session.LogOptions) func(context.Context, session.LogOptions) (io.ReadCloser, error) {
	return func(_ context.Context, options session.LogOptions) (io.ReadCloser, error) {
		*got = options
		return io.NopCloser(strings.NewReader("")), nil
	}
}
