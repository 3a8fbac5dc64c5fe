package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
)

// sampleBoards are a machine with a busy device, one that tells little, one
// with instances, and a machine that is not reached.
func sampleBoards() []api.DeviceBoard {
	return []api.DeviceBoard{
		{DeviceBoard: session.DeviceBoard{Source: "nvml", Quantum: 100, Strategy: "fill",
			Attach: "cdi", At: noon, Text: "GPU 1 does not tell its energy."}, Agent: "local", Online: true,
			Devices: []api.DeviceState{
				{Device: gpu.Device{UUID: "GPU-8f6a", Model: "RTX 4090", Memory: 24 << 30},
					DeviceStatus: session.DeviceStatus{
						Free:        300,
						Level:       "watched",
						Util:        pointer(8720),
						MemoryUsed:  pointer(gpu.Bytes(19 << 30)),
						Power:       pointer(gpu.MilliWatt(312400)),
						Temperature: pointer(71),
						Holders: []session.DeviceHolder{
							{Session: "def3run00000", Name: "train-a", Owner: "ada", Share: 700, Promised: 16 << 30,
								Memory: pointer(gpu.Bytes(15 << 30)), Util: pointer(8100)},
							{Name: "python", Owner: "bob", PID: 4312, Memory: pointer(gpu.Bytes(4 << 30))},
							{Name: "tune (of eve, another Slipway)", Owner: "eve", Share: 100, Promised: 2 << 30}},
					}},
				{Device: gpu.Device{UUID: "GPU-9c1b", Index: 1, Model: "RTX 4090", Memory: 24 << 30},
					DeviceStatus: session.DeviceStatus{Free: 1000, Level: "none"}},
				{Device: gpu.Device{UUID: "GPU-gone"}, DeviceStatus: session.DeviceStatus{
					Level: "none",
					Holders: []session.DeviceHolder{{Name: "tune (of eve, another Slipway)", Owner: "eve", Share: 400,
						Promised: 8 << 30}},
				}}}},
		{DeviceBoard: session.DeviceBoard{Source: "drm", Quantum: 500, Strategy: "evenly",
			Attach: "nodes", At: noon.Add(-3 * time.Minute)}, Agent: "lab", Devices: []api.DeviceState{
			{Device: gpu.Device{UUID: "PCI-0000", Model: "MI300"}, DeviceStatus: session.DeviceStatus{
				Free:       500,
				Level:      "none",
				MemoryUsed: pointer(gpu.Bytes(0)),
				Holders:    []session.DeviceHolder{{Session: "x", Name: "quiet", Owner: "eve", Share: 500}},
			}}}},
		{DeviceBoard: session.DeviceBoard{Source: "none"}, Agent: "plain", Online: true},
	}
}

func sampleReport() api.UsageReport {
	const hour = 3_600_000
	a := hub.Account{Account: session.Account{
		Start:      noon.AddDate(0, 0, -1),
		Kind:       "session",
		Session:    "def3run00000",
		Name:       "train-a",
		Owner:      "ada",
		Label:      "vision",
		AllocCPUMs: 12 * hour,
		DeviceUse: session.DeviceUse{
			AllocGPUMs:    6 * hour,
			BusyGPUMs:     7 * hour,
			VRAMPeak:      15 << 30,
			EnergyDynamic: 5_400_000_000,
			EnergyIdle:    720_000_000,
			CoveredMs:     99_960,
			EstimatedMs:   30,
			GapMs:         10,
		},
	}, AboveGPUMs: hour}
	b := hub.Account{Account: session.Account{
		Start:      noon.AddDate(0, 0, -1),
		Kind:       "session",
		Session:    "fin4failed00",
		Name:       "train-b",
		Owner:      "ada",
		AllocCPUMs: hour / 4,
	}}
	idle := hub.Account{Account: session.Account{
		Start:     noon.AddDate(0, 0, -1),
		Kind:      "idle",
		DeviceUse: session.DeviceUse{EnergyIdle: 360_000_000, CoveredMs: 10},
	}}
	all := hub.Account{Account: session.Account{Kind: "session", AllocCPUMs: 12*hour + hour/4, DeviceUse: a.DeviceUse},
		AboveGPUMs: hour}
	return api.UsageReport{From: noon.AddDate(0, 0, -7), To: noon, By: "session",
		Rows: []hub.Account{a, b, idle}, Totals: []hub.Account{all, idle}, Missing: []string{}}
}

