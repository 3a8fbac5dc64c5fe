package serving

import (
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Sleep is when a service has no replicas until the next request.
type Sleep struct {
	After session.Duration `json:"after,omitempty"` // without a request; 0: not by time
	May   bool             `json:"may,omitempty"`   // also as soon as another service needs its devices
}

// sleeps reports whether a service may sleep at all.
func (s Sleep) sleeps() bool { return s.May || s.After > 0 }

const (
	// rested is how long a service has had no request before its devices go to another one.
	rested = time.Second
	// handover is how long devices take from one service to another before a second service sleeps for the same one.
	handover = 30 * time.Second
)

// wake wakes a service for a request that waits, or because it may no longer sleep.
func (p *plan) wake() {
	if !p.record.Sleeping.Asleep || p.service.Traffic.Waiting == 0 && p.service.Sleep.sleeps() {
		return
	}
	p.record.Sleeping, p.record.Served = Sleeping{Since: p.now}, false
	if len(p.service.Rules) == 0 {
		return
	}
	lowest := slices.MinFunc(p.service.Rules, func(a, b session.ScalingRule) int { return least(a) - least(b) })
	p.record.Scaling = Scaling{Set: p.record.Scaling.Set, Target: least(lowest)}
}

// doze puts a service to sleep that had no request for long enough.
func (p *plan) doze() {
	after := time.Duration(p.service.Sleep.After)
	if after > 0 && p.idle() && p.now.Sub(p.idleSince()) >= after {
		p.record.Sleeping = Sleeping{Asleep: true, Since: p.now}
	}
}

// idle reports whether nobody uses a service that is up. One that loads or is updated is not idle.
func (p *plan) idle() bool {
	if p.resting() || p.updates() || p.healthy() == 0 || p.service.Traffic.Waiting > 0 {
		return false
	}
	for _, r := range p.replicas {
		loads := r.Phase == Warming || r.Phase == Waiting && !r.Queued
		if r.Phase != Ended && (loads || r.Outstanding > 0) {
			return false
		}
	}
	return true
}

func (p *plan) idleSince() time.Time {
	since := p.service.Traffic.Last
	for _, m := range p.record.Members {
		if m.Healthy.After(since) {
			since = m.Healthy
		}
	}
	if woken := p.record.Sleeping.Since; woken.After(since) {
		return woken
	}
	return since
}

// switchOver puts idle services to sleep for one that requests wait for and that lacks device memory: one service at a
// time, the one that lacks it longest first.
func switchOver(plans []*plan) {
	var first *plan
	for _, p := range plans {
		if p.record.Sleeping.Asleep && p.live() {
			return // one at a time
		}
		if p.lacksDevices() && !p.served(plans) &&
			(first == nil || p.record.Sleeping.Since.Before(first.record.Sleeping.Since)) {
			first = p
		}
	}
	if first == nil {
		return
	}
	for _, p := range sleepersFor(first, plans) {
		p.record.Sleeping = Sleeping{Asleep: true, Since: p.now, For: first.record.ID, Name: first.record.Name}
	}
}

// lacksDevices reports whether requests wait for a first replica, which waits for device memory.
func (p *plan) lacksDevices() bool {
	if p.resting() || p.service.Traffic.Waiting == 0 || p.service.Room || p.service.Lacks <= 0 || p.healthy() > 0 ||
		!p.mayLaunch() || len(p.leaving()) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.staying(), func(m Member) bool {
		r := p.replicas[m.Attempt]
		return r != nil && !(r.Phase == Waiting && r.Queued) // it has its devices
	})
}

// served reports whether a service went to sleep for this one just now.
func (p *plan) served(plans []*plan) bool {
	return slices.ContainsFunc(plans, func(other *plan) bool {
		s := other.record.Sleeping
		return s.Asleep && s.For == p.record.ID && p.now.Sub(s.Since) < handover
	})
}

// sleepersFor returns the idle service that has been idle longest of those with enough device memory. If none has
// enough alone, it returns several, if they have enough together.
func sleepersFor(waking *plan, plans []*plan) []*plan {
	var idle []*plan
	for _, p := range plans {
		if p != waking && p.service.Sleep.sleeps() && p.idle() && p.now.Sub(p.idleSince()) >= rested && p.memory() > 0 {
			idle = append(idle, p)
		}
	}
	slices.SortStableFunc(idle, func(a, b *plan) int { return a.idleSince().Compare(b.idleSince()) })
	var sum gpu.Bytes
	for _, p := range idle {
		if p.memory() >= waking.service.Lacks {
			return []*plan{p}
		}
	}
	for i, p := range idle {
		if sum += p.memory(); sum >= waking.service.Lacks {
			return idle[:i+1]
		}
	}
	return nil
}

// memory is the device memory of all replicas.
func (p *plan) memory() (sum gpu.Bytes) {
	for _, r := range p.replicas {
		if r.Phase != Ended {
			sum += r.Memory
		}
	}
	return sum
}
