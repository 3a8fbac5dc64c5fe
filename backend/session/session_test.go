package session

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func valid() Spec { return Spec{Type: Interactive, Image: "python:3.13"} }

func batch() Spec { return Spec{Type: Batch, Image: "python:3.13", Command: "python train.py"} }

func TestValidateAcceptsWhatPeopleAskFor(t *testing.T) {
	later := now.Add(time.Minute)
	for name, s := range map[string]Spec{
		"only an image": {Image: "debian"},
		"interactive":   valid(),
		"batch with all of its own": {Type: Batch, Image: "registry.example:5000/team/py_torch-2:v1.2@sha256:" +
			strings.Repeat("a", 64),
			Command: "a\nb", Schedule: Schedule{NotBefore: &later, Agent: "local"},
			Lifetime: Lifetime{Timeout: Duration(2 * time.Hour)}, Name: "run.7_b-2", Tuning: Tuning{Threads: 1000}},
		"variables and ports": {Image: "debian", Env: []EnvVar{{Name: "_A1", Value: "x=y\n"}, {Name: "a1"}},
			Access: Access{Ports: []int{1024, 65535, 8888}}},
		"mounts": {Image: "debian", Mounts: []Mount{
			{Source: "/srv/data"}, {Source: "/srv/my data", Target: "two"}, {Source: "/x", Target: "/mnt/x"},
			{Source: "/x", Target: "/opt/x/y"}, {Source: "/srv/데이터"},
			{Source: `C:\Users\me\files`, Target: "files", ReadOnly: true}, {Source: "/y", Target: "/data"},
			{Source: "/z", Target: ".cache/pip"},
		}},
		"a folder as the home, and in it": {Image: "debian", Mounts: []Mount{{Folder: "notes", Target: Home},
			{Source: "/srv/data"}, {Folder: "more"}}, Lifetime: Lifetime{KeepHome: new(Duration(time.Hour))}},
		"a home that is deleted": {Image: "debian",
			Lifetime: Lifetime{KeepHome: new(Duration)}},
		"all of the machine": {Image: "debian", Resources: Resources{CPU: 8, Memory: 16 * gpu.GiB, Shm: 15 * gpu.GiB}},
		"the least memory":   {Image: "debian", Resources: Resources{Memory: MinMemory}},
		"a served folder":    {Type: System, Mounts: []Mount{{Folder: "data"}}},
		"an image id":        {Image: "sha256:" + strings.Repeat("0", 64)},
	} {
		if wrong := s.Validate(now, Limits{CPUs: 8, Memory: 16 * gpu.GiB}); len(wrong) > 0 {
			t.Errorf("%s: %+v", name, wrong)
		}
	}
}

