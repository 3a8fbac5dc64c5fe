package services

import (
	"slices"
	"strconv"
	"time"

	"slipway/backend/serving"
	"slipway/backend/session"
)

// change is what a plan or a person changed of a service: events are told from nothing else.
type change struct {
	before, after kept
	replicas      []*replica // of the service
	state         session.ServiceState
	why           []session.Phrase // the state
	person        bool             // who made it; state is not decided yet
	now           time.Time
}

// told returns what is kept after a change, with its events, and whether there are any.
func (c change) told() (after kept, happened bool) {
	after = c.after
	events := slices.Concat(c.asked(), c.members(), c.decided(), c.lasts())
	slices.Reverse(events)
	if len(events) > 0 {
		events = append(events, after.Events...)
		after.Events = events[:min(len(events), session.MaxServiceEvents)]
	}
	return after, len(events) > 0
}

// event is an event with what happened, and why if that is known.
func (c change) event(kind session.EventKind, what session.Phrase, why ...session.Phrase) session.ServiceEvent {
	e := session.ServiceEvent{At: c.now.UTC(), Kind: kind, Message: what.English(), Said: []session.Phrase{what}}
	if len(why) > 0 {
		e.Why, e.Because = session.Reader{}.Read(why...), why
	}
	return e
}

// ofReplica is an event of a replica.
func (c change) ofReplica(kind session.EventKind, say string, m serving.Member,
	why ...session.Phrase) session.ServiceEvent {
	event := c.event(kind, session.Say(say, session.Fill("name", replicaName(c.after.Name, m.Attempt)),
		session.Fill("number", strconv.Itoa(m.Revision))), why...)
	if r := c.replica(m.Attempt); r != nil && session.ValidID(string(r.ID)) {
		event.Session = r.ID
	}
	return event
}

// replica is the one of an attempt; nil if it is not known any more.
func (c change) replica(attempt int) *replica {
	if i := slices.IndexFunc(c.replicas, func(r *replica) bool { return r.Attempt == attempt }); i >= 0 {
		return c.replicas[i]
	}
	return nil
}

func ofRevision(say string, number int) session.Phrase {
	return session.Say(say, session.Fill("number", strconv.Itoa(number)))
}

// asked tells what a person asked for.
func (c change) asked() (events []session.ServiceEvent) {
	before, after := c.before.Plan, c.after.Plan
	if !c.person {
		return nil
	}
	from, to := c.before.Wish.Replicas, c.after.Wish.Replicas
	switch {
	case len(c.before.Revisions) == 0:
		return []session.ServiceEvent{c.event(session.EventCreated, session.Say("eventCreated"))}
	case before.Stopping && !after.Stopping:
		events = append(events, c.event(session.EventStarted, session.Say("eventStarted")))
	case from != to && to > 0:
		events = append(events, c.scaled(from, to))
	}
	if before.Failures.Count > 0 && after.Failures.Count == 0 && before.Wanted() == after.Wanted() {
		events = append(events, c.event(session.EventStarted, session.Say("eventTried")))
	}
	switch wanted := after.Wanted(); {
	case wanted == before.Wanted():
	case after.Updating == 0:
		events = append(events, c.event(session.EventUpdate, ofRevision("eventCancelled", before.Updating)))
	case wanted < before.Wanted():
		events = append(events, c.event(session.EventUpdate, ofRevision("eventReturn", wanted)))
	default:
		events = append(events, c.event(session.EventUpdate, ofRevision("eventUpdate", wanted)))
	}
	return events
}

func (c change) scaled(from, to int, why ...session.Phrase) session.ServiceEvent {
	return c.event(session.EventScaled, session.Say("eventScaled", session.Fill("from", strconv.Itoa(from)),
		session.Fill("to", strconv.Itoa(to))), why...)
}

// members tells which replicas were launched, failed and ended.
func (c change) members() (events []session.ServiceEvent) {
	of := func(members []serving.Member, attempt int) (serving.Member, bool) {
		i := slices.IndexFunc(members, func(m serving.Member) bool { return m.Attempt == attempt })
		if i < 0 {
			return serving.Member{}, false
		}
		return members[i], true
	}
	for _, m := range c.after.Plan.Members {
		was, _ := of(c.before.Plan.Members, m.Attempt)
		if m.Seen && !was.Seen {
			events = append(events, c.ofReplica(session.EventLaunched, "eventLaunched", m))
		}
		// One that was given no time to finish its requests was healthy too late, or no longer.
		if was.Drained.IsZero() && !m.Drained.IsZero() && m.Deadline.Equal(m.Drained) {
			events = append(events, c.failure(m, c.lastFailure()))
		}
	}
	for _, m := range c.before.Plan.Members {
		if _, stays := of(c.after.Plan.Members, m.Attempt); !stays {
			events = append(events, c.end(m)...)
		}
	}
	return events
}