func sampleQueue() []api.Session {
	waiting := sampleSessions()[0]
	waiting.Priority = 50
	waiting.Spec.Accelerator, waiting.Spec.Cluster = gpu.Request{Shares: 500}, 2
	waiting.Wait = &session.Wait{Code: "session_schedule_no-gpu",
		Message: "Needs 16 GiB on gpu-1. train-b frees 24 GiB at about 2026-05-01 12:12 UTC.", Position: 1,
		Said: []session.Phrase{
			session.Say("fewDevices", session.Fill("what", "16 GiB of the memory of one of 2 GPUs"),
				session.Fill(session.OnMachine, "gpu-1")),
			session.Say("freesAbout", session.Fill("name", "train-b"), session.Fill("amount", "24 GiB of GPU memory"),
				session.Moment("at", noon.Add(12*time.Minute)))},
		Details: []session.Phrase{{Text: "GPU 0: train-b has 1 (24 GiB)."}},
		Start:   pointer(noon.Add(12 * time.Minute)), Margin: session.Duration(5 * time.Minute),
		Until: pointer(noon.Add(10 * time.Hour)),
		Estimate: &session.Phrase{Say: "estimateAbout", Count: 6, With: []session.Phrase{
			session.Moment("at", noon.Add(12*time.Minute)), session.Fill("margin", "5 min")}}}
	later := waiting
	later.ID, later.Name, later.Spec.Accelerator, later.Spec.Cluster, later.Priority = "abc9late0000", "night-run",
		gpu.Request{},
		0, 10
	tomorrow := session.Moment("at", noon.Add(13*time.Hour))
	later.Wait = &session.Wait{Message: "Starts at 2026-05-02 01:00 UTC or later.", Position: 2,
		Said:  []session.Phrase{session.Say("notBefore", tomorrow)},
		Until: pointer(noon.Add(13 * time.Hour)), Estimate: new(session.Say("estimateEarliest", tomorrow))}
	unplanned := later
	unplanned.ID, unplanned.Name, unplanned.Wait = "abc8new00000", "brand-new", nil
	return []api.Session{waiting, later, unplanned}
}

// serveSamples makes f answer what the commands of this file ask for.
func (f *plane) serveSamples() {
	give := func(pattern string, value any) {
		f.handle(pattern, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, value) })
	}
	give("GET /api/v1/devices", sampleBoards())
	give("GET /api/v1/usage", sampleReport())
	give("GET /api/v1/usage/services", sampleServiceReport())
	give("GET /api/v1/queue", sampleQueue())
	give("GET /api/v1/presets", []hub.Preset{{PresetContent: hub.PresetContent{Name: "Small",
		Resources: session.Resources{CPU: 1, Memory: 2 << 30}}, ID: "small", Builtin: true},
		{PresetContent: hub.PresetContent{Name: "Half a card", Resources: session.Resources{CPU: 4, Memory: 16 << 30,
			Shm: 2 << 30}, Accelerator: gpu.Request{Shares: 500}}, ID: "p-1"}})
	give("GET /api/v1/machines/{agent}/devices/{device}/history", []session.DevicePoint{
		{At: noon.Add(-70 * time.Second), Util: pointer(100)}, {At: noon.Add(-62 * time.Second), Util: pointer(9940),
			MemoryUsed: pointer(gpu.Bytes(19 << 30)), Power: pointer(gpu.MilliWatt(430_000)), Temperature: pointer(80)},
		{At: noon}})
	give("POST /api/v1/sessions/{id}/idle-simulation",
		session.IdleSimulation{Ended: true, At: pointer(noon.Add(-20 * time.Minute)), Checker: "utilization",
			Since: noon.Add(-90 * time.Minute), Message: "GPU 2.1 % over 30m, below 5 %",
			Checks: []session.IdleCheck{}})
}