func TestValidateRefusesEachField(t *testing.T) {
	past := now
	with := func(s Spec, change func(*Spec)) Spec { change(&s); return s }
	mount := func(source, target string) Spec {
		return with(valid(), func(s *Spec) { s.Mounts = []Mount{{Source: source, Target: target}} })
	}
	two := func(a, b string) Spec {
		return with(valid(), func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: a}, {Source: "/b", Target: b}} })
	}
	env := func(vars ...EnvVar) Spec { return with(valid(), func(s *Spec) { s.Env = vars }) }
	cases := []struct {
		name  string
		spec  Spec
		field string
		kind  Kind
	}{
		{"a system session of nothing", Spec{Type: System}, "mounts", KindInvalid},
		{"a system session of a directory", Spec{Type: System, Mounts: []Mount{{Source: "/srv"}}}, "mounts",
			KindInvalid},
		{"a system session with an image", Spec{Type: System, Image: "debian", Mounts: []Mount{{Folder: "data"}}},
			"image", KindConflict},
		{"a system session without ssh", Spec{Type: System, Mounts: []Mount{{Folder: "data"}},
			Access: Access{NoSSH: true}}, "noSSH", KindConflict},
		{"a system session with a command", Spec{Type: System, Mounts: []Mount{{Folder: "data"}}, Command: "true"},
			"command", KindConflict},
		{"type", with(valid(), func(s *Spec) { s.Type = "training" }), "type", KindInvalid},
		{"name too short", with(valid(), func(s *Spec) { s.Name = "abc" }), "name", KindInvalid},
		{"name too long", with(valid(), func(s *Spec) { s.Name = strings.Repeat("a", 65) }), "name", KindInvalid},
		{"name begins with a dash", with(valid(), func(s *Spec) { s.Name = "-abcd" }), "name", KindInvalid},
		{"name ends with a dot", with(valid(), func(s *Spec) { s.Name = "abcd." }), "name", KindInvalid},
		{"name with a blank", with(valid(), func(s *Spec) { s.Name = "ab cd" }), "name", KindInvalid},
		{"name not ASCII", with(valid(), func(s *Spec) { s.Name = "größe" }), "name", KindInvalid},
		{"name with a line end", with(valid(), func(s *Spec) { s.Name = "abcd\n" }), "name", KindInvalid},
		{"a home for no time", with(valid(), func(s *Spec) { s.KeepHome = new(Duration(1)) }), "keepHome", KindRange},
		{"a read-only home", with(valid(), func(s *Spec) {
			s.Mounts = []Mount{{Folder: "notes", Target: Home, ReadOnly: true}}
		}), "mounts[0].target", KindConflict},
		{"two homes", with(valid(), func(s *Spec) {
			s.Mounts = []Mount{{Folder: "notes", Target: Home}, {Folder: "more", Target: "."}}
		}), "mounts[1].target", KindDuplicate},
		{"batch without a command", with(batch(), func(s *Spec) { s.Command = " \n" }), "command", KindRequired},
		{"command with NUL", with(batch(), func(s *Spec) { s.Command = "a\x00" }), "command", KindInvalid},
		{"command too long", with(batch(), func(s *Spec) { s.Command = strings.Repeat("a", 1<<17) }), "command",
			KindInvalid},
		{"interactive with a command", with(valid(), func(s *Spec) { s.Command = "ls" }), "command", KindConflict},
		{"interactive with a start", with(valid(), func(s *Spec) { s.NotBefore = &past }), "notBefore", KindConflict},
		{"interactive with a timeout", with(valid(), func(s *Spec) { s.Timeout = 1 }), "timeout", KindConflict},
		{"start not in the future", with(batch(), func(s *Spec) { s.NotBefore = &past }), "notBefore",
			KindInvalid},
		{"timeout negative", with(batch(), func(s *Spec) { s.Timeout = -1 }), "timeout", KindInvalid},
		{"timeout below a second", with(batch(), func(s *Spec) { s.Timeout = 5 }), "timeout", KindInvalid},
		{"no image", with(valid(), func(s *Spec) { s.Image = "" }), "image", KindRequired},
		{"image in capitals", with(valid(), func(s *Spec) { s.Image = "Python" }), "image", KindInvalid},
		{"image with a blank", with(valid(), func(s *Spec) { s.Image = "python 3" }), "image", KindInvalid},
		{"image with an empty tag", with(valid(), func(s *Spec) { s.Image = "python:" }), "image", KindInvalid},
		{"image as an option", with(valid(), func(s *Spec) { s.Image = "--privileged" }), "image", KindInvalid},
		{"image with a URL", with(valid(), func(s *Spec) { s.Image = "https://example.org/x" }), "image",
			KindInvalid},
		{"variable begins with a digit", env(EnvVar{Name: "1A"}), "env[0].name", KindInvalid},
		{"variable without a name", env(EnvVar{Value: "x"}), "env[0].name", KindInvalid},
		{"variable of Slipway", env(EnvVar{Name: "SLIPWAY_X"}), "env[0].name", KindReserved},
		{"variable twice", env(EnvVar{Name: "A"}, EnvVar{Name: "A"}), "env[1].name", KindDuplicate},
		{"value with NUL", env(EnvVar{Name: "A", Value: "\x00"}), "env[0].value", KindInvalid},
		{"value too long", env(EnvVar{Name: "A", Value: strings.Repeat("a", 1<<17)}), "env[0].value",
			KindInvalid},
		{"CPUs negative", with(valid(), func(s *Spec) { s.Resources.CPU = -1 }), "resources.cpu", KindRange},
		{"more CPUs than there are", with(valid(), func(s *Spec) { s.Resources.CPU = 9 }), "resources.cpu",
			KindRange},
		{"too little memory", with(valid(), func(s *Spec) { s.Resources.Memory = MinMemory - 1 }), "resources.memory",
			KindRange},
		{"more memory than there is", with(valid(), func(s *Spec) { s.Resources.Memory = 17 * gpu.GiB }),
			"resources.memory", KindRange},
		{"shared memory as large as memory",
			with(valid(), func(s *Spec) { s.Resources = Resources{Memory: gpu.GiB, Shm: gpu.GiB} }), "resources.shm",
			KindRange},
		{"shared memory negative", with(valid(), func(s *Spec) { s.Resources.Shm = -1 }), "resources.shm",
			KindRange},
		{"threads negative", with(valid(), func(s *Spec) { s.Threads = -1 }), "threads", KindRange},
		{"too many threads", with(valid(), func(s *Spec) { s.Threads = 1001 }), "threads", KindRange},
		{"source relative", mount("data", "x"), "mounts[0].source", KindInvalid},
		{"source empty", mount("", "x"), "mounts[0].source", KindInvalid},
		{"source with NUL", mount("/a\x00", "x"), "mounts[0].source", KindInvalid},
		{"target is the home", mount("/a", "/home/work"), "mounts[0].target", KindReserved},
		{"target is the home, in disguise", mount("/a", "/home/work/."), "mounts[0].target", KindReserved},
		{"target of the system", mount("/a", "/etc/x"), "mounts[0].target", KindReserved},
		{"target of the system itself", mount("/a", "/usr"), "mounts[0].target", KindReserved},
		{"target with two slashes", mount("/a", "//etc"), "mounts[0].target", KindReserved},
		{"target is the root", mount("/a", "/"), "mounts[0].target", KindReserved},
		{"target is /tmp", mount("/a", "/tmp"), "mounts[0].target", KindReserved},
		{"target of Slipway", mount("/a", "/.slipway/link"), "mounts[0].target", KindReserved},
		{"target is .ssh", mount("/a/.ssh", ""), "mounts[0].target", KindReserved},
		{"target is .bashrc", mount("/a", ".bashrc"), "mounts[0].target", KindReserved},
		{"target goes upwards", mount("/a", "../../etc"), "mounts[0].target", KindInvalid},
		{"target goes upwards inside", mount("/a", "x/../y"), "mounts[0].target", KindInvalid},
		{"target with a colon", mount("/a", "x:ro"), "mounts[0].target", KindInvalid},
		{"target with a line end", mount("/a", "x\ny"), "mounts[0].target", KindInvalid},
		{"source is the root", mount("/", ""), "mounts[0].target", KindReserved},
		{"one target twice", two("x", "/home/work/x/"), "mounts[1].target", KindDuplicate},
		{"one target inside another", two("/data", "/data/x"), "mounts[1].target", KindConflict},
		{"one target around another", two("x/y", "x"), "mounts[1].target", KindConflict},
		{"port too low", with(valid(), func(s *Spec) { s.Ports = []int{1023} }), "ports[0]", KindRange},
		{"port too high", with(valid(), func(s *Spec) { s.Ports = []int{8080, 65536} }), "ports[1]", KindRange},
		{"port of Slipway", with(valid(), func(s *Spec) { s.Ports = []int{7430} }), "ports[0]", KindReserved},
		{"port twice", with(valid(), func(s *Spec) { s.Ports = []int{8080, 8080} }), "ports[1]", KindDuplicate},
		{"too many ports", with(valid(), func(s *Spec) { s.Ports = make([]int, 11) }), "ports", KindTooMany},
		{"agent", with(valid(), func(s *Spec) { s.Agent = "a b" }), "agent", KindInvalid},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wrong := c.spec.Validate(now, Limits{CPUs: 8, Memory: 16 * gpu.GiB})
			if len(wrong) != 1 || wrong[0].Field != c.field || wrong[0].Kind != c.kind {
				t.Fatalf("got %+v, want %s at %s", wrong, c.kind, c.field)
			}
			checkSentence(t, wrong[0])
		})
	}
}

