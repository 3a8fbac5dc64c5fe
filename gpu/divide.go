package gpu

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

type quality int

const (
	unknown  quality = iota
	divided          // by allocation
	measured         // from processes
)

// divideUse returns how long each party kept the device busy in an interval, in ten-thousandths of a millisecond, with
// one entry more for unattributed use. The sum is what the device reports; where processes report more, all parts are
// reduced in proportion.
func divideUse(iv interval, parties []*party) ([]int64, quality) {
	uses, sum, hidden := iv.amounts(parties, func(p *party) (int64, bool) { return p.use, p.measured })
	if iv.sample.Util == nil {
		if hidden {
			return make([]int64, len(parties)+1), unknown
		}
		return append(split(min(sum, iv.covered*fullUtil), uses), 0), measured
	}
	total := int64(clamp(*iv.sample.Util)) * iv.covered
	if total > 0 && hidden {
		return byAllocation(iv, parties, total), divided
	}
	return append(split(min(sum, total), uses), total-min(sum, total)), measured
}

// amounts returns an amount of each party and their sum. hidden: none is known but there may be processes.
func (iv interval) amounts(parties []*party, of func(*party) (int64, bool)) (amounts []int64, sum int64, hidden bool) {
	known, processes := false, 0
	for _, p := range parties {
		amount, measured := of(p)
		amounts, sum = append(amounts, amount), sum+amount
		known, processes = known || measured, processes+p.processes
	}
	return amounts, sum, !known && (processes > 0 || iv.sample.Blind)
}

// byAllocation divides total by what parties are allocated, with one entry more for the rest. Only parties with
// processes count, unless processes could not be listed; what is not allocated counts for others.
func byAllocation(iv interval, parties []*party, total int64) []int64 {
	weights := make([]int64, len(parties)+1)
	for i, p := range parties {
		switch {
		case p.processes == 0 && !iv.sample.Blind:
		case p.session == Others:
			weights[i] = unallocated(iv.ms, parties)
		default:
			weights[i] = p.weight
		}
	}
	present := func(p *party) bool { return p.processes > 0 }
	if i := slices.IndexFunc(parties, present); i >= 0 && !iv.sample.Blind &&
		!slices.ContainsFunc(parties[i+1:], present) {
		weights[i] = 1 // alone
	}
	if slices.Max(weights) == 0 {
		weights[len(parties)] = 1
	}
	return split(total, weights)
}

// unallocated returns the share × milliseconds of a device over ms that is not allocated.
func unallocated(ms int64, parties []*party) int64 {
	rest := int64(WholeDevice) * ms
	for _, p := range parties {
		rest -= p.weight
	}
	return max(0, rest)
}

// allocated returns the share × milliseconds of each party over ms, with one entry more for what is not allocated.
func allocated(ms int64, parties []*party) []int64 {
	shares := make([]int64, 0, len(parties)+1)
	for _, p := range parties {
		shares = append(shares, p.weight)
	}
	return append(shares, unallocated(ms, parties))
}

// divideMemory returns how much memory each party uses, with one entry more for unattributed memory, and whether it was
// divided by allocation. The sum is what the device reports; where processes report more, all parts are reduced in
// proportion.
func divideMemory(iv interval, parties []*party) ([]int64, bool) {
	memories, sum, hidden := iv.amounts(parties, func(p *party) (int64, bool) { return int64(p.memory), p.hasMemory })
	if iv.sample.MemoryUsed == nil {
		return append(memories, 0), false
	}
	used := int64(max(0, *iv.sample.MemoryUsed))
	if used > 0 && hidden {
		return byAllocation(iv, parties, used), true
	}
	return append(split(min(sum, used), memories), used-min(sum, used)), false
}

// maxPower is the largest believable power. A counter of energy that exceeds it is wrong and is read again from there.
const maxPower MilliWatt = 20_000_000

type energy struct {
	amount  MilliJoule
	ms      int64 // over which time
	counted bool  // by a counter, not from power
}