func TestQueueTablesSayWhatAPersonNeeds(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	s := &f.sessions[2]
	s.Spec.Accelerator, s.Spec.Label, s.Enforcement, s.Priority = gpu.Request{Shares: 700}, "vision", "watched", 10
	s.Grants.GPUs = []gpu.Grant{{Device: "GPU-8f6a", Share: 700, Memory: 16 << 30}}
	s.Usage.GPUs = []session.DeviceLoad{{Device: "GPU-8f6a", Util: pointer(8100), Memory: pointer(gpu.Bytes(15 << 30))}}
	s.Dependents, s.KeepUntil = []session.ID{"abc1wait0000"}, pointer(noon.Add(4*time.Hour))
	s.Idle = []session.IdleCheck{{Checker: "utilization", State: "idle", ExpiresAt: pointer(noon.Add(9 * time.Minute)),
		Message: "GPU 2.1 % over 30m", Metrics: []session.IdleMetric{{Name: "gpu", Average: 2.1, Threshold: 5}}},
		{Checker: "utilization", State: "grace", JudgedFrom: pointer(noon.Add(40 * time.Minute)),
			Message: "Not judged for the first 1 h 30 min."},
		{Checker: "network", State: "active", Message: "traffic 2m ago"}}
	f.serveSamples()
	for name, args := range map[string][]string{
		"queue":    {"queue"},
		"gpu":      {"gpu"},
		"usage":    {"usage", "--from", "7d"},
		"served":   {"usage", "services", "--from", "7d", "--by", "token"},
		"points":   {"gpu", "history", "0"},
		"presets":  {"preset", "ls"},
		"show-gpu": {"show", "train-a"},
		"idle":     {"idle", "train-a"},
		"simulate": {"idle", "train-a", "--idle-window", "30m", "--idle-gpu", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.run(t, args...)
			if got.code != ExitOK || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
			}
			golden(t, name, got.stdout)
		})
	}
	t.Run("and when a session ends, and how it is kept", func(t *testing.T) {
		ends := newPlane(t)
		ends.sessions = sampleSessions()[2:3]
		for want, warnings := range map[string][]session.Warning{
			"ends in 9m 0s\n": nil,
			"ends in 9m 0s unless kept: slipway keep train-a 4h\n": {{Code: session.CodeIdleNetwork, Title: "x"}},
		} {
			ends.sessions[0].Idle = []session.IdleCheck{{Checker: session.CheckNetwork, State: session.IdleIdle,
				ExpiresAt: pointer(noon.Add(9 * time.Minute))}}
			ends.sessions[0].Warnings = warnings
			for _, command := range [][]string{{"ps"}, {"show", "train-a"}} {
				if got := ends.run(t, command...).stdout; !strings.Contains(got, want) {
					t.Errorf("%v says\n%s, not %q", command, got, want)
				}
			}
		}
	})
	t.Run("and a wait reads the same in show and ps", func(t *testing.T) {
		waits := newPlane(t)
		waits.sessions = sampleQueue()[:1]
		shown, listed := waits.run(t, "show", "waiting-one").stdout, waits.run(t, "ps").stdout
		why := "Needs 16 GiB of the memory of one of 2 GPUs on local. train-b frees 24 GiB of GPU memory at about " +
			"12:12. GPU 0: train-b has 1 (24 GiB)."
		for _, want := range []string{why, "#1 on local", "about 12:12 (± 5 min, from 6 earlier runs)"} {
			if !strings.Contains(shown, want) {
				t.Errorf("show says\n%s, not %q", shown, want)
			}
		}
		if !strings.Contains(listed, why) {
			t.Errorf("ps says\n%s, not %q", listed, why)
		}
	})
	t.Run("and what there is none of", func(t *testing.T) {
		empty := newPlane(t)
		empty.sessions = sampleSessions()
		empty.handle("GET /api/v1/queue",
			func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, []api.Session{}) })
		empty.handle("GET /api/v1/usage", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 200, api.UsageReport{From: noon, To: noon,
				Rows: []hub.Account{}, Missing: []string{"lab"}})
		})
		empty.handle("GET /api/v1/usage/services", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 200, api.ServiceReport{From: noon, To: noon})
		})
		for want, args := range map[string][]string{"No session waits.": {"queue"}, "Nothing was used.": {"usage"},
			"No service was used.": {"usage", "services"}, "No idle check watches": {"idle", "train-a"}} {
			if got := empty.run(t, args...); got.code != ExitOK || !strings.Contains(got.stdout, want) {
				t.Errorf("%v: %+v", args, got)
			}
		}
		if got := empty.run(t, "usage"); !strings.Contains(got.stderr, "lab is not reached") {
			t.Errorf("stderr %q", got.stderr)
		}
	})
	t.Run("and devices are found by number, UUID and agent", func(t *testing.T) {
		for _, args := range [][]string{{"gpu-8F6A"}, {"1"}, {"0", "--on", "lab"}} {
			if got := f.run(t, append([]string{"gpu", "history"}, args...)...); got.code != ExitOK {
				t.Errorf("%v: %+v", args, got)
			}
		}
		for _, args := range [][]string{{"7"}, {"1", "--on", "lab"}} {
			if got := f.run(t, append([]string{"gpu", "history"}, args...)...); got.code != ExitNotFound {
				t.Errorf("%v: %+v", args, got)
			}
		}
	})
	t.Run("and programs get the API's own", func(t *testing.T) {
		for _, args := range [][]string{{"queue"}, {"gpu"}, {"usage"}, {"usage", "services"}, {"preset", "ls"},
			{"idle", "train-a"}} {
			got := f.run(t, append(args, "-o", "json")...)
			var value any
			if err := json.Unmarshal([]byte(got.stdout), &value); err != nil || got.code != ExitOK {
				t.Errorf("%v: code %d, %v", args, got.code, err)
			}
		}
	})
}

