package serving

import (
	"fmt"
	"time"

	"slipway/backend/session"
)

// State is the state of a service. The word alone says whether it answers.
type State string

// The states.
const (
	Deploying   State = "DEPLOYING"   // starts or wakes and does not answer yet
	Ready       State = "READY"       // all wanted replicas are healthy
	Degraded    State = "DEGRADED"    // some are, it answers
	Unreachable State = "UNREACHABLE" // none is, it does not answer
	Asleep      State = "ASLEEP"      // has no replicas, the next request wakes it
	Updating    State = "UPDATING"    // changes its revision, it answers
	Stopping    State = "STOPPING"
	Stopped     State = "STOPPED"
	Failed      State = "FAILED" // failed too often in a row, no replica is launched
)

// Answers reports whether a service in this state answers requests.
func (s State) Answers() bool { return s == Ready || s == Degraded || s == Updating }

// teller says in words what a plan has decided.
type teller struct{ *plan }

func (p teller) state() State {
	healthy := p.healthy()
	switch {
	case p.record.Stopping && len(p.record.Members) > 0:
		return Stopping
	case p.record.Stopping:
		return Stopped
	case p.record.Sleeping.Asleep:
		return Asleep
	case healthy == 0 && p.gaveUp():
		return Failed
	case healthy == 0 && p.record.Served:
		return Unreachable
	case healthy == 0:
		return Deploying
	case p.updates():
		return Updating
	case healthy < p.record.Scaling.Target:
		return Degraded
	}
	return Ready
}

// why explains a state in sentences.
func (p teller) why(state State) []session.Phrase {
	switch state {
	case Stopping:
		return append([]session.Phrase{count("replicasEnding", len(p.record.Members))}, p.underWay()...)
	case Stopped:
		return []session.Phrase{session.Say("stoppedByRequest")}
	case Asleep:
		why := session.Say("sleepIdle", span(time.Duration(p.service.Sleep.After)))
		if s := p.record.Sleeping; s.For != "" {
			why = session.Say("sleepFor", session.Fill("name", s.Name))
		}
		return []session.Phrase{why, session.Say("sleepWakes")}
	case Failed:
		f := p.failures()
		return append([]session.Phrase{count("revisionFailed", f.Count, number("revision", f.Revision),
			as("last", f.Last))}, p.rejected()...)
	}
	said := []session.Phrase{count("replicasHealthy", p.record.Scaling.Target, number("healthy", p.healthy()))}
	for _, more := range [][]session.Phrase{p.update(), p.progress(), p.failed(), p.rejected()} {
		said = append(said, more...)
	}
	return said
}

func (p teller) underWay() []session.Phrase {
	sum := 0
	for _, r := range p.service.Replicas {
		if r.Phase != Ended {
			sum += r.Outstanding
		}
	}
	if sum == 0 {
		return nil
	}
	return []session.Phrase{count("requestsUnderWay", sum)}
}

// update says how far an update or a roll-back is, and what it needs.
func (p teller) update() (said []session.Phrase) {
	fresh, old := p.revisions()
	if !p.updates() {
		return nil
	}
	done := 0
	for _, m := range fresh {
		if p.isHealthy(m) {
			done++
		}
	}
	if p.record.Updating > 0 {
		said = append(said, count("updating", p.record.Scaling.Target, number("from", p.record.Revision),
			number("to", p.record.Updating), number("done", done)))
	} else {
		said = append(said, session.Say("rollingBack", number("to", p.record.Revision)))
	}
	switch {
	case p.service.Room || len(fresh) >= p.record.Scaling.Target || len(fresh)+len(old) > p.record.Scaling.Target:
		return said
	case p.service.Lacks > 0:
		return append(said, session.Say("updateLacks", session.Fill("amount", fmt.Sprint(p.service.Lacks))))
	}
	return append(said, session.Say("updateNoRoom"))
}

// progress says what the replicas do that are not healthy.
func (p teller) progress() (said []session.Phrase) {
	var queued, starting, warming, unhealthy int
	for _, m := range p.staying() {
		r := p.replicas[m.Attempt]
		switch {
		case r == nil:
			starting++
		case r.Phase == Waiting && r.Queued:
			queued++
		case r.Phase == Waiting:
			starting++
		case r.Phase == Warming:
			warming++
		case r.Phase == Unhealthy:
			unhealthy++
		}
	}
	for _, one := range []session.Phrase{count("replicasQueued", queued), count("replicasStarting", starting),
		count("replicasLoading", warming), count("replicasSilent", unhealthy),
		count("replicasDraining", len(p.leaving()))} {
		if one.Count > 0 {
			said = append(said, one)
		}
	}
	if waiting := p.service.Traffic.Waiting; waiting > 0 && p.healthy() == 0 {
		said = append(said, count("requestsWaiting", waiting))
	}
	return said
}

func (p teller) failed() []session.Phrase {
	f := p.failures()
	if f.Count == 0 {
		return nil
	}
	said := []session.Phrase{count("failuresInARow", f.Count, as("last", f.Last))}
	if p.now.Before(f.Next) {
		said = append(said, session.Say("nextAttempt", span(delay(f.Count))))
	}
	return said
}

func (p teller) rejected() []session.Phrase {
	r := p.record.Rejected
	if r == nil {
		return nil
	}
	return []session.Phrase{session.Say("rolledBack", number("revision", r.Revision), as("why", r.Reason))}
}
