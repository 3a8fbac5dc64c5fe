//go:build linux && cgo

package nvml_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
)

// keeping is a card whose driver keeps records of ended processes.
func keeping(i int) string { return strings.Replace(card(i), "acct=0", "acct=1", 1) }

// record is one of a process that began some time ago.
func (l *lab) record(pid int, began, lasted time.Duration, util int) string {
	return fmt.Sprintf("ended gpu=0 pid=%d start=%d time=%d util=%d mem=4096", pid, l.micros(began),
		lasted.Milliseconds(), util)
}

func TestAProcessThatEndedBetweenSamplesIsToldOnce(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/docker/"+containerID)
	old := l.record(5, time.Hour, time.Minute, 90)
	l.set(keeping(0), "proc gpu=0 pid=7 mem=100", old)
	s := l.open()
	if c := mustInventory(t, s)[0].Capabilities.Accounting; c.State != gpu.Yes {
		t.Errorf("the capability is %+v", c)
	}
	if sample := mustSample(t, s); len(sample.Ended) > 0 {
		t.Fatalf("what ended before the first sample is told: %+v", sample.Ended)
	}
	l.pass(2*time.Second, 0)
	if err := os.RemoveAll(filepath.Join(l.root, "proc/7")); err != nil {
		t.Fatal(err)
	}
	// on the device for one second of the two
	seen := l.record(7, 10*time.Second, 9*time.Second, 50)
	short := l.record(8, 1500*time.Millisecond, time.Second, 40) // came and went unseen
	// gave the device up and lives on
	still := l.record(9, 1500*time.Millisecond, time.Second, 100)
	runs := strings.Replace(l.record(10, time.Second, 0, 99), "util", "running=1 util", 1) // is not over
	l.process(9, "trainer", 1000, "/docker/"+containerID)
	l.process(10, "python", 1000, "/")
	l.set(keeping(0), "proc gpu=0 pid=10 mem=1", old, seen, short, still, runs)
	ended := mustSample(t, s).Ended
	if len(ended) != 3 {
		t.Fatalf("told %+v", ended)
	}
	if e := ended[0]; e.PID != 7 || e.Busy != 500*time.Millisecond || !e.Known || e.Container != containerID ||
		e.Name != "python" || e.User != "mina" || *e.Peak != 4096 {
		t.Errorf("who was seen before is told as %+v", e)
	}
	if e := ended[1]; e.PID != 8 || e.Busy != 400*time.Millisecond || e.Known || e.Container != "" {
		t.Errorf("who was never seen is told as %+v", e)
	}
	if e := ended[2]; e.PID != 9 || e.Busy != time.Second || !e.Known || e.Name != "trainer" {
		t.Errorf("who lives on is told as %+v", e)
	}
	for range 3 {
		l.pass(2*time.Second, 0)
		if sample := mustSample(t, s); len(sample.Ended) > 0 {
			t.Errorf("told again: %+v", sample.Ended)
		}
	}
	kill(t, childOf(t, l)) // the parent knows what it counted
	l.pass(2*time.Second, 0)
	if sample := eventually(t, s); len(sample.Ended) > 0 {
		t.Errorf("told again by the next reader: %+v", sample.Ended)
	}
	l.pass(2*time.Second, 0)
	again := l.record(8, time.Second, time.Second, 100) // the number was given anew
	l.set(keeping(0), old, seen, again, still)
	if ended := mustSample(t, s).Ended; len(ended) != 0 {
		t.Errorf("a record that is kept is read again: %+v", ended)
	}
}

func TestWhatTheDriverChargedAnEndedProcessCounts(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/docker/"+containerID)
	l.set(keeping(0), "proc gpu=0 pid=7 mem=100")
	s := l.open()
	mustSample(t, s)
	l.pass(2*time.Second, 0)
	row := fmt.Sprintf("row gpu=0 pid=7 at=%d sm=30", l.micros(time.Second))
	tick := fmt.Sprintf("sample gpu=0 at=%d value=80", l.micros(time.Second))
	l.set(keeping(0), row, tick, l.record(7, 10*time.Second, 9*time.Second, 99))
	if ended := mustSample(t, s).Ended; len(ended) != 1 || ended[0].Busy != 600*time.Millisecond || !ended[0].Known {
		t.Errorf("told %+v", ended)
	}
}

func TestARecordIsReadAgainWhenItsNumberIsInUseAgain(t *testing.T) {
	l := newLab(t)
	l.set(keeping(0), l.record(7, time.Hour, time.Second, 10))
	s := l.open()
	mustSample(t, s)
	l.pass(2*time.Second, 0)
	l.process(7, "python", 1000, "/")
	l.set(keeping(0), "proc gpu=0 pid=7 mem=100", strings.Replace(l.record(7, time.Second, 0, 10), "util",
		"running=1 util", 1))
	mustSample(t, s)
	l.pass(2*time.Second, 0)
	l.set(keeping(0), l.record(7, 3*time.Second, 2*time.Second, 50))
	if ended := mustSample(t, s).Ended; len(ended) != 1 || ended[0].Busy != 500*time.Millisecond {
		t.Errorf("told %+v", ended)
	}
}

func TestNoRecordsAreKept(t *testing.T) {
	for name, c := range map[string]struct{ card, order, want string }{
		"accounting mode is off": {card(0), "", "accounting mode is off"},
		"the device cannot":      {strings.Replace(card(0), " acct=0", "", 1), "", "does not support it"},
		"the device is divided": {strings.Replace(keeping(0), "mig=0", "mig=1", 1), "",
			"keeps no records of a divided device"},
		"this user may not read them": {keeping(0), "code call=nvmlDeviceGetAccountingPids value=4",
			"this user may not ask"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.set(c.card, c.order)
			s := l.open()
			if p := mustInventory(t, s)[0].Capabilities.Accounting; p.State == gpu.Yes ||
				!strings.Contains(p.Why, c.want) {
				t.Errorf("the capability is %+v", p)
			}
			mustSample(t, s)
			l.pass(2*time.Second, 0)
			l.set(c.card, c.order, l.record(7, time.Second, time.Second, 100))
			if sample := mustSample(t, s); len(sample.Ended) > 0 {
				t.Errorf("told %+v", sample.Ended)
			}
		})
	}
}