func TestUsageAsksForItsSpan(t *testing.T) {
	f := newPlane(t)
	var query atomic.Pointer[string]
	answer := func(w http.ResponseWriter, r *http.Request) {
		query.Store(pointer(r.URL.Path + "?" + r.URL.Query().Encode()))
		if strings.HasSuffix(r.URL.Path, ".csv") {
			_, _ = io.WriteString(w, "start,kind\n")
			return
		}
		if strings.HasSuffix(r.URL.Path, "/services") {
			reply(w, http.StatusOK, api.ServiceReport{})
			return
		}
		reply(w, http.StatusOK, api.UsageReport{})
	}
	f.handle("GET /api/v1/usage", answer)
	f.handle("GET /api/v1/usage.csv", answer)
	f.handle("GET /api/v1/usage/services", answer)
	f.handle("GET /api/v1/usage/services.csv", answer)
	for want, args := range map[string][]string{
		"/api/v1/usage?by=session": {"usage"},
		"/api/v1/usage?by=session&from=2026-04-24T12%3A00%3A00Z": {"usage",
			"--from", "7d"},
		"/api/v1/usage?bucket=hour&by=label&from=2026-05-01&label=vision&to=2026-05-01T09%3A00%3A00Z": {"usage",
			"--from", "2026-05-01", "--to", "3h", "--by", "label", "--bucket", "hour", "--label", "vision"},
		"/api/v1/usage.csv?by=day&from=later": {"usage", "--by",
			"day", "--from", "later", "--csv"},
		"/api/v1/usage/services?agent=lab&by=token&service=llama": {"usage", "services", "--by", "token",
			"--service", "llama", "--on", "lab"},
		"/api/v1/usage/services.csv?bucket=day&by=service": {"usage", "services", "--bucket", "day", "--csv"},
	} {
		got := f.run(t, args...)
		if got.code != ExitOK || *query.Load() != want {
			t.Errorf("%v asked for %s (%d, %s), want %s", args, *query.Load(), got.code, got.stderr, want)
		}
	}
	if got := f.run(t, "usage", "--csv"); got.stdout != "start,kind\n" {
		t.Errorf("printed %q", got.stdout)
	}
	if got := f.run(t, "usage", "--csv", "-o", "json"); got.code != ExitUsage {
		t.Errorf("code %d, want %d", got.code, ExitUsage)
	}
}

