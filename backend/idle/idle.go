// Package idle judges whether a session is used, by three checkers, and when Slurm ends it, by a fourth. It is
// arithmetic only. What is unknown keeps a session running, and no session is reclaimed without a warning.
package idle

import (
	"fmt"
	"time"

	"slipway/backend/session"
)

// Every is how often the checkers look.
const Every = 15 * time.Second

const (
	// longestWarning is how long before an end it is announced at most.
	longestWarning = 10 * time.Minute
	// recent is how long after its last activity a session still counts as active. It does not delay its end.
	recent = time.Minute
	// typing is how long after a person's last input to a terminal the use of resources is not judged.
	typing = 5 * time.Minute
)

// Warning is how long before the end by a limit a session is warned: a quarter of the limit, but at most ten minutes
// and at least one, or half of the limit if that is shorter.
func Warning(limit session.Duration) time.Duration {
	length := time.Duration(limit)
	return min(longestWarning, max(length/4, min(length/2, time.Minute)))
}

// Facts is what is known of a session at the time of a judgement, in wall clock times.
type Facts struct {
	Type      session.Type
	StartedAt time.Time
	KeepUntil time.Time // it is not reclaimed before; zero: not asked for
	Until     time.Time // Slurm ends it then; zero: unknown, or never
	Series    *Series   // what was measured, the present included
}

// Announced is since when the end by a checker is announced. It is carried from one judgement to the next.
type Announced map[session.IdleChecker]time.Time

// Verdict is the result of one checker.
type Verdict struct {
	Check   session.IdleCheck
	Said    session.Phrase // the message of Check, as it fills the hole why
	Reason  session.Reason // of the end that it brings
	Limit   session.Duration
	Warn    bool // the end is near and a person must know
	Reclaim bool // it was announced for long enough: now
}

// Judge runs every checker of policy on a session. It updates announced, which must not be nil.
func Judge(policy session.IdlePolicy, facts Facts, announced Announced, now time.Time) []Verdict {
	return judge(policy, facts, facts.Series.sight(policy, now), announced, now)
}

// sight is what is seen of a session at one time.
type sight struct {
	last     Point // the newest
	known    bool  // its inside can be seen
	to       time.Time
	averages []session.IdleMetric // over the window that ends at to
	short    string               // why they say too little; empty: they do not
}

func (s *Series) sight(policy session.IdlePolicy, now time.Time) sight {
	v := sight{to: s.judgedTo(now)}
	v.last, v.known = s.latest(now)
	if window := time.Duration(policy.Use.Window); window > 0 {
		v.averages, v.short = s.averages(policy.Use, v.to.Add(-window), v.to)
	}
	return v
}

func judge(policy session.IdlePolicy, facts Facts, seen sight, announced Announced, now time.Time) []Verdict {
	var verdicts []Verdict
	run := func(on bool, checker session.IdleChecker, check func() Verdict) {
		if !on {
			delete(announced, checker)
			return
		}
		verdicts = append(verdicts, check())
	}
	run(policy.Lifetime > 0, session.CheckLifetime,
		func() Verdict { return lifetime(policy, facts, announced, now) })
	run(policy.Network > 0 && facts.Type != session.Batch && facts.Type != session.Inference,
		session.CheckNetwork,
		func() Verdict { return network(policy, facts, seen, announced, now) })
	run(policy.Use.Window > 0 && judged(policy.Use), session.CheckUse,
		func() Verdict { return use(policy.Use, facts, seen, announced, now) })
	run(!facts.Until.IsZero(), session.CheckLimit, func() Verdict { return timeLimit(facts, now) })
	return verdicts
}

// timeLimit warns of the end by Slurm, which is not ours to bring.
func timeLimit(facts Facts, now time.Time) Verdict {
	until := facts.Until.UTC()
	limit := session.Duration(until.Sub(facts.StartedAt).Round(time.Minute))
	v := Verdict{Reason: session.ReasonTaskTimeout, Limit: limit, Warn: until.Sub(now) <= Warning(limit)}
	v.Check = session.IdleCheck{Checker: session.CheckLimit, State: session.IdleActive, ExpiresAt: &until,
		CheckedAt: now}
	v.say(session.Say("idleLimit", session.Fill("limit", limit.String())))
	return v
}

func lifetime(policy session.IdlePolicy, facts Facts, announced Announced, now time.Time) Verdict {
	v := Verdict{Reason: session.ReasonLifetime, Limit: policy.Lifetime}
	v.Check = session.IdleCheck{Checker: session.CheckLifetime, State: session.IdleActive, CheckedAt: now}
	v.expire(facts.StartedAt.Add(time.Duration(policy.Lifetime)), facts.KeepUntil, announced, now)
	v.say(session.Say("idleLifetime", session.Fill("ran", spell(now.Sub(facts.StartedAt))),
		session.Fill("limit", policy.Lifetime.String())))
	return v
}