func checkSentence(t *testing.T, e FieldError) {
	t.Helper()
	if e.Kind == "" {
		t.Errorf("%+v has no kind", e)
	}
	texts := []string{e.Message, e.Hint}
	if len(e.Said) > 0 && e.Hint == "" { // then the message says what to do
		texts = texts[:1]
	}
	for _, text := range texts {
		if text == "" || !strings.ContainsAny(text[len(text)-1:], ".") && !strings.Contains(e.Hint, ": ") &&
			!strings.Contains(text, "example") {
			t.Errorf("%q is not a sentence", text)
		}
	}
}

func TestUnknownLimitsLimitNothing(t *testing.T) {
	s := valid()
	s.Resources = Resources{CPU: 512, Memory: 4 * gpu.TiB}
	if wrong := s.Validate(now, Limits{}); len(wrong) > 0 {
		t.Errorf("%+v", wrong)
	}
}

func TestEverythingWrongIsToldAtOnce(t *testing.T) {
	s := Spec{Type: Batch, Name: "x", Access: Access{Ports: []int{1}}, Env: []EnvVar{{Name: "9"}}}
	fields := map[string]bool{}
	for _, e := range s.Validate(now, Limits{}) {
		fields[e.Field] = true
	}
	want := map[string]bool{"name": true, "command": true, "image": true, "env[0].name": true, "ports[0]": true}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("got %v, want %v", fields, want)
	}
}