func TestQueueFlagsMakeTheSpec(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.serveSamples()
	last := f.launching(t, pending)
	got := f.run(t, "run", "--image", "i", "--type", "batch", "--gpu", "mig:1g.10gb", "--uncooperative", "--mps",
		"--admin", "--cluster", "2", "--priority", "0", "--after", "train-a", "--after", "abc2",
		"--pending-timeout", "2h", "--label", "vision", "--commit-on-end", "3", "--keep-home=7d", "--at", "18:30",
		"--timeout", "5m", "--partition", "gpu", "--account", "lab", "--qos", "long", "--gpu-type", "a100",
		"--time-limit", "4h", "--constraint", "ib&ssd", "--reservation", "course", "--sbatch-option=--exclusive",
		"--sbatch-option=--licenses=a",
		"--idle-lifetime", "2d", "--idle-network", "1h", "--idle-window", "30m", "--idle-grace", "5m", "--idle-any",
		"--idle-cpu", "0.5", "--idle-memory", "1", "--idle-gpu", "5", "--idle-vram", "7", "--idle-keep", "--", "true")
	if got.code != ExitOK {
		t.Fatalf("%+v", got)
	}
	want := session.Spec{Type: "batch", Image: "i", Command: "true",
		Schedule: session.Schedule{
			NotBefore:      pointer(time.Date(2026, 5, 1, 18, 30, 0, 0, time.UTC)),
			Priority:       pointer(0),
			After:          []string{"def3run00000", "abc2pull0000"},
			PendingTimeout: session.Duration(2 * time.Hour),
			Slurm: &session.Slurm{Partition: "gpu", Account: "lab", QOS: "long", GPUType: "a100",
				Time: session.Duration(4 * time.Hour), Constraint: "ib&ssd", Reservation: "course",
				Options: []string{"--exclusive", "--licenses=a"}},
		}, Lifetime: session.Lifetime{
			Timeout:     session.Duration(5 * time.Minute),
			CommitOnEnd: 3,
			KeepHome:    pointer(session.Duration(7 * 24 * time.Hour)),
			Idle: &session.IdlePolicy{Lifetime: session.Duration(2 * 24 * time.Hour),
				Network: session.Duration(1 * time.Hour),
				Use: session.UsePolicy{Window: session.Duration(30 * time.Minute),
					Grace: session.Duration(5 * time.Minute), Any: true,
					CPU: pointer(0.5), Memory: pointer(1.0), GPU: pointer(5.0), VRAM: pointer(7.0)}, Park: true},
		},
		Accelerator: gpu.Request{Profile: "1g.10gb", Count: 1}, Tuning: session.Tuning{Uncooperative: true, MPS: true},
		Access:  session.Access{Admin: true},
		Cluster: 2,
		Label:   "vision"}
	if spec := last.Load().Spec; !reflect.DeepEqual(spec, want) {
		t.Errorf("got  %+v\nwant %+v", spec, want)
	}
	f.run(t, "run", "--image", "i", "--preset", "half A card", "--cpu", "2", "--idle-off", "-d")
	want = session.Spec{Image: "i", Resources: session.Resources{CPU: 2, Memory: 16 << 30,
		Shm: 2 << 30}, Accelerator: gpu.Request{Shares: 500}, Lifetime: session.Lifetime{Idle: &session.IdlePolicy{}}}
	if spec := last.Load().Spec; !reflect.DeepEqual(spec, want) {
		t.Errorf("got  %+v\nwant %+v", spec, want)
	}
}