// consumed reads the energy of an interval and moves the cursor. ok is false when there is nothing to divide yet; again
// means that the allocations since then must be kept, because the counter did not respond this time only.
func consumed(iv interval, at Moment) (e energy, ok, again bool) {
	d, sample := iv.device, iv.sample
	defer func() { d.Power = sample.Power }()
	switch {
	case sample.Energy != nil && d.Energy != nil:
		e = energy{*sample.Energy - *d.Energy, between(d.EnergyAt, at), true}
		span := at.Boot - d.EnergyAt.Boot + time.Second
		ok = int64(e.amount) <= int64(maxPower)/1000*span.Milliseconds()
	case sample.Energy == nil && d.Energy != nil:
		return e, false, true
	case sample.Energy == nil && sample.Power != nil && d.Power != nil && !iv.first:
		ms := iv.held
		d.Micro += int64(max(0, *sample.Power)+max(0, *d.Power)) / 2 * ms
		e = energy{MilliJoule(d.Micro / 1000), iv.ms, false}
		d.Micro %= 1000
		return e, true, false
	}
	if sample.Energy != nil {
		d.Energy, d.EnergyAt = new(*sample.Energy), at
	}
	return e, ok, false
}

// bookEnergy divides the energy of an interval. The idle power of the device goes to those who are allocated it, and of
// what is not allocated to [Idle]; the rest goes by use, and to [Idle] when nothing ran.
func (a *Accounts) bookEnergy(iv interval, at Moment, parties []*party, uses []int64, how quality) {
	e, ok, again := consumed(iv, at)
	if again {
		return
	}
	defer func() {
		for _, p := range parties {
			if p.row != nil {
				p.row.Weight = 0
			}
		}
	}()
	if !ok {
		return
	}
	d := iv.device
	d.Idle.learn(iv, e, uses)
	idle := min(e.amount, MilliJoule(int64(d.Idle.Power())*e.ms/1000))
	shares := allocated(e.ms, parties)
	if slices.Max(shares) == 0 {
		shares[len(parties)] = 1
	}
	idles := split(int64(idle), shares)
	work, bucket, estimated := uses, Unattributed, how == divided
	switch {
	case how == unknown || iv.covered*2 < e.ms:
		work, bucket, estimated = shares, Idle, true
	case slices.Max(uses) == 0:
		work, bucket = append(make([]int64, len(parties)), 1), Idle
	}
	works := split(int64(e.amount-idle), work)
	for i, p := range parties {
		c := Counters{EnergyIdle: MilliJoule(idles[i]), EnergyDyn: MilliJoule(works[i])}
		if estimated {
			c.EnergyEstimated = c.EnergyDyn
		}
		a.pay(iv, p, c)
	}
	a.pay(iv, &party{session: Idle}, Counters{EnergyIdle: MilliJoule(idles[len(parties)])})
	a.pay(iv, &party{session: bucket}, Counters{EnergyDyn: MilliJoule(works[len(parties)])})
	d.Counted.EnergyIdle += idle
	d.Counted.EnergyDyn += e.amount - idle
}

// IdlePower is the learned power of an idle device.
type IdlePower struct {
	Seen []MilliWatt `json:"seen,omitempty"` // the last ones, in a ring
	Next int         `json:"next,omitempty"`
}

// idleSeen is how many powers are kept.
const idleSeen = 64

// Power returns the tenth percentile of what was seen; 0 before anything was.
func (p IdlePower) Power() MilliWatt {
	if len(p.Seen) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(p.Seen))[len(p.Seen)/10]
}

func (p *IdlePower) learn(iv interval, e energy, uses []int64) {
	if iv.sample.Util == nil || *iv.sample.Util != 0 || slices.Max(uses) > 0 || iv.covered != iv.ms || e.ms != iv.ms ||
		iv.ms < 500 {
		return
	}
	seen := MilliWatt(int64(e.amount) * 1000 / e.ms)
	if !e.counted {
		seen = max(0, *iv.sample.Power)
	}
	if len(p.Seen) < idleSeen {
		p.Seen = append(p.Seen, seen)
		return
	}
	p.Seen[p.Next%idleSeen] = seen
	p.Next = (p.Next + 1) % idleSeen
}

// split divides total by weights into whole parts whose sum is exactly total: each part is rounded down, and the rest
// goes, one each, to the parts that lost most by that, the earlier first. If all weights are 0, so are the parts.
// Nothing may be negative.
func split(total int64, weights []int64) []int64 {
	parts := make([]int64, len(weights))
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	if sum == 0 || total <= 0 {
		return parts
	}
	order := make([]int, len(weights))
	lost := make([]uint64, len(weights))
	left := total
	for i, w := range weights {
		hi, lo := bits.Mul64(uint64(total), uint64(w))
		quotient, remainder := bits.Div64(hi, lo, sum)
		parts[i], lost[i], order[i] = int64(quotient), remainder, i
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lost[b], lost[a]) })
	for _, i := range order[:left] {
		parts[i]++
	}
	return parts
}
