package idle

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func percent(p float64) *float64 { return &p }

// story is a session's life as a test tells it: a point for every 15 s, made
// by tell from the time since the start.
func story(length time.Duration, tell func(at time.Duration, p *Point)) *Series {
	s := &Series{}
	for at := time.Duration(0); at < length; at += Every {
		p := Point{From: start.Add(at), Length: Every, Known: true}
		p.CPU.Add(0, Every)
		if tell != nil {
			tell(at, &p)
		}
		s.Add(p)
	}
	return s
}

// live judges every 15 s from the start on and returns the verdicts at the end
// and when, if ever, a checker reclaimed the session.
func live(policy session.IdlePolicy, facts Facts,
	until time.Duration) (last []Verdict, ended time.Duration, by session.IdleChecker) {
	announced := Announced{}
	for at := Every; at <= until; at += Every {
		last = Judge(policy, facts, announced, start.Add(at))
		for _, v := range last {
			if v.Reclaim {
				return last, at, v.Check.Checker
			}
		}
	}
	return last, 0, ""
}

func TestJudge(t *testing.T) {
	const h = session.Duration(time.Hour)
	unused := session.UsePolicy{Window: h, CPU: percent(5)}
	cpu := func(p float64) func(time.Duration, *Point) {
		return func(_ time.Duration, point *Point) { point.CPU = Metric{}; point.CPU.Add(p, Every) }
	}
	tests := map[string]struct {
		policy session.IdlePolicy
		kind   session.Type
		keep   time.Duration
		tell   func(time.Duration, *Point)
		until  time.Duration
		ended  time.Duration // 0: it goes on
		state  session.IdleState
		says   string
	}{
		"a lifetime ends it to the second": {policy: session.IdlePolicy{Lifetime: 2 * h}, until: 3 * time.Hour,
			ended: 2 * time.Hour, state: session.IdleIdle},
		"a lifetime ends batch too": {policy: session.IdlePolicy{Lifetime: h}, kind: session.Batch,
			until: 3 * time.Hour, ended: time.Hour, state: session.IdleIdle},
		"within its lifetime it is active": {policy: session.IdlePolicy{Lifetime: 2 * h}, until: time.Hour,
			state: session.IdleActive, says: "1 h of its maximum lifetime of 2h"},
		"a wish to keep it outlasts a limit": {policy: session.IdlePolicy{Lifetime: h}, keep: 5 * time.Hour,
			until: 6 * time.Hour, ended: 5 * time.Hour, state: session.IdleIdle},
		"a short limit is announced shorter": {policy: session.IdlePolicy{Lifetime: session.Duration(4 * time.Minute)},
			until: time.Hour, ended: 4 * time.Minute, state: session.IdleIdle},
		"no traffic ends it": {policy: session.IdlePolicy{Network: h}, until: 3 * time.Hour,
			ended: time.Hour, state: session.IdleIdle},
		"a short limit is quiet sooner": {policy: session.IdlePolicy{Network: session.Duration(time.Minute)},
			until: 50 * time.Second, state: session.IdleIdle, says: "since its start"},
		"batch is never quiet": {policy: session.IdlePolicy{Network: h}, kind: session.Batch,
			until: 3 * time.Hour},
		"traffic keeps it": {policy: session.IdlePolicy{Network: h}, until: 8 * time.Hour, state: session.IdleActive,
			says: "in use",
			tell: func(at time.Duration, p *Point) { p.Traffic = p.From }},
		"the limit counts from the last traffic": {policy: session.IdlePolicy{Network: h}, until: 8 * time.Hour,
			ended: 3 * time.Hour, state: session.IdleIdle,
			tell: func(at time.Duration, p *Point) { p.Traffic = start.Add(min(at, 2*time.Hour)) }},
		"a busy kernel keeps it": {policy: session.IdlePolicy{Network: h}, until: 8 * time.Hour,
			state: session.IdleActive, says: "a notebook",
			tell: func(_ time.Duration, p *Point) { p.BusyAt, p.Busy = p.From, "a notebook" }},
		"work on a device keeps it": {policy: session.IdlePolicy{Network: h}, until: 8 * time.Hour,
			state: session.IdleActive, says: "device",
			tell: func(_ time.Duration, p *Point) { p.WorkAt = p.From }},
		"what cannot be seen keeps it": {policy: session.IdlePolicy{Network: h}, until: 8 * time.Hour,
			state: session.IdleUnknown,
			tell:  func(_ time.Duration, p *Point) { p.Known = false }},
		"too little use ends it after window and warning": {policy: session.IdlePolicy{Use: unused},
			until: 3 * time.Hour, ended: 70 * time.Minute, state: session.IdleIdle},
		"grace comes before the window": {policy: session.IdlePolicy{Use: session.UsePolicy{Window: h, Grace: h,
			CPU: percent(5)}}, until: 3 * time.Hour,
			ended: 2*time.Hour + 10*time.Minute, state: session.IdleIdle},
		"in grace it is not judged": {policy: session.IdlePolicy{Use: unused}, until: 30 * time.Minute,
			state: session.IdleGrace, says: "the first 1 h"},
		"an average at the threshold is fine": {policy: session.IdlePolicy{Use: unused}, tell: cpu(5),
			until: 3 * time.Hour, state: session.IdleActive, says: "5.0 %"},
		"all must be below": {policy: session.IdlePolicy{Use: session.UsePolicy{Window: h, CPU: percent(5),
			Memory: percent(5)}}, until: 3 * time.Hour, state: session.IdleActive,
			tell: func(_ time.Duration, p *Point) { p.Memory.Add(50, Every) }},
		"any below is enough where asked": {policy: session.IdlePolicy{Use: session.UsePolicy{Window: h, Any: true,
			CPU: percent(5), Memory: percent(5)}}, until: 3 * time.Hour,
			ended: 70 * time.Minute, state: session.IdleIdle,
			tell: func(_ time.Duration, p *Point) { p.Memory.Add(50, Every) }},
		"what is not measured is not 0": {policy: session.IdlePolicy{Use: session.UsePolicy{Window: h, Any: true,
			GPU: percent(5), CPU: percent(5)}}, tell: cpu(50), until: 3 * time.Hour, state: session.IdleActive},
		"nothing measured ends nothing": {
			policy: session.IdlePolicy{Use: session.UsePolicy{Window: h, GPU: percent(5)}}, until: 3 * time.Hour,
			state: session.IdleUnknown, says: "None"},
		"too little measured ends nothing": {policy: session.IdlePolicy{Use: unused}, until: 3 * time.Hour,
			state: session.IdleUnknown, says: "Only 8",
			tell: func(at time.Duration, p *Point) {
				if at/Every%5 == 0 {
					p.CPU = Metric{}
				}
			}},
		"a program in a terminal counts as use": {policy: session.IdlePolicy{Use: unused}, until: 3 * time.Hour,
			state: session.IdleActive, says: "python train.py",
			tell: func(_ time.Duration, p *Point) { p.BusyAt, p.Busy = p.From, "python train.py" }},
		"a person at a terminal counts as use": {policy: session.IdlePolicy{Use: unused}, until: 3 * time.Hour,
			state: session.IdleActive, says: "typed",
			tell: func(_ time.Duration, p *Point) { p.Input = p.From }},
		"traffic alone is no use": {policy: session.IdlePolicy{Use: unused}, until: 3 * time.Hour,
			ended: 70 * time.Minute, state: session.IdleIdle,
			tell: func(_ time.Duration, p *Point) { p.Traffic = p.From }},
		"a threshold for devices judges their work": {
			policy: session.IdlePolicy{Use: session.UsePolicy{Window: h, GPU: percent(5)}}, until: 3 * time.Hour,
			ended: 70 * time.Minute, state: session.IdleIdle,
			tell: func(_ time.Duration, p *Point) { p.WorkAt = p.From; p.GPU.Add(1, Every) }},
		"a policy without limits says nothing": {policy: session.IdlePolicy{Use: session.UsePolicy{CPU: percent(5)}},
			until: time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Type: session.Interactive, StartedAt: start, Series: story(test.until, test.tell)}
			if test.kind != "" {
				facts.Type = test.kind
			}
			if test.keep > 0 {
				facts.KeepUntil = start.Add(test.keep)
			}
			last, ended, _ := live(test.policy, facts, test.until)
			if ended < test.ended || ended > test.ended+2*Every {
				t.Errorf("ended after %s, wanted %s", ended, test.ended)
			}
			if test.state == "" {
				if len(last) > 0 {
					t.Errorf("judged: %+v", last)
				}
				return
			}
			if len(last) != 1 || last[0].Check.State != test.state ||
				!strings.Contains(last[0].Check.Message, test.says) {
				t.Fatalf("verdicts %+v", last)
			}
			if (ended > 0) != last[0].Warn && test.ended > 0 {
				t.Errorf("ended without a warning: %+v", last[0])
			}
		})
	}
}