func TestWrongQueueFlagsLaunchNothing(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.serveSamples()
	f.handle("POST /api/v1/sessions", func(http.ResponseWriter, *http.Request) { t.Error("something was launched") })
	f.handle("POST /api/v1/launches", func(http.ResponseWriter, *http.Request) { t.Error("something was launched") })
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no kernel":                        {[]string{"--cluster", "0"}, ExitUsage, "--cluster 0"},
		"no image to keep":                 {[]string{"--commit-on-end", "0"}, ExitUsage, "--commit-on-end 0"},
		"a home that is kept in words":     {[]string{"--keep-home=long"}, ExitInvalid, "is not a length of time"},
		"a cluster in words":               {[]string{"--cluster", "two"}, ExitUsage, "two"},
		"a priority in words":              {[]string{"--priority", "high"}, ExitUsage, "high"},
		"after nothing":                    {[]string{"--after", ""}, ExitUsage, "--after"},
		"after nobody":                     {[]string{"--after", "nobody"}, ExitNotFound, "nobody"},
		"after two that begin alike":       {[]string{"--after", "abc"}, ExitUsage, "abc1wait0000"},
		"a preset that is not there":       {[]string{"--preset", "huge"}, ExitNotFound, "huge"},
		"idle and never idle":              {[]string{"--idle-off", "--idle-lifetime", "1d"}, ExitUsage, "either"},
		"a threshold in words":             {[]string{"--idle-gpu", "low"}, ExitUsage, "low"},
		"none":                             {[]string{"--count", "0"}, ExitUsage, "--count 0"},
		"several to wait for":              {[]string{"--count", "2", "--wait"}, ExitUsage, "--wait"},
		"several to remove":                {[]string{"--count", "2", "--rm"}, ExitUsage, "--rm"},
		"several with a command":           {[]string{"--count", "2", "--", "true"}, ExitUsage, "--type batch"},
		"a start that is no time":          {[]string{"--type", "batch", "--at", "soon"}, ExitUsage, "--start-at"},
		"devices that are none":            {[]string{"--gpu", "x"}, ExitInvalid, "does not name devices"},
		"memory that is no amount":         {[]string{"--mem", "lots"}, ExitInvalid, "not an amount of memory"},
		"a wait of no length":              {[]string{"--pending-timeout", "0m"}, ExitInvalid, "at least 1 s"},
		"a count that is no number":        {[]string{"--count", "some"}, ExitUsage, "some"},
		"a flag that is one letter beside": {[]string{"--gpuz", "1"}, ExitUsage, "--gpuz"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.run(t, append([]string{"run", "--image", "i"}, c.args...)...)
			if got.code != c.code || !strings.Contains(got.stderr, c.says) || strings.Count(got.stderr, "\n") < 2 ||
				got.stdout != "" {
				t.Errorf("code %d, %q; want %d and a sentence about %s with a hint", got.code, got.stderr, c.code,
					c.says)
			}
		})
	}
	for _, field := range []string{"accelerator", "cluster", "priority", "after[0]", "pendingTimeout", "label",
		"idle.use.window", "count"} {
		t.Run("the server refuses "+field, func(t *testing.T) {
			refusal := session.Error{Code: "session_create_invalid", Message: "2 fields are wrong.", Hint: "See below.",
				Fields: []session.FieldError{{Field: field, Kind: "session_create_invalid-x", Message: "It is wrong.",
					Hint: "Write it otherwise."}}}
			refusing := newPlane(t)
			for _, path := range []string{"sessions", "launches"} {
				refusing.handle("POST /api/v1/"+path,
					func(w http.ResponseWriter, _ *http.Request) { refuse(w, refusal) })
			}
			for _, args := range [][]string{{"-d"}, {"--count", "3"}} {
				got := refusing.run(t, append([]string{"run", "--image", "i", "--gpu", "0.5"}, args...)...)
				if got.code != ExitInvalid || got.stdout != "" ||
					!strings.Contains(got.stderr, field+": It is wrong. Write it otherwise.") ||
					!strings.Contains(got.stderr, "(session_create_invalid)") {
					t.Errorf("%v: %+v", args, got)
				}
			}
		})
	}
}

