package gpu

import (
	"fmt"
	"strings"
	"testing"
)

func TestGuardWarnsAndActsByPolicy(t *testing.T) {
	na := Bytes(-1)
	for name, c := range map[string]struct {
		policy Policy
		used   []Bytes  // of 100, one each poll; -1 is not told
		want   []string // stage and act, one each poll
	}{
		"silent below the mark":          {"", []Bytes{50, 90, 90}, []string{"", "", ""}},
		"says nothing in the first poll": {"", []Bytes{150, 95}, []string{"", "warn warn"}},
		"warns once":                     {"", []Bytes{0, 91, 92, 93}, []string{"", "warn warn", "", ""}},
		"clears well below the mark": {"", []Bytes{0, 91, 88, 86, 85},
			[]string{"", "warn warn", "", "", "ok warn"}},
		"over only after two": {"", []Bytes{0, 101, 99, 101, 101},
			[]string{"", "warn warn", "", "", "over warn"}},
		"over is said once": {"", []Bytes{0, 110, 110, 110, 110, 110},
			[]string{"", "warn warn", "over warn", "", "", ""}},
		"over clears at 95": {"", []Bytes{0, 110, 110, 97, 95},
			[]string{"", "warn warn", "over warn", "", "warn warn"}},
		"not told is no reason": {PolicyEndSession, []Bytes{0, 110, na, 110, na, 110},
			[]string{"", "warn warn", "", "", "", ""}},
		"not told from the start": {PolicyEndSession, []Bytes{na, na, 110, 110, 110},
			[]string{"", "", "", "warn warn", "over end-session"}},
		"ends the newest process": {PolicyEndProcess, []Bytes{0, 110, 110, 110, 110},
			[]string{"", "warn warn", "over end-process", "", "over end-process"}},
		"ends the session": {PolicyEndSession, []Bytes{0, 101, 101},
			[]string{"", "warn warn", "over end-session"}},
		"exactly the promise is no crime": {PolicyEndSession, []Bytes{0, 100, 100, 100},
			[]string{"", "warn warn", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			g := Guard{Policy: c.policy}
			for i, used := range c.used {
				r := Reading{Session: "a", Device: "G", Limit: 100, Newest: &ProcessSample{PID: 7, Name: "python3"}}
				if used >= 0 {
					r.Used = &used
				}
				got := ""
				for _, alarm := range g.Poll([]Reading{r}) {
					got += fmt.Sprintf("%s %s", alarm.Stage, alarm.Act)
					if (alarm.Process != nil) != (alarm.Act == PolicyEndProcess) ||
						!strings.HasSuffix(alarm.Message, ".") {
						t.Errorf("poll %d says %+v", i, alarm)
					}
				}
				if got != c.want[i] {
					t.Errorf("poll %d with %d says %q, want %q", i, used, got, c.want[i])
				}
			}
		})
	}
}

func TestGuardGoesOnWithWhatWasSaidBefore(t *testing.T) {
	for stage, used := range map[Stage]Bytes{StageWarn: 50, StageOver: 50} {
		g := Guard{}
		g.Recall("a", "G", stage)
		r := []Reading{{Session: "a", Device: "G", Limit: 100, Used: &used}}
		if alarms := g.Poll(r); len(alarms) != 0 {
			t.Errorf("%s: the first poll says %+v", stage, alarms)
		}
		if alarms := g.Poll(r); len(alarms) != 1 || alarms[0].Stage != StageOK {
			t.Errorf("%s: the second poll says %+v", stage, alarms)
		}
	}
}

func TestGuardForgetsWhoIsGone(t *testing.T) {
	g := Guard{Policy: PolicyEndSession}
	over := []Reading{{Session: "a", Device: "G", Limit: 100, Used: ptr(Bytes(200))}}
	g.Poll(over)
	g.Poll(over)
	g.Poll(nil)
	if alarms := g.Poll(over); len(alarms) != 0 {
		t.Errorf("in its first poll a session is told %+v", alarms)
	}
}

func TestReadingsLeaveOutWhatTheHardwareHolds(t *testing.T) {
	holders := Holders{
		{Session: "a", Containers: []string{"c-a"}, Grants: []Grant{{Device: "G", Share: 500, Memory: 10 * GiB},
			{Device: "G", Share: 100, Memory: 2 * GiB}, {Device: "H", Share: 100, Memory: GiB}}},
		{Session: "b", Containers: []string{"c-b"},
			Grants: []Grant{{Device: "I", Share: 1000, Memory: GiB, Whole: true},
				{Device: "J", Instance: "M", Memory: GiB}}},
		{Session: "c", Containers: []string{"c-c"}, Grants: []Grant{{Device: "G", Share: 100, Memory: GiB},
			{Device: "K", Share: 100, Memory: GiB}, {Device: "U", Share: 100}}},
	}
	sample := Sample{
		Devices: []DeviceSample{{UUID: "G"}, {UUID: "H", Blind: true}},
		Processes: []ProcessSample{
			mem(5, "G", "c-a", 3*GiB), mem(6, "G", "c-a", 4*GiB), mem(6, "G", "c-a", 4*GiB), mem(4, "G", "", 9*GiB),
			mem(8, "G", "c-c", GiB), {PID: 9, Device: "G", Container: "c-c"},
		},
	}
	var got []string
	for _, r := range Readings(sample, holders) {
		text := fmt.Sprint(r.Session, " ", r.Device, " ", r.Limit)
		if r.Used != nil {
			text += fmt.Sprint(" ", *r.Used)
		}
		if r.Newest != nil {
			text += fmt.Sprint(" ", r.Newest.PID)
		}
		got = append(got, text)
	}
	want := "a G 12 GiB 7 GiB 6|a H 1 GiB|c G 1 GiB 8|c K 1 GiB"
	if strings.Join(got, "|") != want {
		t.Errorf("readings are\n%s, want\n%s", strings.Join(got, "|"), want)
	}
}