func TestAWarningLeavesTimeToAct(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{
		time.Minute: 30 * time.Second, 2 * time.Minute: time.Minute, 4 * time.Minute: time.Minute,
		20 * time.Minute: 5 * time.Minute, 2 * time.Hour: 10 * time.Minute,
	} {
		if got := Warning(session.Duration(limit)); got != want {
			t.Errorf("a limit of %s is warned of %s before, want %s", limit, got, want)
		}
	}
}

func TestAWarningStandsForItsWholeLength(t *testing.T) {
	t.Run("although the limit is long past when it is first looked at", func(t *testing.T) {
		policy := session.IdlePolicy{Lifetime: session.Duration(time.Hour)}
		facts, announced := Facts{Type: session.Interactive, StartedAt: start}, Announced{}
		now := start.Add(24 * time.Hour)
		v := Judge(policy, facts, announced, now)[0]
		if v.Reclaim || !v.Warn || !v.Check.ExpiresAt.Equal(now.Add(10*time.Minute)) {
			t.Fatalf("first look: %+v", v)
		}
		if v = Judge(policy, facts, announced, now.Add(10*time.Minute-time.Second))[0]; v.Reclaim {
			t.Errorf("reclaimed before the announced time: %+v", v)
		}
		if v = Judge(policy, facts, announced, now.Add(10*time.Minute))[0]; !v.Reclaim ||
			v.Reason != session.ReasonLifetime {
			t.Errorf("not reclaimed: %+v", v)
		}
	})
	t.Run("and begins anew after use", func(t *testing.T) {
		policy := session.IdlePolicy{Network: session.Duration(time.Hour)}
		facts := Facts{Type: session.Interactive, StartedAt: start,
			Series: story(4*time.Hour, func(at time.Duration, p *Point) {
				if at >= 55*time.Minute {
					p.Traffic = start.Add(55 * time.Minute)
				}
			})}
		_, ended, by := live(policy, facts, 4*time.Hour)
		if by != session.CheckNetwork || ended < 115*time.Minute || ended > 116*time.Minute {
			t.Errorf("ended after %s by %s", ended, by)
		}
	})
}

