package serving

import (
	"fmt"
	"strings"
	"time"
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

// reason explains a state in sentences.
func (p teller) reason(state State) string {
	var said []string
	say := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }
	switch state {
	case Stopping:
		say("%s still ending.", are(len(p.record.Members), "replica"))
		p.sayUnderWay(say)
		return strings.Join(said, " ")
	case Stopped:
		return "Stopped by request."
	case Asleep:
		return p.whyAsleep()
	case Failed:
		f := p.failures()
		say("Revision %d failed %d times in a row. %s Change it or try again.", f.Revision, f.Count, f.Last)
		p.sayRejected(say)
		return strings.Join(said, " ")
	}
	say("%d of %s %s healthy.", p.healthy(), count(p.record.Scaling.Target, "replica"), verb(p.record.Scaling.Target))
	p.sayUpdate(say)
	p.sayProgress(say)
	p.sayFailures(say)
	p.sayRejected(say)
	return strings.Join(said, " ")
}

func (p teller) whyAsleep() string {
	why := fmt.Sprintf("No request for %s.", span(time.Duration(p.service.Sleep.After)))
	if s := p.record.Sleeping; s.For != "" {
		why = fmt.Sprintf("Its devices were needed by %s.", s.Name)
	}
	return why + " The next request wakes it."
}

type sayer func(format string, values ...any)

func (p teller) sayUnderWay(say sayer) {
	sum := 0
	for _, r := range p.service.Replicas {
		if r.Phase != Ended {
			sum += r.Outstanding
		}
	}
	if sum > 0 {
		say("%s under way.", are(sum, "request"))
	}
}

// sayUpdate says how far an update or a roll-back is, and what it needs.
func (p teller) sayUpdate(say sayer) {
	fresh, old := p.revisions()
	if !p.updates() {
		return
	}
	done := 0
	for _, m := range fresh {
		if p.isHealthy(m) {
			done++
		}
	}
	if p.record.Updating > 0 {
		say("Updating from revision %d to %d, %d of %d done.", p.record.Revision, p.record.Updating, done,
			p.record.Scaling.Target)
	} else {
		say("Rolling back to revision %d.", p.record.Revision)
	}
	if p.service.Room || len(fresh) >= p.record.Scaling.Target || len(fresh)+len(old) > p.record.Scaling.Target {
		return
	}
	need := "Not enough is free to start the new replica beside the old ones"
	if p.service.Lacks > 0 {
		need = fmt.Sprintf("A new replica beside the old ones needs %s more device memory", p.service.Lacks)
	}
	say("%s, so one of them stops first and requests may wait.", need)
}

// sayProgress says what the replicas do that are not healthy.
func (p teller) sayProgress(say sayer) {
	var launching, queued, starting, warming, unhealthy int
	for _, m := range p.staying() {
		r := p.replicas[m.Attempt]
		switch {
		case r == nil:
			launching++
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
	if queued > 0 {
		say("%s in the queue.", are(queued, "replica"))
	}
	if launching+starting > 0 {
		say("%s starting.", are(launching+starting, "replica"))
	}
	if warming > 0 {
		say("%s loading.", are(warming, "replica"))
	}
	if unhealthy > 0 {
		say("%s not answering health checks.", are(unhealthy, "replica"))
	}
	if draining := len(p.leaving()); draining > 0 {
		say("%s draining.", are(draining, "replica"))
	}
	if waiting := p.service.Traffic.Waiting; waiting > 0 && p.healthy() == 0 {
		say("%s waiting.", are(waiting, "request"))
	}
}

func (p teller) sayFailures(say sayer) {
	f := p.failures()
	if f.Count == 0 {
		return
	}
	say("%s in a row, the last: %s", count(f.Count, "failure"), f.Last)
	if p.now.Before(f.Next) {
		say("The next attempt is %s after it.", span(delay(f.Count)))
	}
}

func (p teller) sayRejected(say sayer) {
	if r := p.record.Rejected; r != nil {
		say("Revision %d was rolled back: %s", r.Revision, r.Reason)
	}
}