func TestSeveralAreLaunchedAtOnce(t *testing.T) {
	f := newPlane(t)
	var request atomic.Pointer[api.LaunchManyRequest]
	problem := &session.Error{Code: "session_create_already-exists", Message: "The name is taken.",
		Hint: "Choose another."}
	f.handle("POST /api/v1/launches", func(w http.ResponseWriter, r *http.Request) {
		var got api.LaunchManyRequest
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		request.Store(&got)
		var launched []api.Launched
		for i := range got.Count {
			s := pending(got.Spec)
			s.ID, s.Name = session.ID(fmt.Sprintf("new%09d", i+1)), fmt.Sprintf("train-%d", i+1)
			launched = append(launched, api.Launched{Session: &s})
		}
		if got.Spec.Label == "taken" {
			launched[1] = api.Launched{Problem: problem}
		}
		reply(w, http.StatusOK, launched)
	})
	got := f.run(t, "run", "--image", "i", "--name", "train", "--count", "3")
	if got.code != ExitOK || got.stdout != "new000000001\nnew000000002\nnew000000003\n" {
		t.Errorf("%+v", got)
	}
	if r := request.Load(); r.Count != 3 || r.Spec.Name != "train" || len(r.Key) < 26 {
		t.Errorf("request %+v", r)
	}
	got = f.run(t, "run", "--image", "i", "--name", "train", "--count", "2", "--label", "taken")
	if got.code != ExitFailure || got.stdout != "new000000001\n" ||
		!strings.Contains(got.stderr, "Session 2 of 2: The name is taken.") ||
		!strings.Contains(got.stderr, "already-exists") {
		t.Errorf("%+v", got)
	}
}

func TestPriorityKeepAndPresetsAreAskedFor(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.serveSamples()
	var asked atomic.Pointer[string]
	note := func(answer any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked.Store(pointer(r.Method + " " + r.URL.Path + " " + string(body)))
			reply(w, http.StatusOK, answer)
		}
	}
	f.handle("PATCH /api/v1/sessions/{id}", note(api.Session{Session: session.Session{Name: "waiting-one",
		Resolved: session.Resolved{Priority: 90}}}))
	f.handle("POST /api/v1/sessions/{id}/keep",
		note(api.Session{Session: session.Session{Name: "train-a",
			Progress: session.Progress{KeepUntil: pointer(noon.Add(4 * time.Hour))}}}))
	f.handle("POST /api/v1/sessions/{id}/move",
		note(api.Session{Session: session.Session{Name: "waiting-one", Agent: "lab"}}))
	f.handle("POST /api/v1/presets", note(hub.Preset{PresetContent: hub.PresetContent{Name: "Mine"}}))
	f.handle("PATCH /api/v1/presets/{id}", note(hub.Preset{PresetContent: hub.PresetContent{Name: "Third"}}))
	f.handle("DELETE /api/v1/presets/{id}", note(nil))
	for _, c := range []struct {
		args         []string
		asks, prints string
	}{
		{[]string{"priority", "waiting-one", "90"}, `PATCH /api/v1/sessions/abc1wait0000 {"priority":90}`,
			"waiting-one has priority 90.\n"},
		{[]string{"move", "waiting-one", "lab"}, `POST /api/v1/sessions/abc1wait0000/move {"agent":"lab"}`,
			"waiting-one is on lab now.\n"},
		{[]string{"resize", "waiting-one", "0.5"},
			`PATCH /api/v1/sessions/abc1wait0000 {"accelerator":{"shares":500}}`,
			"waiting-one asks for 1 CPU, 0 B.\n"},
		{[]string{"remind", "waiting-one"}, `PATCH /api/v1/sessions/abc1wait0000 {"reminder":true}`,
			"You are notified when waiting-one starts.\n"},
		{[]string{"remind", "waiting-one", "--off"}, `PATCH /api/v1/sessions/abc1wait0000 {"reminder":false}`,
			"The reminder for waiting-one is removed.\n"},
		{[]string{"resize", "waiting-one", "none"}, `PATCH /api/v1/sessions/abc1wait0000 {"accelerator":{}}`,
			"waiting-one asks for 1 CPU, 0 B.\n"},
		{[]string{"keep", "train-a", "4h"}, `POST /api/v1/sessions/def3run00000/keep {"for":"4h"}`,
			"train-a is kept until 2026-05-01 16:00:00 (in 4h 0m).\n"},
		{[]string{"keep", "train-a", "tomorrow"}, `POST /api/v1/sessions/def3run00000/keep {"for":"21h"}`,
			"train-a is kept until 2026-05-01 16:00:00 (in 4h 0m).\n"},
		{[]string{"preset", "save", "Mine", "--cpu", "2", "--mem", "8g", "--gpu", "1"},
			`POST /api/v1/presets {"name":"Mine","resources":{"cpu":2,"memory":8589934592},` +
				`"accelerator":{"devices":1}}`, "Mine\n"},
		{[]string{"preset", "rename", "half a card", "Third"}, `PATCH /api/v1/presets/p-1 {"name":"Third"}`, "Third\n"},
		{[]string{"preset", "rm", "Half a card"}, `DELETE /api/v1/presets/p-1 `, ""},
	} {
		got := f.run(t, c.args...)
		if got.code != ExitOK || *asked.Load() != c.asks || got.stdout != c.prints {
			t.Errorf("%v asked %s and printed %q (%s)", c.args, *asked.Load(), got.stdout, got.stderr)
		}
	}
	for _, args := range [][]string{{"priority", "waiting-one"}, {"priority", "waiting-one", "high"},
		{"move", "waiting-one"}, {"move", "--name", "twin", "waiting-one", "lab"},
		{"resize", "waiting-one"}, {"resize", "waiting-one", "much"},
		{"keep", "train-a"}, {"preset", "save"}, {"preset", "frame"}, {"queue", "x"}, {"gpu", "x"},
		{"gpu", "history"}} {
		if got := f.run(t, args...); got.code != ExitUsage {
			t.Errorf("%v: code %d, %q", args, got.code, got.stderr)
		}
	}
}

