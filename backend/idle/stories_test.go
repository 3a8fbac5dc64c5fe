package idle

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"slipway/backend/session"
)

// told is a random story, and what a judge made of it who looked every 15 s and
// knew no more than there was then.
type told struct {
	policy session.IdlePolicy
	facts  Facts
	length time.Duration
	ended  time.Duration // 0: not
	by     session.IdleChecker
}

// between is a random length of time; short ones are as likely as long ones.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), r.Float64())).Round(time.Minute)
}

func anyPolicy(r *rand.Rand) (p session.IdlePolicy) {
	length := func() session.Duration { return session.Duration(between(r, time.Minute, 24*time.Hour)) }
	if r.IntN(6) == 0 {
		p.Lifetime = session.Duration(between(r, time.Hour, 7*24*time.Hour))
	}
	if r.IntN(2) == 0 {
		p.Network = length()
	}
	if p.Network == 0 || r.IntN(2) == 0 {
		p.Use = session.UsePolicy{Window: length(), Any: r.IntN(2) == 0, CPU: percent(float64(1 + r.IntN(20)))}
		if r.IntN(2) == 0 {
			p.Use.Grace = length()
		}
		if r.IntN(2) == 0 {
			p.Use.GPU = percent(float64(1 + r.IntN(20)))
		}
	}
	return p
}

// chapter is a part of a story in which a session behaves in one way.
type chapter struct {
	left                     time.Duration
	cpu, gpu, noise          float64
	traffic, busy, work, key int // in so many looks once; 0: never
	blind, unmeasured        int // the same
}

func anyChapter(r *rand.Rand) chapter {
	seldom := func() int { return []int{0, 0, 0, 1, 4, 40, 400}[r.IntN(7)] }
	c := chapter{left: between(r, time.Minute, 12*time.Hour), traffic: seldom(), busy: seldom(), work: seldom(),
		key: seldom(), noise: float64(r.IntN(10))}
	c.cpu, c.gpu = []float64{0, 0, 1, 10, 80}[r.IntN(5)], []float64{0, 0, 2, 90}[r.IntN(4)]
	if r.IntN(6) == 0 {
		c.blind = []int{1, 3, 50}[r.IntN(3)]
	}
	if r.IntN(6) == 0 {
		c.unmeasured = []int{1, 3, 20}[r.IntN(3)]
	}
	return c
}

func tell(seed uint64) told {
	r := rand.New(rand.NewPCG(seed, 19))
	longest := 12 * time.Hour
	if seed%8 == 0 {
		longest = 7 * 24 * time.Hour
	}
	s := told{policy: anyPolicy(r), length: between(r, 10*time.Minute, longest),
		facts: Facts{Type: session.Interactive, StartedAt: start, Series: &Series{}}}
	once := func(in int) bool { return in > 0 && r.IntN(in) == 0 }
	announced := Announced{}
	last, now := Point{}, chapter{}
	for at := time.Duration(0); at < s.length; at += Every {
		if now.left -= Every; now.left <= 0 {
			now = anyChapter(r)
		}
		p := Point{From: start.Add(at), Length: Every, Known: !once(now.blind), Traffic: last.Traffic,
			BusyAt: last.BusyAt, WorkAt: last.WorkAt, Input: last.Input}
		seen := p.From.Add(time.Duration(r.Int64N(int64(Every))))
		for _, signal := range []struct {
			at *time.Time
			in int
		}{{&p.Traffic, now.traffic}, {&p.BusyAt, now.busy}, {&p.WorkAt, now.work}, {&p.Input, now.key}} {
			if once(signal.in) {
				*signal.at = seen
			}
		}
		if !once(now.unmeasured) {
			p.CPU.Add(max(0, now.cpu+now.noise*(r.Float64()-0.5)), Every)
			p.GPU.Add(max(0, now.gpu+now.noise*(r.Float64()-0.5)), Every)
		}
		last = p
		s.facts.Series.Add(p)
		if s.ended > 0 {
			continue
		}
		for _, v := range Judge(s.policy, s.facts, announced, p.end()) {
			if v.Reclaim && s.ended == 0 {
				s.ended, s.by = p.end().Sub(start), v.Check.Checker
			}
		}
	}
	return s
}