// network ends a session after a set time without use through a terminal or an app, or work in it.
func network(policy session.IdlePolicy, facts Facts, seen sight, announced Announced, now time.Time) Verdict {
	v := Verdict{Reason: session.ReasonIdle, Limit: policy.Network}
	v.Check = session.IdleCheck{Checker: session.CheckNetwork, State: session.IdleActive, CheckedAt: now}
	last := seen.last
	if !seen.known {
		v.unknown(announced, "The activity in the session is unknown, so it keeps running.")
		return v
	}
	used, what := facts.StartedAt, session.Say("usedStart")
	if last.Traffic.After(used) {
		used, what = last.Traffic, session.Say("usedTraffic")
	}
	if last.BusyAt.After(used) {
		used, what = last.BusyAt, session.Say("usedBusy", session.Fill("what", last.Busy))
	}
	if last.WorkAt.After(used) {
		used, what = last.WorkAt, session.Say("usedDevice")
	}
	quiet, soon := now.Sub(used), min(recent, time.Duration(policy.Network)/2)
	what.Hole = "used"
	v.say(session.Say("idleNetwork", what, session.Fill("quiet", spell(quiet)),
		session.Fill("limit", policy.Network.String())))
	if quiet <= soon {
		v.tell(fmt.Sprintf("It is in use; %s without use and it is reclaimed.", policy.Network))
		if busy, at := last.work(now, true); at {
			v.tell(fmt.Sprintf("It is at work: %s.", busy))
		}
	}
	v.expire(used.Add(time.Duration(policy.Network)), facts.KeepUntil, announced, now)
	if quiet > soon {
		v.Check.State = session.IdleIdle
	}
	return v
}

func use(policy session.UsePolicy, facts Facts, seen sight, announced Announced, now time.Time) Verdict {
	v := Verdict{Reason: session.ReasonUnused, Limit: policy.Window}
	v.Check = session.IdleCheck{Checker: session.CheckUse, State: session.IdleActive, CheckedAt: now}
	window := time.Duration(policy.Window)
	judgedFrom := facts.StartedAt.Add(time.Duration(policy.Grace) + window)
	last, averages := seen.last, seen.averages
	v.Check.Metrics = averages
	// Work on a device is what the threshold judges, where there is one.
	what, busy := last.work(now, policy.GPU == nil)
	switch {
	case seen.to.Before(judgedFrom):
		delete(announced, session.CheckUse)
		v.Check.State, v.Check.JudgedFrom = session.IdleGrace, new(judgedFrom.UTC())
		v.Check.Message = fmt.Sprintf("Not judged for the first %s.", spell(time.Duration(policy.Grace)+window))
	case !seen.known:
		v.unknown(announced, "The activity in the session is unknown, so it keeps running.")
	case seen.short != "":
		v.unknown(announced, seen.short)
	case len(averages) == 0:
		v.unknown(announced, "None of what it would be judged by was measured, so it keeps running.")
	case busy:
		delete(announced, session.CheckUse)
		v.Check.Message = fmt.Sprintf("It is at work: %s.", what)
	case now.Sub(last.Input) <= typing:
		delete(announced, session.CheckUse)
		v.Check.Message = fmt.Sprintf("Somebody typed into a terminal %s ago.", spell(now.Sub(last.Input)))
	default:
		v.weigh(policy, averages, facts, announced, now)
	}
	return v
}

func (p Point) work(now time.Time, devices bool) (string, bool) {
	switch {
	case now.Sub(p.BusyAt) <= recent:
		return p.Busy, true
	case devices && now.Sub(p.WorkAt) <= recent:
		return "something runs on its device", true
	}
	return "", false
}

func (v *Verdict) weigh(policy session.UsePolicy, averages []session.IdleMetric, facts Facts, announced Announced,
	now time.Time) {
	below, text := 0, session.Phrase{Hole: "averages", Text: ", "}
	for _, m := range averages {
		if m.Average < m.Threshold {
			below++
		}
		text.With = append(text.With, session.Say("idleAverage",
			session.Phrase{Hole: "metric", Say: "metric-" + m.Name},
			session.Fill("average", fmt.Sprintf("%.1f", m.Average)),
			session.Fill("threshold", fmt.Sprintf("%g", m.Threshold))))
	}
	v.say(session.Say("idleUse", session.Fill("window", policy.Window.String()), text))
	if policy.Any && below == 0 || !policy.Any && below < len(averages) {
		delete(announced, session.CheckUse)
		return
	}
	since, before := announced[session.CheckUse]
	if !before {
		since = now
	}
	v.Check.State = session.IdleIdle
	v.expire(since.Add(Warning(policy.Window)), facts.KeepUntil, announced, now)
}

// expire sets when the session is reclaimed: at the deadline, but not before keep or the end of the warning.
func (v *Verdict) expire(deadline, keep time.Time, announced Announced, now time.Time) {
	if keep.After(deadline) {
		deadline = keep
		v.Check.State = session.IdleActive
	}
	warning, checker := Warning(v.Limit), v.Check.Checker
	if deadline.Sub(now) > warning {
		delete(announced, checker)
		v.Check.ExpiresAt = &deadline
		return
	}
	since, before := announced[checker]
	if !before {
		since = now
		announced[checker] = now
	}
	if told := since.Add(warning); told.After(deadline) {
		deadline = told
	}
	v.Check.State, v.Check.ExpiresAt, v.Warn = session.IdleIdle, &deadline, true
	v.Reclaim = before && !now.Before(deadline)
}

// say sets the result of a check to a phrase, for the cause of an end, too.
func (v *Verdict) say(found session.Phrase) {
	v.Check.Message, v.Said = found.English(), found
	v.Said.Hole = "why"
}

func (v *Verdict) tell(found string) {
	v.Check.Message, v.Said = found, session.Fill("why", found)
}

func (v *Verdict) unknown(announced Announced, why string) {
	delete(announced, v.Check.Checker)
	v.Check.State, v.Check.Message = session.IdleUnknown, why
}

// spell writes a length of time, without seconds from a minute on.
func spell(d time.Duration) string {
	if d >= time.Minute {
		d = d.Truncate(time.Minute)
	}
	return session.Duration(d).Words()
}