func TestSimulate(t *testing.T) {
	now := start.Add(5 * time.Hour)
	facts := Facts{Type: session.Interactive, StartedAt: start, KeepUntil: start.Add(100 * time.Hour),
		Series: story(5*time.Hour, func(at time.Duration, p *Point) {
			p.Traffic = start.Add(min(at, 90*time.Minute))
		})}
	t.Run("says when it would have ended", func(t *testing.T) {
		sim := Simulate(session.IdlePolicy{Network: session.Duration(time.Hour)}, facts, now)
		if !sim.Ended || sim.Checker != session.CheckNetwork || sim.At.Before(start.Add(150*time.Minute)) ||
			sim.At.After(start.Add(151*time.Minute)) {
			t.Errorf("%+v", sim)
		}
	})
	t.Run("says that it would still run", func(t *testing.T) {
		sim := Simulate(session.IdlePolicy{Network: session.Duration(4 * time.Hour)}, facts, now)
		if sim.Ended || len(sim.Checks) != 1 || sim.Checks[0].State != session.IdleIdle || !sim.Since.Equal(start) {
			t.Errorf("%+v", sim)
		}
	})
	t.Run("says that nothing was asked for", func(t *testing.T) {
		if sim := Simulate(session.IdlePolicy{}, facts, now); sim.Ended || !strings.Contains(sim.Message, "never") {
			t.Errorf("%+v", sim)
		}
	})
	t.Run("says how little it knows of one that has just begun", func(t *testing.T) {
		facts := Facts{Type: session.Interactive, StartedAt: now.Add(-9 * time.Second), Series: &Series{}}
		if sim := Simulate(session.IdlePolicy{Network: session.Duration(time.Hour)}, facts, now); sim.Ended ||
			!strings.Contains(sim.Message, "began 9 s ago") || strings.Contains(sim.Message, " 0 s") {
			t.Errorf("%+v", sim)
		}
		facts.StartedAt = now.Add(-time.Hour)
		if sim := Simulate(session.IdlePolicy{Network: session.Duration(time.Hour)}, facts, now); sim.Ended ||
			!strings.Contains(sim.Message, "is kept") {
			t.Errorf("%+v", sim)
		}
	})
	t.Run("judges nothing that was not measured", func(t *testing.T) {
		facts := Facts{Type: session.Interactive, StartedAt: start, Series: &Series{}}
		if sim := Simulate(session.IdlePolicy{Network: session.Duration(time.Hour)}, facts, now); sim.Ended ||
			!sim.Since.Equal(now) {
			t.Errorf("%+v", sim)
		}
	})
	t.Run("agrees with what really happens", func(t *testing.T) {
		for seed := range uint64(50) {
			r := rand.New(rand.NewPCG(seed, 1))
			traffic, busy := start, time.Time{}
			series := story(5*time.Hour, func(_ time.Duration, p *Point) {
				if r.IntN(200) == 0 {
					traffic = p.From
				}
				if r.IntN(400) == 0 {
					busy = p.From
				}
				p.Traffic, p.BusyAt, p.Known = traffic, busy, r.IntN(100) > 0
				p.CPU = Metric{}
				p.CPU.Add(r.Float64()*8, Every)
			})
			policy := session.IdlePolicy{Network: session.Duration(50 * time.Minute),
				Use: session.UsePolicy{Window: session.Duration(time.Hour), CPU: percent(4)}}
			facts := Facts{Type: session.Interactive, StartedAt: start, Series: series}
			_, ended, by := live(policy, facts, 5*time.Hour)
			sim := Simulate(policy, facts, now)
			if sim.Unknown {
				continue // the average is near the threshold all the time
			}
			if sim.Ended != (ended > 0) || sim.Checker != by || sim.Ended && sim.At.Before(start.Add(ended)) {
				t.Fatalf("seed %d: live %s by %q, simulated %+v", seed, ended, by, sim)
			}
		}
	})
}

