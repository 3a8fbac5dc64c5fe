//go:build linux && !race

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// in is p for a subtest, which is what fails then.
func (p *installed) in(t *testing.T) *installed {
	sub := *p
	sub.t = t
	return &sub
}

// until asks for a session until it is as wanted.
func (p *installed) until(t *testing.T, ref string, wanted func(api.Session) bool) api.Session {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s := p.session("show", ref)
		if wanted(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s stays %s (%s): %+v", ref, s.Status, s.Reason, s.Wait)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func has(status string) func(api.Session) bool {
	return func(s api.Session) bool { return string(s.Status) == status }
}

// queues launches what waits for others, for a time, and for too long.
func (p *installed) queues(t *testing.T) {
	p = p.in(t)
	batch := func(t *testing.T, name string, flags []string, line string) api.Session {
		t.Helper()
		var s api.Session
		args := append([]string{"run", "--image", p.image, "--name", name, "--type", "batch", "--mem", "128m", "-o",
			"json"}, flags...)
		text := p.in(t).must(append(args, "--", line)...)
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return s
	}
	t.Run("a batch that takes too long", func(t *testing.T) {
		p := p.in(t)
		batch(t, "too-long", []string{"--timeout", "2s"}, "sleep 60")
		s := p.until(t, "too-long", ended)
		if s.Status != "TERMINATED" || s.Result != "failure" || s.Reason != "task-timeout" {
			t.Errorf("it ended as %s, %s, %s", s.Status, s.Result, s.Reason)
		}
	})
	t.Run("a start in the future", func(t *testing.T) {
		p := p.in(t)
		asked := batch(t, "later", []string{"--at", "+4s"}, "true")
		s := p.until(t, string(asked.ID), ended)
		if s.StartedAt == nil || s.StartedAt.Before(*asked.Spec.NotBefore) || s.Reason != "task-finished" {
			t.Errorf("it started at %v, asked for %v, and ended as %s", s.StartedAt, asked.Spec.NotBefore, s.Reason)
		}
	})
	t.Run("one after another", func(t *testing.T) {
		p := p.in(t)
		first := batch(t, "first-one", nil, "while [ ! -e go ]; do sleep 0.1; done; exit 3")
		second := batch(t, "second-one", []string{"--after", "first-one"}, "true")
		if len(second.DependsOn) != 1 || second.DependsOn[0] != first.ID {
			t.Errorf("it waits for %v, want %s", second.DependsOn, first.ID)
		}
		if waited := p.session("show", string(first.ID)); len(waited.Dependents) != 1 ||
			waited.Dependents[0] != second.ID {
			t.Errorf("dependents %v, want %s", waited.Dependents, second.ID)
		}
		p.until(t, string(first.ID), has(string(session.Running)))
		p.do("exec", "first-one", "--", "touch", "go") // its container may have ended before the answer is there
		s := p.until(t, string(second.ID), ended)
		if s.Status != "CANCELLED" || s.Reason != "dependency-failed" || s.StartedAt != nil {
			t.Errorf("after a failure it is %s, %s", s.Status, s.Reason)
		}
	})
	t.Run("the queue, priorities and the end of patience", func(t *testing.T) {
		p := p.in(t)
		batch(t, "patient", []string{"--at", "+1h", "--priority", "20"}, "true")
		batch(t, "impatient", []string{"--after", "patient", "--pending-timeout", "2s"}, "true")
		queue := p.sessions("queue")
		if len(queue) < 1 || queue[0].Name != "patient" || queue[0].Wait == nil || queue[0].Wait.Until == nil {
			t.Errorf("queue %+v", queue)
		}
		if text := p.must("priority", "patient", "70"); !strings.Contains(text, "70") ||
			p.session("show", "patient").Priority != 70 {
			t.Errorf("printed %q", text)
		}
		s := p.until(t, "impatient", ended)
		if s.Status != "CANCELLED" || s.Reason != "pending-timeout" {
			t.Errorf("it ended as %s, %s", s.Status, s.Reason)
		}
		p.must("stop", "--wait", "patient")
		if got := p.do("priority", string(s.ID), "5"); got.code == ExitOK ||
			!strings.Contains(got.stderr, "(session_update_conflict)") {
			t.Errorf("the priority of one that ended: %+v", got)
		}
	})
	t.Run("several at once", func(t *testing.T) {
		p := p.in(t)
		ids := strings.Fields(p.must("run", "--image", p.image, "--name", "several", "--count", "3", "--type", "batch",
			"--mem", "128m", "--", "exit 0"))
		if len(ids) != 3 {
			t.Fatalf("ids %q, want 3", ids)
		}
		for i, id := range ids {
			if s := p.until(t, id, ended); s.Name != fmt.Sprintf("several-%d", i+1) || s.Result != "success" {
				t.Errorf("%d is %s, %s", i, s.Name, s.Result)
			}
		}
	})
}

// sharesDevices runs sessions on the simulated devices, of which two parts fit
// on one, and a third and a fourth fill the second.
func (p *installed) sharesDevices(t *testing.T) {
	p = p.in(t)
	var boards []api.DeviceBoard
	board := func() api.DeviceBoard {
		t.Helper()
		if text := p.must("gpu", "-o", "json"); json.Unmarshal([]byte(text), &boards) != nil || len(boards) != 1 {
			t.Fatalf("gpu printed %s", text)
		}
		return boards[0]
	}
	if b := board(); b.Source != "sim" || len(b.Devices) < 2 || b.Quantum == 0 {
		t.Fatalf("board %+v", b)
	}
	devices := len(board().Devices)
	var names []string
	for i := range 2 * devices {
		name := fmt.Sprintf("share-%d", i)
		names = append(names, name)
		s := p.launch(name, "--gpu", "0.4", "--mem", "128m", "--label", "sharing")
		if len(s.Grants.GPUs) != 1 || s.Grants.GPUs[0].Share != 400 || s.Grants.GPUs[0].Memory == 0 ||
			s.Enforcement == "" {
			t.Errorf("%s was granted %+v, kept by %q", name, s.Grants.GPUs, s.Enforcement)
		}
	}
	t.Run("and says in numbers why another one waits", func(t *testing.T) {
		p := p.in(t)
		p.must("run", "--image", p.image, "--name", "no-room", "--gpu", "0.4", "--mem", "128m", "-d")
		s := p.until(t, "no-room", func(s api.Session) bool { return s.Wait != nil })
		if s.Status != "PENDING" || !strings.Contains(s.Wait.Message, "0.4") || s.Wait.Position != 1 {
			t.Errorf("it is %s: %+v", s.Status, s.Wait)
		}
		p.must("stop", "--force", "--wait", names[0])
		p.until(t, "no-room", has(string(session.Running)))
	})
	t.Run("and shows who holds them", func(t *testing.T) {
		p := p.in(t)
		deadline := time.Now().Add(patience)
		measured := func() bool {
			for _, d := range board().Devices {
				for _, h := range d.Holders {
					if h.Name == names[1] && h.Memory != nil && *h.Memory > 0 {
						return h.Share == 400
					}
				}
			}
			return false
		}
		for !measured() {
			if time.Now().After(deadline) {
				t.Fatalf("%s is not seen on the board: %+v", names[1], boards)
			}
			time.Sleep(200 * time.Millisecond)
		}
		if text := p.must("gpu"); !strings.Contains(text, names[1]) || !strings.Contains(text, "█") {
			t.Errorf("printed\n%s", text)
		}
	})
	p.must(append([]string{"stop", "--force", "--wait", "no-room"}, names[1:]...)...)
	t.Run("and counts what was used", func(t *testing.T) {
		p := p.in(t)
		var report api.UsageReport
		text := p.must("usage", "--from", "1h", "--by", "label", "-o", "json")
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatal(err)
		}
		for _, row := range report.Rows {
			if row.Label == "sharing" && row.AllocGPUMs > 0 && row.AllocCPUMs > 0 {
				return
			}
		}
		t.Errorf("nothing is counted for the label: %s", text)
	})
}