func TestHistoryPassesItsFiltersOn(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	var query string
	f.handle("GET /api/v1/sessions/{id}/history", func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query().Encode()
		reply(w, http.StatusOK, samplePhases())
	})
	got := f.run(t, "history", "train-a", "--phase", "start", "--result", "FAILURE", "--sort", "-created", "--text",
		"the container")
	if got.code != ExitOK || query != "phase=start&result=FAILURE&sort=-created&text=the+container" {
		t.Errorf("asked for %q (%d %s)", query, got.code, got.stderr)
	}
}

func TestKernelsAreChosen(t *testing.T) {
	shells := []session.Terminal{{ID: "a", CreatedAt: noon}, {ID: "b", Kernel: "sub1",
		CreatedAt: noon.Add(time.Second)},
		{ID: "c", Kernel: "sub1", ExitCode: pointer(0), CreatedAt: noon.Add(2 * time.Second)}}
	for want, choice := range map[string]shellChoice{"a": {}, "b": {kernel: "sub1"}} {
		if got, found := choice.among(shells); !found || got.ID != want {
			t.Errorf("%+v chose %q, want %s", choice, got.ID, want)
		}
	}
	if got, found := (shellChoice{kernel: "sub2"}).among(shells); found {
		t.Errorf("chose %q where there is none", got.ID)
	}
	f := newPlane(t)
	f.sessions = sampleSessions()
	var asked session.ExecRequest
	f.commanding(t, func(request session.ExecRequest, conn terminal.Conn) *session.Error {
		asked = request
		if err := conn.WriteFrame(terminal.Frame{Type: terminal.FrameExit, Payload: []byte{0, 0, 0, 0}}); err != nil {
			t.Error(err)
		}
		return nil
	})
	if got := f.run(t, "exec", "--kernel", "sub1", "train-a", "--", "true"); got.code != ExitOK ||
		asked.Kernel != "sub1" {
		t.Errorf("%+v, asked %+v", got, asked)
	}
}

func TestAHomeIsKeptOnlyIfAsked(t *testing.T) {
	f := newPlane(t)
	f.serveSamples()
	last := f.launching(t, pending)
	none, month := session.Duration(0), session.Duration(30*24*time.Hour)
	for flag, want := range map[string]*session.Duration{"": nil, "--keep-home": &month, "--keep-home=0": &none} {
		args := []string{"run", "-d", "--image", "i"}
		if flag != "" {
			args = append(args, flag)
		}
		if got := f.run(t, args...); got.code != ExitOK || !reflect.DeepEqual(last.Load().Spec.KeepHome, want) {
			t.Errorf("%q keeps it for %v, want %v: %+v", flag, last.Load().Spec.KeepHome, want, got)
		}
	}
}
