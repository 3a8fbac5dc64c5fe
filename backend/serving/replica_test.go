package serving

import (
	"testing"
	"time"

	"slipway/backend/session"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// at is a time of a test, in seconds after it began.
func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func sec(n int) session.Duration { return session.Duration(time.Duration(n) * time.Second) }

// check is one check of a replica; Moved is when bytes moved before its result, in seconds, 0: not.
type check struct {
	at      float64
	status  int
	refused bool
	moved   float64
	want    Phase
}

func TestJudge(t *testing.T) {
	failing := func(from, to, every float64) (checks []check) {
		for at := from; at <= to; at += every {
			checks = append(checks, check{at: at, status: 500, want: Healthy})
		}
		return checks
	}
	for name, c := range map[string]struct {
		from   Phase
		checks []check
	}{
		"the first pass makes it healthy": {Warming, []check{{at: 1, refused: true, want: Warming},
			{at: 2, status: 503, want: Warming}, {at: 3, status: 200, want: Healthy}}},
		"after 10 failures it is out": {Healthy, append(failing(10, 90, 10), check{at: 100, status: 500,
			want: Unhealthy})},
		"a pass in between begins anew": {Healthy, append(append(failing(10, 90, 10), check{at: 100, status: 200,
			want: Healthy}), check{at: 110, status: 500, want: Healthy})},
		"it is out at once when it refuses": {Healthy, []check{{at: 10, refused: true, want: Unhealthy},
			{at: 11, status: 200, want: Healthy}}},
		"who moves bytes lives": {Healthy, append(failing(10, 90, 10), check{at: 100, moved: 95, want: Healthy},
			check{at: 110, want: Healthy})},
		"who moved bytes before the last check does not": {Healthy, append(failing(10, 90, 10),
			check{at: 100, moved: 85, want: Unhealthy})},
		"a refusal is worth more than bytes": {Healthy, []check{{at: 10, moved: 9, refused: true, want: Unhealthy}}},
		"an unhealthy one comes back": {Unhealthy, []check{{at: 1, want: Unhealthy},
			{at: 2, status: 200, want: Healthy}}},
		"a draining one stays so":     {Draining, []check{{at: 1, status: 200, want: Draining}}},
		"a waiting one is not judged": {Waiting, []check{{at: 1, status: 200, want: Waiting}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Replica{Phase: c.from, Since: noon, Checks: Checks{Asked: noon}}
			for _, one := range c.checks {
				if one.moved > 0 {
					r.Checks.Moved = at(one.moved)
				}
				r = r.Judge(Probe{Asked: at(one.at), Status: one.status, Refused: one.refused}, at(one.at))
				if r.Phase != one.want {
					t.Fatalf("at %v s it is %s, want %s", one.at, r.Phase, one.want)
				}
			}
		})
	}
}

func TestChecksWithoutAnAnswerDoNotTakeLonger(t *testing.T) {
	r := Replica{Phase: Healthy, Since: noon, Checks: Checks{Asked: noon}}
	for asked := 10.0; r.Phase == Healthy; asked += 15 {
		r = r.Judge(Probe{Asked: at(asked)}, at(asked+15))
	}
	if out := r.Since.Sub(noon); out != 100*time.Second {
		t.Errorf("out after %s", out)
	}
}

func TestNextCheck(t *testing.T) {
	for phase, want := range map[Phase]time.Time{Warming: at(0.5), Unhealthy: at(0.5), Healthy: at(10), Waiting: {},
		Draining: {}, Ended: {}} {
		if got := (Replica{Phase: phase, Checks: Checks{Asked: noon}}).NextCheck(); !got.Equal(want) {
			t.Errorf("a replica that is %s is checked at %s", phase, got)
		}
	}
}
