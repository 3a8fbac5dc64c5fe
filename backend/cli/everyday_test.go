package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestRunTakesTheImageAsDockerDoes(t *testing.T) {
	f := newPlane(t)
	last := f.launching(t, pending)
	batch := func(args ...string) []string { return append([]string{"run", "--type", "batch"}, args...) }
	for name, c := range map[string]struct {
		args  []string
		image string
		line  string // the command
	}{
		"only an image":         {[]string{"run", "python:3.12"}, "python:3.12", ""},
		"an image and words":    {batch("a:1", "python", "-c", "print(1)"), "a:1", "python -c 'print(1)'"},
		"dashes in between":     {batch("python:3.12", "--", "ls", "-l"), "python:3.12", "ls -l"},
		"an empty word":         {batch("python:3.12", "printf", ""), "python:3.12", "printf ''"},
		"a flag for the image":  {batch("--image", "a:1", "--", "ls"), "a:1", "ls"},
		"and words without --":  {batch("--image", "a:1", "ls", "/"), "a:1", "ls /"},
		"its first word is ''":  {batch("--image", "a:1", "--", "", "x"), "a:1", "'' x"},
		"a short form of flags": {batch("-e", "A=1", "a:1", "env"), "a:1", "env"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.run(t, c.args...)
			if got.code != ExitOK {
				t.Fatalf("code %d, %s", got.code, got.stderr)
			}
			if spec := last.Load().Spec; spec.Image != c.image || spec.Command != c.line {
				t.Errorf("image %q, command %q; want %q and %q", spec.Image, spec.Command, c.image, c.line)
			}
		})
	}
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a flag after the image":    {[]string{"run", "python:3.12", "--cpu", "2"}, "before the image"},
		"a command without image":   {[]string{"run", "--", "ls"}, "missing IMAGE"},
		"nothing":                   {[]string{"run"}, "missing IMAGE"},
		"a detached one with words": {[]string{"run", "-d", "a:1", "ls"}, "detached"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.run(t, c.args...); got.code != ExitUsage || !strings.Contains(strings.ToLower(got.stderr),
				strings.ToLower(c.says)) {
				t.Errorf("code %d, %s; want %q", got.code, got.stderr, c.says)
			}
		})
	}
}

func TestFlagsHaveDockersNamesToo(t *testing.T) {
	f := newPlane(t)
	last := f.launching(t, pending)
	if got := f.run(t, "run", "--memory", "4g", "--cpus=2", "--gpus", "1", "a:1"); got.code != ExitOK {
		t.Fatalf("code %d, %s", got.code, got.stderr)
	}
	spec := last.Load().Spec
	if spec.Resources.CPU != 2 || spec.Resources.Memory != 4*gpu.GiB || spec.Accelerator.Devices != 1 {
		t.Errorf("%+v, %+v", spec.Resources, spec.Accelerator)
	}
	help := f.run(t, "run", "--help").stdout
	if strings.Contains(help, "      --cpus") || !strings.Contains(help, "--memory, --cpus and --gpus mean the same") {
		t.Errorf("the help does not name them in one line:\n%s", help)
	}
}

func TestHelpOfRunHasEveryFlagInOneGroup(t *testing.T) {
	root := Commands()
	cmd, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	cmd.InitDefaultHelpFlag()
	var grouped []string
	for _, group := range runGroups() {
		grouped = append(grouped, strings.Fields(group.flags)...)
	}
	all := []string{"output"}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { all = append(all, flag.Name) })
	slices.Sort(all)
	slices.Sort(grouped)
	if all = slices.Compact(all); !slices.Equal(grouped, all) {
		t.Errorf("in groups: %v\nflags: %v", grouped, all)
	}
}

