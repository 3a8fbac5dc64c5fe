package gpu

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// quality is how the use of a device was found out.
type quality int

const (
	unknown  quality = iota
	divided          // by what was promised
	measured         // by what processes did
)

// divideUse says how much of an interval each party kept the device busy, in ten-thousandths of a millisecond, with one
// entry more for what no party explains. The sum is what the device says of itself; where that is less than what
// processes say, everybody's part is reduced alike.
func divideUse(iv interval, parties []*party) ([]int64, quality) {
	uses := make([]int64, len(parties)+1)
	told, processes := false, 0
	var sum int64
	for i, p := range parties {
		uses[i] = p.use
		sum += p.use
		told = told || p.told
		processes += p.processes
	}
	full := iv.covered * fullUtil
	if iv.sample.Util == nil {
		if !told && (processes > 0 || iv.sample.Blind) {
			return make([]int64, len(uses)), unknown
		}
		return append(split(min(sum, full), uses[:len(parties)]), 0), measured
	}
	total := int64(clamp(*iv.sample.Util)) * iv.covered
	if total > 0 && !told && (processes > 0 || iv.sample.Blind) {
		return byPromise(iv, parties, total), divided
	}
	uses = append(split(min(sum, total), uses[:len(parties)]), 0)
	uses[len(parties)] = total - min(sum, total)
	return uses, measured
}

// byPromise divides total by what parties were promised, with one entry more for what is left. Only parties with
// processes count, unless processes could not be listed; what was promised to nobody stands for others.
func byPromise(iv interval, parties []*party, total int64) []int64 {
	weights := make([]int64, len(parties)+1)
	for i, p := range parties {
		switch {
		case p.processes == 0 && !iv.sample.Blind:
		case p.session == Others:
			weights[i] = unpromised(iv.ms, parties)
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

// unpromised is the share × milliseconds of a device, over ms, that nobody was promised.
func unpromised(ms int64, parties []*party) int64 {
	rest := int64(WholeDevice) * ms
	for _, p := range parties {
		rest -= p.weight
	}
	return max(0, rest)
}

// promised are the share × milliseconds that each party was promised, with one entry more for what nobody was over ms.
func promised(ms int64, parties []*party) []int64 {
	promises := make([]int64, 0, len(parties)+1)
	for _, p := range parties {
		promises = append(promises, p.weight)
	}
	return append(promises, unpromised(ms, parties))
}

// divideMemory says how much memory each party holds, with one entry more for what no party explains, and whether that
// had to be divided by promise. The sum is what the device says is used; where processes say more, everybody's part is
// reduced alike.
func divideMemory(iv interval, parties []*party) ([]int64, bool) {
	memories := make([]int64, len(parties))
	told, processes := false, 0
	var sum int64
	for i, p := range parties {
		memories[i] = int64(p.memory)
		sum += memories[i]
		told = told || p.toldMem
		processes += p.processes
	}
	if iv.sample.MemoryUsed == nil {
		return append(memories, 0), false
	}
	used := int64(max(0, *iv.sample.MemoryUsed))
	if used > 0 && !told && (processes > 0 || iv.sample.Blind) {
		return byPromise(iv, parties, used), true
	}
	memories = append(split(min(sum, used), memories), 0)
	memories[len(parties)] = used - min(sum, used)
	return memories, false
}

// maxPower bounds what is believed of a counter of energy. More than that is a counter that went wrong, and it is
// started again.
const maxPower MilliWatt = 20_000_000

// energy is what a device burnt since energy was last divided.
type energy struct {
	amount  MilliJoule
	ms      int64 // over which time
	counted bool  // by a counter, not from power
}

// burnt reads the energy of an interval and moves the cursor. It is false when there is nothing to divide yet; again
// says that the promises since then must be remembered, because a counter will tell.
func (a *Accounts) burnt(iv interval, at Moment) (e energy, ok, again bool) {
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

// bookEnergy divides what the device burnt. The part that it burns doing nothing goes to those who were promised it,
// and what nobody was promised to idle; the rest goes by use, and to idle when nobody worked.
func (a *Accounts) bookEnergy(iv interval, at Moment, parties []*party, uses []int64, how quality) {
	e, ok, again := a.burnt(iv, at)
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
	promises := promised(e.ms, parties)
	if slices.Max(promises) == 0 {
		promises[len(parties)] = 1
	}
	idles := split(int64(idle), promises)
	work, bucket, estimated := uses, Unattributed, how == divided
	switch {
	case how == unknown || iv.covered*2 < e.ms:
		work, bucket, estimated = promises, Idle, true
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
	a.bucket(iv, Idle, Counters{EnergyIdle: MilliJoule(idles[len(parties)])})
	a.bucket(iv, bucket, Counters{EnergyDyn: MilliJoule(works[len(parties)])})
	d.Counted.EnergyIdle += idle
	d.Counted.EnergyDyn += e.amount - idle
}

// IdlePower is what was learned of the power of a device that does nothing.
type IdlePower struct {
	Seen []MilliWatt `json:"seen,omitempty"` // the last ones, in a ring
	Next int         `json:"next,omitempty"`
}

// idleSeen is how many powers are remembered.
const idleSeen = 64

// Power is a low percentile, the tenth, of what was seen; 0 before anything was.
func (p IdlePower) Power() MilliWatt {
	if len(p.Seen) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(p.Seen))[len(p.Seen)/10]
}

// learn remembers the power of an interval in which nothing ran.
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

// split divides total by weights so that the parts are whole and their sum is exactly total: each part is rounded down,
// and what is left over goes, one each, to the parts that lost most by it, the earlier before the later. With no weight
// at all every part is 0, which is the only case in which the sum is not total. Nothing may be negative.
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