func TestSeriesStaysSmallAndTrue(t *testing.T) {
	const length = 3 * 24 * time.Hour
	s := story(length, func(at time.Duration, p *Point) { p.CPU = Metric{}; p.CPU.Add(float64(at/time.Hour), Every) })
	// A slot each, and so many from the first minutes to the first hours: each e
	// times as old as the one before.
	if n := len(s.points); n > int(length/slot)+2*part*6 {

		t.Errorf("%d points are kept", n)
	}
	var measured time.Duration
	for i, p := range s.points {
		measured += p.CPU.Measured
		if i > 0 && !s.points[i-1].From.Add(s.points[i-1].Length).Equal(p.From) {
			t.Fatalf("point %d begins at %s, the one before ends at %s", i, p.From,
				s.points[i-1].From.Add(s.points[i-1].Length))
		}
	}
	if measured != length {
		t.Errorf("%s of %s are kept", measured, length)
	}
	averages, short := s.averages(session.UsePolicy{CPU: percent(1)}, start.Add(24*time.Hour), start.Add(48*time.Hour))
	if short != "" || len(averages) != 1 || averages[0].Average < 35.4 || averages[0].Average > 35.6 {
		t.Errorf("%+v %s", averages, short)
	}
	s.Shift(time.Hour)
	if !s.Since().Equal(start.Add(time.Hour)) {
		t.Errorf("shifted to %s", s.Since())
	}
}