func TestTransitionsLeadForwardToAnEnd(t *testing.T) {
	all := []Status{Pending, Scheduled, Preparing, Pulling, Prepared, Creating, Running, Terminating, Terminated,
		Cancelled, Failed}
	for _, s := range all {
		if s.Live() == s.Terminal() {
			t.Errorf("%s is neither or both of live and terminal", s)
		}
		if s.Terminal() && len(transitions[s]) > 0 {
			t.Errorf("%s can be left", s)
		}
		if s.CanBecome(s) {
			t.Errorf("%s follows itself", s)
		}
		if s.Live() && s != Terminating && !s.CanBecome(Terminating) {
			t.Errorf("%s cannot be ended", s)
		}
		if s.Live() && !s.CanBecome(Failed) {
			t.Errorf("%s cannot fail", s)
		}
		if s.CanBecome(Cancelled) && s == Running {
			t.Errorf("a session that ran can be cancelled")
		}
	}
	seen, queue := map[Status]bool{Pending: true}, []Status{Pending}
	for len(queue) > 0 {
		for _, next := range transitions[queue[0]] {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
		queue = queue[1:]
	}
	for _, s := range all {
		if !seen[s] {
			t.Errorf("%s is never reached", s)
		}
	}
	if Status("").Live() || Status("BOGUS").HoldsResources() {
		t.Error("an unknown status counts as live")
	}
}

func TestNamesAndIDsKeepTheirRules(t *testing.T) {
	ids := map[ID]bool{}
	for range 2000 {
		if name := RandomName(); SessionNames.Check(name) != nil {
			t.Fatalf("%q breaks the rule", name)
		}
		id := NewID()
		if !ValidID(string(id)) || id[0] < 'a' || ids[id] {
			t.Fatalf("id %q", id)
		}
		ids[id] = true
	}
	for _, bad := range []string{"", "short", "UPPERCASE123", "has-dash-12c", "abcdefghijkl\n", "../../../etc"} {
		if ValidID(bad) {
			t.Errorf("%q passes for an id", bad)
		}
	}
}

func TestAutomaticShm(t *testing.T) {
	for _, c := range []struct{ memory, min, want gpu.Bytes }{
		{gpu.GiB, 0, 64 * gpu.MiB}, {4*gpu.GiB - 1, 0, 64 * gpu.MiB}, {4 * gpu.GiB, 0, gpu.GiB},
		{4 * gpu.GiB, 3 * gpu.GiB, gpu.GiB}, {4 * gpu.GiB, 3*gpu.GiB + 1, 64 * gpu.MiB},
		{100 * gpu.MiB, 0, 50 * gpu.MiB},
	} {
		if got := AutomaticShm(c.memory, c.min); got != c.want {
			t.Errorf("AutomaticShm(%s, %s) = %s, want %s", c.memory, c.min, got, c.want)
		}
	}
}

func TestLengthsInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 s", 0: "0 s", time.Millisecond: "0 s", 59 * time.Second: "59 s", 90 * time.Second: "1 min 30 s",
		10 * time.Minute: "10 min", time.Hour: "1 h", 125 * time.Minute: "2 h 5 min", time.Hour + time.Second: "1 h",
		26*time.Hour + 5*time.Minute: "1 d 2 h", 8 * 24 * time.Hour: "8 d",
	} {
		if got := Duration(d).Words(); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "2d": 48 * time.Hour,
		"1W": 168 * time.Hour, "90": 90 * time.Second, " 5s ": 5 * time.Second} {
		got, err := ParseDuration(text)
		if err != nil || time.Duration(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		again, err := ParseDuration(got.String())
		if err != nil || again != got {
			t.Errorf("%q does not survive being written as %q", text, got)
		}
	}
	for _, bad := range []string{"", "m", "1.5h", "-1s", "1y", "99999999999999999999s", "521w"} {
		if d, err := ParseDuration(bad); err == nil {
			t.Errorf("%q passes as %v", bad, d)
		}
	}
}

