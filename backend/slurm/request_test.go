package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func full() Request {
	return Request{Name: "slipway-k3x9-1", Comment: "slipway:i:k3x9:1",
		Target: Target{Partition: "gpu", Account: "bio", QOS: "high", Constraint: "nvlink&a", Reservation: "course"},
		Time:   90*time.Minute + time.Second, Nodes: 2,
		Each:  Each{CPUs: 4, Memory: 2*gpu.GiB + 1, GPUs: 2, GPUType: "h200"},
		Begin: time.Date(2026, 11, 26, 23, 26, 57, 0, time.Local), Nice: 10, Array: 5,
		Dir: "/home/lab/run", Script: "/home/lab/run/job.sh", Log: "/home/lab/100%/job.log",
		Extra: []string{"--exclude=n[1-2]", "--contiguous"}}
}

func TestArguments(t *testing.T) {
	want := []string{"--parsable", "--no-requeue", "--export=NONE", "--job-name=slipway-k3x9-1",
		"--comment=slipway:i:k3x9:1", "--partition=gpu", "--account=bio", "--qos=high", "--constraint=nvlink&a",
		"--reservation=course", "--time=91", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4", "--mem=2049M",
		"--gres=gpu:h200:2", "--begin=2026-11-26T23:26:57", "--nice=10", "--array=0-4", "--chdir=/home/lab/run",
		"--output=/home/lab/100%%/job.log.%a", "--open-mode=append", "--exclude=n[1-2]", "--contiguous",
		"/home/lab/run/job.sh"}
	r := full()
	if got := r.Args(); r.check() != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%v\n%v", got, want, r.check())
	}
	least := Request{Name: "slipway-k3x9-1", Nodes: 1, Each: Each{CPUs: 1, Shards: 3}, Dir: "/r", Script: "/r/j",
		Log: "/r/l"}
	want = []string{"--parsable", "--no-requeue", "--export=NONE", "--job-name=slipway-k3x9-1", "--nodes=1",
		"--ntasks-per-node=1", "--cpus-per-task=1", "--gres=shard:3", "--chdir=/r", "--output=/r/l",
		"--open-mode=append", "/r/j"}
	if got := least.Args(); least.check() != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%v\n%v", got, want, least.check())
	}
}

func TestAScriptHasTheSameOptions(t *testing.T) {
	r := full()
	r.Extra = []string{`--mail-user="a b"@c`}
	script := r.Sbatch("exec true\n")
	lines := strings.Split(script, "\n")
	if lines[0] != "#!/bin/sh" || lines[1] != "#SBATCH --no-requeue" || lines[len(lines)-2] != "exec true" ||
		!slices.Contains(lines, `#SBATCH "--mail-user=\"a b\"@c"`) || !slices.Contains(lines, "#SBATCH --nodes=2") {
		t.Error(script)
	}
	if want := len(r.Args()) - 2; strings.Count(script, "#SBATCH ") != want {
		t.Errorf("%s\nhas not %d options", script, want)
	}
}

func TestWhatSbatchWouldReadAsSomethingElseIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"another name":        func(r *Request) { r.Name = "train" },
		"no node":             func(r *Request) { r.Nodes = 0 },
		"no CPU":              func(r *Request) { r.Each.CPUs = 0 },
		"devices and shards":  func(r *Request) { r.Each.Shards = 1 },
		"a negative amount":   func(r *Request) { r.Nice = -1 },
		"an endless array":    func(r *Request) { r.Array = 1e6 },
		"a relative script":   func(r *Request) { r.Script = "job.sh" },
		"a relative folder":   func(r *Request) { r.Dir = "" },
		"a line in a path":    func(r *Request) { r.Log = "/a\nb" },
		"a pattern as script": func(r *Request) { r.Script = "/a%j" },
		"a line in a comment": func(r *Request) { r.Comment = "a\nb" },
		"a field in a type":   func(r *Request) { r.Each.GPUType = "a,b" },
		"an option":           func(r *Request) { r.Extra = []string{"--wrap=sh"} },
	} {
		r := full()
		if change(&r); session.CodeOf(r.check()) != session.CodeEngineInvalid {
			t.Errorf("%s: %v", name, r.check())
		}
	}
}

func TestOptionsByHand(t *testing.T) {
	for option, want := range map[string]session.Kind{
		"--exclude=n[1-2]": "", "--exclusive": "", "--exclusive=user": "", "--contiguous": "", "--mail-user=a@b": "",
		"--export=ALL": session.KindForbidden, "--wrap": session.KindForbidden, "--job-name=x": session.KindForbidden,
		"--nonsense=1": session.KindUnknown, "--": session.KindUnknown, "": session.KindInvalid,
		"-x": session.KindInvalid, "exclude=n1": session.KindInvalid, "--exclude=a\nb": session.KindInvalid,
		"--exclude": session.KindRequired, "--exclude=": session.KindRequired, "--exclusive=": session.KindRequired,
		"--contiguous=yes": session.KindInvalid, "---exclude=n1": session.KindUnknown,
		"--exclude=" + strings.Repeat("n", maxExtraLength): session.KindInvalid,
	} {
		faults := CheckExtra("slurm.extra", []string{"--tmp=1G", option})
		switch {
		case want == "" && faults != nil, want != "" && len(faults) != 1:
			t.Errorf("%q: %+v", option, faults)
		case want != "" && (faults[0].Kind != want || faults[0].Field != "slurm.extra[1]" ||
			strings.Contains(faults[0].Message, "{{") || !strings.HasSuffix(faults[0].Message, ".")):
			t.Errorf("%q: %+v", option, faults[0])
		}
	}
	faults := CheckExtra("e", []string{"--tmp=1", "--tmp=2"})
	if len(faults) != 1 || faults[0].Kind != session.KindDuplicate {
		t.Errorf("twice: %+v", faults)
	}
	faults = CheckExtra("e", make([]string, maxExtra+1))
	if len(faults) != 1 || faults[0].Kind != session.KindTooMany {
		t.Errorf("many: %+v", faults)
	}
	for _, name := range ours {
		if _, both := extras[name]; both {
			t.Errorf("%s is ours and by hand", name)
		}
	}
}

func FuzzExtra(f *testing.F) {
	f.Add("--exclude=n[1-2]")
	f.Add("--wrap")
	f.Fuzz(func(t *testing.T, option string) {
		faults := CheckExtra("extra", []string{option})
		name, _, _ := strings.Cut(strings.TrimPrefix(option, "--"), "=")
		if _, allowed := extras[name]; faults == nil && (!allowed || !strings.HasPrefix(option, "--")) {
			t.Errorf("%q is allowed", option)
		}
		if faults != nil && strings.ContainsFunc(faults[0].Message, foreign) {
			t.Errorf("%q cannot be shown", faults[0].Message)
		}
	})
}