// A simulation says of a story of up to a week what a judge did who was there,
// or that it does not know.
func TestASimulationAgreesWithTheJudgeOrDoesNotKnow(t *testing.T) {
	stories := uint64(1000)
	if testing.Short() {
		stories = 100
	}
	ended, unknown, wide, late := 0, 0, 0, time.Duration(0)
	for seed := range stories {
		s := tell(seed)
		sim := Simulate(s.policy, s.facts, start.Add(s.length))
		if sim.Unknown {
			unknown++
			if sim.Ended || sim.At != nil || sim.Checker != "" {
				t.Errorf("seed %d: it knows and does not: %+v", seed, sim)
			}
			continue
		}
		if sim.Ended != (s.ended > 0) || sim.Checker != s.by {
			t.Fatalf("seed %d, %s with %+v: the judge ended it after %s by %q, simulated %+v", seed, s.length, s.policy,
				s.ended, s.by, sim)
		}
		if !sim.Ended {
			continue
		}
		ended++
		after := sim.At.Sub(start.Add(s.ended))
		earliest := sim.At.Add(-slot - Every)
		if sim.Earliest != nil {
			earliest, wide = *sim.Earliest, wide+1
		}
		if late += after; after < -Every || start.Add(s.ended).Before(earliest) {
			t.Fatalf("seed %d: the judge ended it after %s, simulated %+v", seed, s.ended, sim)
		}
	}
	t.Logf(
		"of %d stories %d ended, said to be %s later on average and of %d within a longer time; of %d it is not known",
		stories, ended, late/time.Duration(max(1, ended)), wide, unknown)
	if ended < int(stories)/5 || unknown > int(stories)/4 {
		t.Error("too few ended, or too little is known")
	}
}

// The story of the review: quiet from the tenth minute to the fortieth of a day,
// under a window of ten minutes.
func TestASimulationSeesAQuietHalfHourOfTheDayBefore(t *testing.T) {
	s := story(24*time.Hour, func(at time.Duration, p *Point) {
		if at < 10*time.Minute || at >= 40*time.Minute {
			p.CPU = Metric{}
			p.CPU.Add(50, Every)
		}
	})
	policy := session.IdlePolicy{Use: session.UsePolicy{Window: session.Duration(10 * time.Minute), CPU: percent(5)}}
	sim := Simulate(policy, Facts{StartedAt: start, Series: s}, start.Add(24*time.Hour))
	if !sim.Ended || sim.At.Before(start.Add(21*time.Minute)) || sim.At.After(start.Add(40*time.Minute)) {
		t.Errorf("it would have ended about 23 minutes after its start: %+v", sim)
	}
}

// There is no verdict from less than 90 % of a window, however short it is, and
// there is one from no less.
func TestNoVerdictComesFromLessThanNineTenths(t *testing.T) {
	for _, window := range []time.Duration{time.Minute, 2 * time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour} {
		for _, measured := range []float64{0.5, 0.65, 0.85, 0.89, 0.91, 1} {
			for _, after := range []time.Duration{0, Every / 2, Every} { // between two looks too
				s := story(window+time.Minute, func(_ time.Duration, p *Point) {
					p.CPU = Metric{}
					p.CPU.Add(0, time.Duration(float64(Every)*measured))
				})
				policy := session.IdlePolicy{Use: session.UsePolicy{Window: session.Duration(window), CPU: percent(5)}}
				check := Judge(policy, Facts{StartedAt: start, Series: s}, Announced{},
					start.Add(window+time.Minute+after))[0].Check
				if judged := check.State == session.IdleIdle; judged != (measured >= 0.9) {
					t.Errorf("over %s, of which %g was measured, %s after the last look: %s, %s", window, measured,
						after, check.State, check.Message)
				}
			}
		}
	}
}