func FuzzSpecJSON(f *testing.F) {
	f.Add(
		[]byte(
			`{"image":"python:3.13","resources":{"cpu":2,"memory":"2g","shm":"64m"},"env":[{"name":"A",` +
				`"value":"b"}],"ports":[8080]}`))
	f.Add(
		[]byte(
			`{"type":"batch","image":"a","command":"true","timeout":"30m","notBefore":"2027-01-02T03:04:05Z",` +
				`"mounts":[{"source":"/a","target":"../b","readOnly":true}]}`))
	f.Add([]byte(`{"resources":{"memory":-1}}`))
	f.Add([]byte(`{"timeout":5}`))
	f.Add(
		[]byte(
			`{"image":"a","accelerator":{"shares":"0.5"},"mps":true,"cluster":8,"priority":0,"after":["abcd"],` +
				`"pendingTimeout":"2h","label":"x"}`))
	f.Add(
		[]byte(
			`{"image":"a","accelerator":{"profile":"1g.10gb","count":2},"idle":{"lifetime":"1d",` +
				`"use":{"window":"30m","any":true,"cpu":0.5,"vram":100}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Spec
		if json.Unmarshal(data, &s) != nil {
			return
		}
		wrong := s.Validate(now, Limits{CPUs: 8, Memory: 16 * gpu.GiB})
		for _, e := range wrong {
			if e.Field == "" || e.Message == "" || e.Kind == "" {
				t.Fatalf("%+v does not say what is wrong", e)
			}
		}
		full := s.WithDefaults()
		if len(wrong) > 0 {
			return
		}
		if again := full.Validate(now, Limits{CPUs: 8, Memory: 16 * gpu.GiB}); len(again) > 0 {
			t.Fatalf("valid, and not with its defaults: %+v", again)
		}
		for _, m := range full.Mounts {
			if m.Target == Home || !strings.HasPrefix(m.Target, "/") || strings.Contains(m.Target, "..") &&
				strings.Contains(m.Target, "/../") {
				t.Fatalf("mount at %q", m.Target)
			}
		}
		written, err := json.Marshal(full)
		if err != nil {
			t.Fatalf("a valid spec cannot be written: %v", err)
		}
		var read Spec
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, written)
		}
		if again, err := json.Marshal(read.WithDefaults()); err != nil || !bytes.Equal(again, written) {
			t.Fatalf("a spec changes on its way: %s", written)
		}
	})
}

func TestImagesArePinnedByDigest(t *testing.T) {
	digest, id := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	image := Image{ID: id, Digests: []string{"other@" + id, "docker.io/library/python@" + digest,
		"host:5000/lab/torch@" + digest}}
	for ref, want := range map[string]string{
		"python:3.12":            "python:3.12@" + digest,
		"python":                 "python@" + digest,
		"host:5000/lab/torch:2":  "host:5000/lab/torch:2@" + digest,
		"mine:1":                 "mine:1@" + id, // no registry has it
		"python:3.12@" + id:      "python:3.12@" + id,
		id:                       id,
		"docker.io/library/x:12": "docker.io/library/x:12@" + id,
	} {
		if got := PinImage(ref, image); got != want || !ValidImage(got) {
			t.Errorf("%s is pinned as %s, want %s", ref, got, want)
		}
	}
	for _, pair := range [][2]string{{"python", "docker.io/library/python:latest"}, {"a/b:1", "docker.io/a/b:1"},
		{"a:1@" + digest, "a:1"}} {
		if !SameImage(pair[0], pair[1]) {
			t.Errorf("%s and %s are not the same", pair[0], pair[1])
		}
	}
	if SameImage("a:1", "a:2") || SameImage("a:1", "b:1") {
		t.Error("different images are the same")
	}
}
