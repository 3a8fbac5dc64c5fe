package idle

import (
	"fmt"
	"time"

	"slipway/backend/session"
)

const stride = time.Minute

// Simulate returns what policy would have done with a session until now (the end of a session that has ended), from its
// measurements. What people asked for to keep it does not count.
//
// Of the distant past only averages over up to five minutes are kept, and bounds of what they hide (see [Point]). So
// two judges look at it: for an eager one all that is possible ends the session soonest, for a reluctant one latest.
// What really was lies between. If they disagree, the result is unknown.
func Simulate(policy session.IdlePolicy, facts Facts, now time.Time) session.IdleSimulation {
	since := facts.StartedAt
	if known := facts.Series.Since(); known.IsZero() {
		since = now
	} else if known.After(since) {
		since = known
	}
	facts.KeepUntil = time.Time{}
	sim := session.IdleSimulation{Since: since}
	eager, reluctant := newJudgement(policy, facts), newJudgement(policy, facts)
	h := newHistory(policy.Use, facts.Series)
	for at := range h.looks(since, now) {
		soonest, latest := h.sights(at)
		if !at.exact {
			eager.hasten(soonest, at.time)
		}
		eager.look(soonest, at.time)
		reluctant.look(latest, at.time)
		if len(reluctant.first) > 0 {
			break
		}
	}
	ended, by, sure := reluctant.ends(eager)
	if ended.IsZero() {
		reluctant.verdicts = Judge(policy, facts, reluctant.announced, now)
	}
	sim.Checks = make([]session.IdleCheck, 0, len(reluctant.verdicts))
	for _, v := range reluctant.verdicts {
		sim.Checks = append(sim.Checks, v.Check)
	}
	switch {
	case ended.IsZero() && len(eager.first) == 0:
		sim.Message = stillRuns(facts, since, now, len(reluctant.verdicts) > 0)
	case !sure:
		sim.Unknown = true
		sim.Message = "It is unknown whether these settings would have ended it: " +
			"only averages are kept of older data, which hide too much."
	default:
		at := ended.UTC()
		sim.Ended, sim.At, sim.Checker = true, &at, by.Check.Checker
		when := spell(at.Sub(facts.StartedAt))
		if soonest := eager.first[by.Check.Checker].Add(-2 * stride).UTC(); at.Sub(soonest) > slot {
			sim.Earliest = &soonest
			when = fmt.Sprintf("between %s and %s", spell(soonest.Sub(facts.StartedAt)), when)
		}
		sim.Message = fmt.Sprintf("With these settings it would have ended %s after its start: %s", when,
			by.Check.Message)
	}
	return sim
}

type judgement struct {
	policy    session.IdlePolicy
	facts     Facts
	announced Announced
	verdicts  []Verdict                         // the newest
	first     map[session.IdleChecker]time.Time // when each checker first ended the session
}

func newJudgement(policy session.IdlePolicy, facts Facts) *judgement {
	return &judgement{policy: policy, facts: facts, announced: Announced{}, first: map[session.IdleChecker]time.Time{}}
}

func (j *judgement) look(seen sight, at time.Time) {
	j.verdicts = judge(j.policy, j.facts, seen, j.announced, at)
	for _, v := range j.verdicts {
		if _, ended := j.first[v.Check.Checker]; v.Reclaim && !ended {
			j.first[v.Check.Checker] = at
		}
	}
}

// hasten looks as a judge a stride before would have, if all that is possible at a time had been so already: a warning
// may have been given and have run out since the last look.
func (j *judgement) hasten(seen sight, at time.Time) {
	started := j.facts.StartedAt
	j.facts.StartedAt = started.Add(-stride)
	for i := range signals {
		Move(-stride, seen.last.signal(i))
	}
	j.look(seen, at.Add(-stride))
	j.facts.StartedAt = started
}

// ends returns when the reluctant judge ended the session, by which check, and whether no other could be sooner.
func (j *judgement) ends(eager *judgement) (at time.Time, by Verdict, sure bool) {
	for _, v := range j.verdicts {
		if v.Reclaim {
			at, by, sure = j.first[v.Check.Checker], v, true
			break
		}
	}
	for checker, soonest := range eager.first {
		if _, also := j.first[checker]; checker != by.Check.Checker && !(also && soonest.Equal(at)) {
			sure = false
		}
	}
	return at, by, sure
}

// stillRuns says how far it is known that a session would not have ended.
func stillRuns(facts Facts, since, now time.Time, judged bool) string {
	const would = "These settings would not have ended it"
	switch {
	case !judged:
		return "These settings never end a session for being idle."
	case !facts.Series.Since().IsZero():
		return fmt.Sprintf("%s; it was judged over %s.", would, spell(now.Sub(since)))
	case now.Sub(facts.StartedAt) < 2*Every:
		return fmt.Sprintf("%s: it began %s ago, and what it uses is not measured yet.", would,
			spell(now.Sub(facts.StartedAt)))
	}
	return would + ", as far as is known: nothing that was measured of it is kept."
}
