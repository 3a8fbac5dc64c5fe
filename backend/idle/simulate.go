package idle

import (
	"fmt"
	"time"

	"slipway/backend/session"
)

// mostSteps bounds the work of one simulation.
const mostSteps = 20_000

// Simulate says what policy would have made of a session until now, from what
// was measured of it; of a session that has ended, now is when it did. What
// people asked for to keep it does not count.
func Simulate(policy session.IdlePolicy, facts Facts, now time.Time) session.IdleSimulation {
	since := facts.StartedAt
	if known := facts.Series.Since(); known.After(since) {
		since = known
	}
	if facts.Series.Since().IsZero() {
		since = now
	}
	facts.KeepUntil = time.Time{}
	sim := session.IdleSimulation{Since: since}
	step := max(Every, now.Sub(since)/mostSteps)
	announced := Announced{}
	var verdicts []Verdict
	for at := since.Add(step); ; at = at.Add(step) {
		if at.After(now) {
			at = now
		}
		verdicts = Judge(policy, facts, announced, at)
		for _, v := range verdicts {
			if v.Reclaim {
				ended := at.UTC()
				sim.Ended, sim.At, sim.Checker = true, &ended, v.Check.Checker
				sim.Message = fmt.Sprintf("With these settings it would have ended %s after its start: %s", spell(at.Sub(facts.StartedAt)), v.Check.Message)
				sim.Checks = checks(verdicts)
				return sim
			}
		}
		if !at.Before(now) {
			break
		}
	}
	sim.Checks = checks(verdicts)
	sim.Message = stillRuns(facts, since, now, len(verdicts) > 0)
	return sim
}

// stillRuns says how far it can be told that a session would not have ended.
func stillRuns(facts Facts, since, now time.Time, judged bool) string {
	const would = "These settings would not have ended it"
	switch {
	case !judged:
		return "These settings never end a session for being idle."
	case !facts.Series.Since().IsZero():
		return fmt.Sprintf("%s; it was judged over %s.", would, spell(now.Sub(since)))
	case now.Sub(facts.StartedAt) < 2*Every:
		return fmt.Sprintf("%s: it began %s ago, and what it uses is not measured yet.", would, spell(now.Sub(facts.StartedAt)))
	}
	return would + ", as far as is known: nothing that was measured of it is kept."
}

// checks are the findings without what follows from them.
func checks(verdicts []Verdict) []session.IdleCheck {
	list := make([]session.IdleCheck, 0, len(verdicts))
	for _, v := range verdicts {
		list = append(list, v.Check)
	}
	return list
}
