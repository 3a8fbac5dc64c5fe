package serving

import (
	"slices"
	"time"
)

// patience is how long a new replica waits in the queue beside the old ones until one of them makes room.
const patience = 10 * time.Second

// updates reports whether replicas of two revisions exist, or will.
func (p *plan) updates() bool {
	return p.record.Updating > 0 || slices.ContainsFunc(p.record.Members,
		func(m Member) bool { return m.Revision != p.record.Wanted() && !m.leaves() })
}

// revisions divides the members that stay into those of the wanted revision and older ones.
func (p *plan) revisions() (fresh, old []Member) {
	for _, m := range p.staying() {
		if m.Revision == p.record.Wanted() {
			fresh = append(fresh, m)
		} else {
			old = append(old, m)
		}
	}
	return fresh, old
}

// oldLeaves reports whether a replica of another revision has not ended yet.
func (p *plan) oldLeaves() bool {
	return slices.ContainsFunc(p.leaving(), func(m Member) bool { return m.Revision != p.record.Wanted() })
}

// complete ends an update when all replicas are of the new revision and healthy, and no other one exists.
func (p *plan) complete() {
	fresh, old := p.revisions()
	if p.record.Updating == 0 || p.resting() || len(old) > 0 || len(p.leaving()) > 0 ||
		len(fresh) < p.record.Scaling.Target || p.healthy() < len(fresh) {
		return
	}
	p.record.Previous, p.record.Revision, p.record.Updating = p.record.Revision, p.record.Updating, 0
	p.record.Sleeping.Since = p.now // it was not idle until now
}

// converge launches and drains replicas until those that are wanted exist.
func (p *plan) converge() {
	if p.resting() {
		p.drain(p.staying())
		return
	}
	fresh, old := p.revisions()
	slices.SortFunc(fresh, p.leastWanted)
	p.drain(fresh[:max(0, len(fresh)-p.record.Scaling.Target)])
	// A replica of another revision that never served is worth nothing.
	p.drain(slices.DeleteFunc(old, func(m Member) bool { return m.Passed }))
	fresh, old = p.revisions()
	if len(old) > 0 || p.oldLeaves() {
		p.roll(fresh, old)
		return
	}
	for range p.record.Scaling.Target - len(fresh) {
		if p.mayLaunch() {
			p.launch()
		}
	}
}

// roll takes the next step of an update or of its roll-back: one new replica more than wanted starts, then one old one
// is drained, and the next step follows when that has ended. Without room for one more, an old one goes first.
func (p *plan) roll(fresh, old []Member) {
	target, total := p.record.Scaling.Target, len(fresh)+len(old)
	leaving := len(p.leaving())
	started := !slices.ContainsFunc(fresh, func(m Member) bool { return !p.isHealthy(m) })
	slices.SortFunc(old, p.leastWanted)
	switch {
	case total > target+1:
		p.drain(old[:total-target-1]) // fewer than all, since fresh are at most as many as wanted
	case total < target && started && p.mayLaunch() && (p.service.Room || leaving == 0):
		p.launch()
	case leaving > 0 || total < target:
	case total > target:
		if started || p.stuck(fresh) {
			p.drain(old[:1])
		}
	case !started || !p.mayLaunch():
	case p.service.Room:
		p.launch()
	default:
		p.drain(old[:1])
	}
}

// stuck reports whether a new replica waits in the queue for what the old ones have.
func (p *plan) stuck(fresh []Member) bool {
	return !p.service.Room && slices.ContainsFunc(fresh, func(m Member) bool {
		r := p.replicas[m.Attempt]
		return r != nil && r.Phase == Waiting && r.Queued && p.now.Sub(r.Since) >= patience
	})
}