func TestExamplesOfRunWork(t *testing.T) {
	root := Commands()
	cmd, _, err := root.Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	recipe := "image: python:3.12\nresources: {cpu: 2}\nagent: lab\n"
	if err := os.WriteFile("recipe.yaml", []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(cmd.Example, "\n")
	if len(examples) != 5 {
		t.Errorf("%d examples, want 5", len(examples))
	}
	for _, example := range examples {
		t.Run(example, func(t *testing.T) {
			f := newPlane(t)
			prepare := sampleSessions()[2]
			prepare.Name = "prepare"
			f.sessions = []api.Session{prepare}
			one := f.launching(t, f.playing("done\n", func(s *api.Session) { s.ExitCode = pointer(0) }))
			var many api.LaunchManyRequest
			f.handle("POST /api/v1/launches", func(w http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&many); err != nil {
					t.Error(err)
				}
				reply(w, http.StatusCreated, []api.Launched{})
			})
			f.handle("POST /api/v1/preview", func(w http.ResponseWriter, _ *http.Request) {
				reply(w, http.StatusOK, api.Preview{Agent: "lab"})
			})
			got := f.run(t, strings.Fields(example)[1:]...)
			if got.code != ExitOK || one.Load() == nil && many.Count == 0 {
				t.Errorf("code %d, %s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

func TestListsAndDetailsInEveryFormat(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.handle("GET /api/v1/images", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []hub.Image{
			{Image: session.Image{ID: "sha256:01", Refs: []string{"python:3.12", "python:latest"}}, Agent: "local"},
			{Image: session.Image{ID: "sha256:02", Refs: []string{}}, Agent: "local"}})
	})
	f.launching(t, pending)
	for args, want := range map[string]string{
		"ps -o name":              "waiting-one\npulling-one\ntrain-a\n",
		"show fin4 -o name":       "train-b\n",
		"image ls -o name":        "python:3.12\nsha256:02\n",
		"run -d a:1 -o name":      "",
		"-o name run -d a:1":      "new-one\n",
		"ps --tag nothing -oname": "",
	} {
		f.sessions = sampleSessions()
		got := f.run(t, strings.Fields(args)...)
		if args == "run -d a:1 -o name" { // it is a flag after the image
			if got.code != ExitUsage {
				t.Errorf("%s: code %d", args, got.code)
			}
			continue
		}
		if got.code != ExitOK || got.stdout != want {
			t.Errorf("%s: code %d, %q, %s; want %q", args, got.code, got.stdout, got.stderr, want)
		}
	}
	yaml := f.run(t, "ps", "-o", "yaml").stdout
	for _, line := range []string{"- id: abc1wait0000\n", "  name: waiting-one\n",
		"  createdAt: \"2026-05-01T11:59:00Z\"\n"} {
		if !strings.Contains(yaml, line) {
			t.Errorf("no line %q in\n%s", line, yaml)
		}
	}
	if one := f.run(t, "show", "train-a", "-o", "yaml").stdout; !strings.HasPrefix(one, "id: def3run00000\n") {
		t.Errorf("show: %s", one)
	}
	if got := f.run(t, "show", "nobody", "-o", "yaml"); got.code != ExitNotFound ||
		!strings.Contains(got.stderr, "code: session_read_not-found\n") {
		t.Errorf("a failure: code %d, %s", got.code, got.stderr)
	}
	if got := f.run(t, "show", "nobody", "-o", "name"); !strings.HasPrefix(got.stderr, "slipway: ") {
		t.Errorf("a failure with -o name: %s", got.stderr)
	}
}

func TestNamesInAnAnswer(t *testing.T) {
	for text, want := range map[string][]string{
		`[{"name":"a","id":"1"},{"id":"2"}]`:                       {"a", "2"},
		`{"total":3,"images":[{"image":{"refs":["r:1"]}}]}`:        {"r:1"},
		`{"devices":[{"uuid":"GPU-1"},{"uuid":"GPU-2"}],"at":"x"}`: {"GPU-1", "GPU-2"},
		`{"text":"nothing"}`:                                       nil,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if got := namesIn(value); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestADefaultMachineIsForLaunchesAndLists(t *testing.T) {
	f := newPlane(t)
	t.Chdir(t.TempDir())
	if err := os.WriteFile("there.yaml", []byte("image: a:1\nagent: other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	last := f.launching(t, pending)
	f.handle("GET /api/v1/agents/{agent}", func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("agent"); name == "lab" {
			reply(w, http.StatusOK, api.Agent{Name: name})
			return
		}
		refuse(w, session.Error{Code: "agent_find_not-found", Message: "There is no such agent."})
	})
	listed := ""
	f.handle("GET /api/v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		listed = r.FormValue("agent")
		reply(w, http.StatusOK, []api.Session{})
	})
	f.handle("GET /api/v1/doctor", func(w http.ResponseWriter, r *http.Request) {
		listed = r.FormValue("agent")
		reply(w, http.StatusOK, []session.Check{})
	})
	if got := f.run(t, "use"); got.stdout != "No default machine.\n" {
		t.Errorf("at first: %q", got.stdout)
	}
	if got := f.run(t, "use", "nowhere"); got.code != ExitNotFound {
		t.Errorf("an unknown one: code %d, %s", got.code, got.stderr)
	}
	if got := f.run(t, "use", "lab"); got.code != ExitOK || got.stdout != "lab is the default machine.\n" {
		t.Fatalf("code %d, %q, %s", got.code, got.stdout, got.stderr)
	}
	if got := f.run(t, "use"); got.stdout != "lab\n" {
		t.Errorf("then: %q", got.stdout)
	}
	for args, want := range map[string]string{
		"run a:1":                  "lab",
		"run --on local a:1":       "local",
		"run --on= a:1":            "",
		"run --group gpus a:1":     "",
		"run -f there.yaml":        "other",
		"run -f there.yaml --on=":  "",
		"run -f there.yaml --on x": "x",
	} {
		if got := f.run(t, strings.Fields(args)...); got.code != ExitOK || last.Load().Spec.Agent != want {
			t.Errorf("%s: on %q, code %d, %s; want %q", args, last.Load().Spec.Agent, got.code, got.stderr, want)
		}
	}
	for args, want := range map[string]string{"ps": "lab", "ps --on local": "local", "ps --on=": "", "doctor": ""} {
		got := f.run(t, strings.Fields(args)...)
		if got.code != ExitOK || listed != want || strings.Contains(got.stderr, "Only lab") != (want == "lab") {
			t.Errorf("%s: asked for %q, code %d, %s; want %q", args, listed, got.code, got.stderr, want)
		}
	}
	if got := f.run(t, "use", "lab", "--clear"); got.code != ExitUsage {
		t.Errorf("both: code %d", got.code)
	}
	if got := f.run(t, "use", "--clear"); got.code != ExitOK {
		t.Errorf("--clear: code %d, %s", got.code, got.stderr)
	}
	if f.run(t, "run", "a:1"); last.Load().Spec.Agent != "" {
		t.Errorf("after --clear: on %q", last.Load().Spec.Agent)
	}
}

func TestNumbersHaveUnitsAndRanges(t *testing.T) {
	for want, numbers := range map[string][]int{
		"": nil, "3": {3}, "0–3, 8": {8, 0, 1, 3, 2}, "0–1, 4–5": {0, 1, 4, 5}} {
		if got := session.Ranges(numbers); got != want {
			t.Errorf("ranges(%v) = %q, want %q", numbers, got, want)
		}
	}
	whole := make([]int, 32)
	for i := range whole {
		whole[i] = i
	}
	if got := session.Ranges(whole); got != "0–31" {
		t.Errorf("32 CPUs: %s", got)
	}
	for text, want := range map[string]string{"1": "1 CPU, 1 GiB, 1 GPU", "2": "1 CPU, 1 GiB, 2 GPUs",
		"0.5": "1 CPU, 1 GiB, 0.5 GPU", "vram:12g": "1 CPU, 1 GiB, GPU vram:12g"} {
		request, err := gpu.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		spec := session.Spec{Resources: session.Resources{CPU: 1, Memory: gpu.GiB}, Accelerator: request}
		if got := needs(spec); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestLengthsOfTimeHaveTheirUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := limited(t.Context(), 90*time.Minute, "The start of train")
		defer cancel()
		<-ctx.Done()
		if says := context.Cause(ctx).Error(); !strings.Contains(says, "within 1h 30m.") {
			t.Error(says)
		}
	})
	f := newPlane(t)
	f.handle("POST /api/v1/agents/{agent}/pair", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.PairCode{Code: "1-a-b", Address: "slipway://lab:1",
			ExpiresAt: noon.Add(10 * time.Minute)})
	})
	if got := f.run(t, "agent", "pair", "--on", "lab"); !strings.Contains(got.stdout, "Good for  10m\n") {
		t.Errorf("code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}

func TestDevicesAreListedInTheirOrder(t *testing.T) {
	f := newPlane(t)
	f.handle("GET /api/v1/devices", func(w http.ResponseWriter, _ *http.Request) {
		var devices []api.DeviceState
		for _, index := range []int{10, 2, 0, 1} {
			devices = append(devices, api.DeviceState{Device: gpu.Device{UUID: gpu.UUID(fmt.Sprint("GPU-", index)),
				Index: index, Model: "H100"}})
		}
		devices = append([]api.DeviceState{{Device: gpu.Device{UUID: "GPU-gone"}}}, devices...)
		reply(w, http.StatusOK, []api.DeviceBoard{{Agent: "local", Online: true, Devices: devices}})
	})
	var order []string
	for line := range strings.SplitSeq(f.run(t, "gpu").stdout, "\n") {
		if name, _, found := strings.Cut(line, "   "); found && strings.HasPrefix(name, "GPU") {
			order = append(order, strings.TrimSpace(name))
		}
	}
	if want := []string{"GPU 0", "GPU 1", "GPU 2", "GPU 10", "GPU-gone (not found)"}; !reflect.DeepEqual(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}