func (c change) lastFailure() session.Phrase {
	if r := c.after.Plan.Rejected; r != nil && c.after.Plan.Failures.Count == 0 {
		return r.Reason
	}
	return c.after.Plan.Failures.Last
}

// failure is that of a replica, with how many failed in a row.
func (c change) failure(m serving.Member, why ...session.Phrase) session.ServiceEvent {
	if n := c.after.Plan.Failures.Count; n > 1 {
		why = append(why, session.Phrase{Say: "eventFailures", Count: n})
	}
	return c.ofReplica(session.EventFailure, "eventFailure", m, why...)
}

// end tells how a replica ended. Of one that was never launched nothing is told.
func (c change) end(m serving.Member) []session.ServiceEvent {
	r := c.replica(m.Attempt)
	ended := r != nil && r.Phase == serving.Ended && r.End != nil
	switch {
	case !m.Seen && !ended:
		return nil
	case !m.Drained.IsZero():
		return []session.ServiceEvent{c.ofReplica(session.EventEnded, "eventEnded", m)}
	case !ended:
		return []session.ServiceEvent{c.failure(m, session.Say("containerLost"))}
	case r.End.Asked():
		return []session.ServiceEvent{c.ofReplica(session.EventEnded, "eventEnded", m, session.Say("eventByPerson"))}
	}
	return []session.ServiceEvent{c.failure(m, r.End.Said)}
}

// decided tells what a plan decided: roll-backs, the numbers of rules, sleep.
func (c change) decided() (events []session.ServiceEvent) {
	before, after := c.before.Plan, c.after.Plan
	if c.person {
		return nil
	}
	switch r := after.Rejected; {
	case before.Updating == 0 || after.Updating > 0:
	case r != nil && r.Revision == before.Updating:
		events = append(events, c.event(session.EventRolledBack, ofRevision("eventRolledBack", r.Revision),
			r.Reason))
	default:
		events = append(events, c.event(session.EventUpdated, ofRevision("eventUpdated", after.Revision)))
	}
	if was, is := before.Scaling, after.Scaling; was.Target != is.Target && is.At.After(was.At) {
		events = append(events, c.scaled(was.Target, is.Target, session.Say("eventRule",
			session.Fill("metric", is.Metric), session.Fill("value", strconv.FormatFloat(is.Value, 'g', 4, 64)))))
	}
	sleep := after.Sleeping
	switch {
	case sleep.Asleep == before.Sleeping.Asleep:
	case !sleep.Asleep && c.after.Wish.Sleep == 0 && !c.after.Wish.MaySleep:
		events = append(events, c.event(session.EventWoken, session.Say("eventWoken"), session.Say("eventNoSleep")))
	case !sleep.Asleep:
		events = append(events, c.event(session.EventWoken, session.Say("eventWoken"), session.Say("eventRequest")))
	case sleep.For != "":
		events = append(events, c.event(session.EventAsleep, session.Say("eventAsleep"),
			session.Say("eventDevices", session.Fill("name", sleep.Name))))
	default:
		events = append(events, c.event(session.EventAsleep, session.Say("eventAsleep"),
			session.Say("eventIdle", session.Fill("time", c.after.Wish.Sleep.String()))))
	}
	return events
}

// lasting are the events of states that last; what leads from one to the next has events of its own.
var lasting = map[session.ServiceState]struct {
	kind session.EventKind
	say  string
}{
	session.ServiceReady:       {session.EventReady, "eventReady"},
	session.ServiceDegraded:    {session.EventDegraded, "eventDegraded"},
	session.ServiceUnreachable: {session.EventLost, "eventLost"},
	session.ServiceFailed:      {session.EventGaveUp, "eventGaveUp"},
	session.ServiceStopped:     {session.EventStopped, "eventStopped"},
}

// turns are the kinds of events after which a state is told, though it may be the one before them.
var turns = []session.EventKind{session.EventReady, session.EventDegraded, session.EventLost, session.EventGaveUp,
	session.EventStopped, session.EventCreated, session.EventStarted, session.EventAsleep, session.EventWoken}

// lasts tells the state if it differs from the one that was told last.
func (c change) lasts() []session.ServiceEvent {
	told, lasts := lasting[c.state]
	last := slices.IndexFunc(c.after.Events,
		func(e session.ServiceEvent) bool { return slices.Contains(turns, e.Kind) })
	if !lasts || last >= 0 && c.after.Events[last].Kind == told.kind {
		return nil
	}
	var why []session.Phrase
	if c.state != session.ServiceReady && c.state != session.ServiceStopped {
		why = c.why
	}
	return []session.ServiceEvent{c.event(told.kind, session.Say(told.say), why...)}
}