func TestSlotsGoOnWhereASeriesStopped(t *testing.T) {
	const length = 30 * time.Hour
	r := rand.New(rand.NewPCG(3, 1))
	whole := story(length, func(at time.Duration, p *Point) {
		p.CPU = Metric{}
		if r.IntN(50) > 0 {
			p.CPU.Add(r.Float64()*100, Every)
		}
		p.Known, p.BusyAt, p.Busy = r.IntN(20) > 0, start.Add(at/2), "train.py"
	})
	var stored []Point
	// what is under way is stored again and again
	for from := time.Duration(0); from < length; from += 7 * time.Minute {
		for _, slot := range whole.Slots(start.Add(from)) {
			stored = slices.DeleteFunc(stored, func(p Point) bool { return SlotOf(p.From).Equal(SlotOf(slot.From)) })
			stored = append(stored, slot)
		}
	}
	again := &Series{}
	for _, p := range stored {
		again.Add(p)
	}
	if n := len(again.points); n > int(length/slot)+1 || !again.Since().Equal(whole.Since()) ||
		!again.Last().end().Equal(whole.Last().end()) || again.Last().BusyAt != whole.Last().BusyAt {
		t.Fatalf("%d points from %s to %+v", n, again.Since(), again.Last())
	}
	now := start.Add(length)
	for _, window := range []time.Duration{time.Hour, 10 * time.Hour, 29*time.Hour + 7*time.Minute} {
		policy := session.UsePolicy{CPU: percent(1)}
		want, wantShort := whole.averages(policy, now.Add(-window), now)
		got, short := again.averages(policy, now.Add(-window), now)
		if len(got) != 1 || math.Abs(got[0].Average-want[0].Average) > 1 || (short == "") != (wantShort == "") {
			t.Errorf("over %s: %+v %q, want %+v %q", window, got, short, want, wantShort)
		}
	}
}

// The end of the grace period is a time, which a clock can count down to.
func TestTheEndOfGraceIsATime(t *testing.T) {
	policy := session.IdlePolicy{Use: session.UsePolicy{Window: session.Duration(time.Hour),
		Grace: session.Duration(30 * time.Minute), CPU: percent(5)}}
	facts := Facts{StartedAt: start, Series: story(2*time.Hour, nil)}
	for at, want := range map[time.Duration]bool{time.Minute: true, 90*time.Minute - 1: true, 90 * time.Minute: false} {
		check := Judge(policy, facts, Announced{}, start.Add(at))[0].Check
		if (check.State == session.IdleGrace) != want || (check.JudgedFrom != nil) != want {
			t.Errorf("after %s it is %s, judged from %v", at, check.State, check.JudgedFrom)
		}
		if want && !check.JudgedFrom.Equal(start.Add(90*time.Minute)) {
			t.Errorf("after %s it is judged from %s", at, check.JudgedFrom)
		}
	}
}
