package gpu

import (
	"cmp"
	"fmt"
	"slices"
)

// Room is the free memory of devices by the driver (see [Books]). A device that is not in it has no such limit.
type Room map[UUID]Bytes

// Propose returns what l would allocate for r now. The zero request gets an empty proposal. A failure is an [*Error]:
// [CodeRequestInvalid], [CodeRequestQuantum] (below the smallest share), [CodeGrantImpossible] (never on this machine),
// [CodeGrantFragmented] or [CodeGrantUnavailable] (not now). A share of one device or less comes from one device, and
// so does memory. A share that is not in whole quanta is rounded down, once and on its sum, which the proposal reports.
func (l *Ledger) Propose(r Request) (Proposal, error) {
	asked, rounded, err := l.roundShares(r)
	if err != nil || r.IsZero() {
		return Proposal{}, err
	}
	grants := l.choose(asked, nil, false)
	if grants == nil {
		return Proposal{}, l.refuse(asked)
	}
	if asked.Memory > 0 {
		g := grants[0]
		if part := g.Share.Of(l.index[g.Device].promisable()); part != asked.Memory {
			rounded = &Rounding{Given: g.Share,
				Why: fmt.Sprintf("%s takes a share of %s, which stands for %s.", asked.Memory, g.Share, part)}
		}
	}
	return Proposal{Grants: grants, Rounded: rounded}, nil
}

// Offer returns the grants of [Ledger.Propose], limited to the memory in room, and reports whether r can be allocated
// in whole. It explains nothing, which would cost more.
func (l *Ledger) Offer(r Request, room Room) ([]Grant, bool) {
	asked, rounded, err := l.roundShares(r)
	if err != nil || r.IsZero() || rounded != nil {
		return nil, err == nil && rounded == nil
	}
	grants := l.choose(asked, room, false)
	return grants, grants != nil
}

func (l *Ledger) roundShares(r Request) (asked Request, rounded *Rounding, err error) {
	if err := r.Validate(); err != nil {
		return r, nil, err
	}
	asked = r
	asked.Shares = r.Shares / l.config.Quantum * l.config.Quantum
	switch {
	case asked.Shares == r.Shares:
		return asked, nil, nil
	case asked.Shares == 0:
		return r, nil, &Error{Code: CodeRequestQuantum,
			Message: fmt.Sprintf("A share of %s is below the smallest share on this machine, %s.", r.Shares,
				l.config.Quantum), Hint: fmt.Sprintf("Ask for %s or more.", l.config.Quantum)}
	}
	return asked, &Rounding{Asked: r.Shares, Given: asked.Shares, Less: true,
		Why: fmt.Sprintf("Shares are given in multiples of %s, so %s becomes %s.", l.config.Quantum, r.Shares,
			asked.Shares)}, nil
}

// choose picks grants for r, or nil. With empty set it assumes no grants, and no absent or lost devices.
func (l *Ledger) choose(r Request, room Room, empty bool) []Grant {
	switch {
	case r.Devices > 0:
		return l.chooseWhole(r.Devices, room, empty)
	case r.Profile != "":
		return l.chooseInstances(r.Profile, r.instances(), room, empty)
	case r.Memory > 0:
		return l.chooseMemory(r.Memory, room, empty)
	}
	return l.chooseShares(r.Shares, room, empty)
}

func (l *Ledger) refuse(r Request) *Error {
	var free Share
	for _, s := range l.slots {
		free += l.backed(l.part(s, false))
	}
	switch {
	case l.choose(r, nil, true) == nil:
		return l.impossible(r)
	case r.Shares > 0 && free >= r.Shares:
		return &Error{Code: CodeGrantFragmented,
			Message: fmt.Sprintf("%s of devices is free in sum, but not in pieces that %s can be made of.", free,
				r.Shares), Hint: "It starts when more of one device is free; a smaller share may start sooner."}
	}
	return &Error{Code: CodeGrantUnavailable,
		Message: fmt.Sprintf("%s of devices is asked for, and not that much is free.", r),
		Hint:    "It starts when devices are given back."}
}

func (l *Ledger) impossible(r Request) *Error {
	e := &Error{Code: CodeGrantImpossible, Hint: "Ask for less, or choose another machine."}
	switch {
	case len(l.slots) == 0:
		e.Message = "This machine has no devices."
	case r.Memory > 0:
		e.Message = fmt.Sprintf("No device of this machine has %s of memory to allocate.", r.Memory)
	case r.Profile != "":
		e.Message = fmt.Sprintf("This machine does not have %d MIG instances of profile %s.", r.instances(), r.Profile)
		if r.instances() == 1 {
			e.Message = fmt.Sprintf("This machine has no MIG instance of profile %s.", r.Profile)
		}
	default:
		e.Message = fmt.Sprintf("This machine does not have %s devices to allocate.", r)
	}
	return e
}

// part is one device, and the share and the memory of it that may be taken.
type part struct {
	slot *slot
	free Share
	left Bytes
}

// part returns what can be taken of s, or, with empty, what could be without any grants.
func (l *Ledger) part(s *slot, empty bool) part {
	if empty && !s.excluded && !s.drained() {
		return part{s, s.capacity, s.promisable()}
	}
	return part{s, s.free(l.config.Quantum), s.left()}
}

// backed is how much of the free share of p, in whole quanta, has memory to go with it: all of it unless the device had
// more memory when earlier grants were made.
func (l *Ledger) backed(p part) Share {
	if p.free.Of(p.slot.promisable()) <= p.left {
		return p.free
	}
	return min(p.free, p.slot.within(p.left, l.config.Quantum, l.config.Slack))
}

func (l *Ledger) parts(empty bool, free func(part) Share) []part {
	parts := make([]part, 0, len(l.slots))
	for _, s := range l.slots {
		p := l.part(s, empty)
		if p.free = free(p); p.free > 0 {
			parts = append(parts, p)
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.free, a.free) })
	return parts
}

// within is the largest share, in whole quanta, that limit suffices for.
func (s *slot) within(limit Bytes, quantum Share, slack int) Share {
	all := s.needed(slack)
	if all == 0 || limit >= all {
		return WholeDevice
	}
	if limit <= 0 {
		return 0
	}
	fits := Share(float64(limit)/float64(all)*float64(WholeDevice)) / quantum * quantum
	for fits+quantum <= WholeDevice && (fits+quantum).Of(all) <= limit {
		fits += quantum
	}
	for fits > 0 && fits.Of(all) > limit {
		fits -= quantum
	}
	return fits
}

// needed is the memory that must really be free to allocate everything.
func (s *slot) needed(slack int) Bytes {
	return s.promisable() - Share(slack).Of(s.promisable())
}

// grant is a grant of a share of p. A little of its memory may be missing: see [Config].Slack.
func (p part) grant(share Share) Grant {
	return Grant{Device: p.slot.device.UUID, Share: share, Memory: min(share.Of(p.slot.promisable()), p.left)}
}

func (l *Ledger) chooseShares(want Share, room Room, empty bool) []Grant {
	parts := l.parts(empty, func(p part) Share {
		free := l.backed(p)
		if limit, ok := room[p.slot.device.UUID]; ok {
			free = min(free, p.slot.within(limit, l.config.Quantum, l.config.Slack))
		}
		return free
	})
	if want <= WholeDevice {
		return single(parts, l.config.Strategy, func(p part) (Grant, bool) { return p.grant(want), p.free >= want })
	}
	var taken []Share
	switch {
	case !l.config.AllowFragmentation:
		taken = equalShares(parts, want, l.config.Quantum)
	case l.config.Strategy == Fill:
		taken = fill(parts, want)
	default:
		taken = spread(parts, want, l.config.Quantum)
	}
	var grants []Grant
	for i, share := range taken {
		if share > 0 {
			grants = append(grants, parts[i].grant(share))
		}
	}
	return l.inOrder(grants)
}

func (l *Ledger) inOrder(grants []Grant) []Grant {
	at := func(g Grant) int { return slices.Index(l.slots, l.index[g.Device]) }
	slices.SortStableFunc(grants, func(a, b Grant) int { return cmp.Compare(at(a), at(b)) })
	return grants
}

// single picks a part that fits: for [Fill] the first, which has most free, else the smallest.
func single(parts []part, strategy Strategy, fit func(part) (Grant, bool)) []Grant {
	var best []Grant
	var least Share
	for _, p := range parts {
		g, fits := fit(p)
		if !fits || best != nil && p.free >= least {
			continue
		}
		best, least = []Grant{g}, p.free
		if strategy == Fill {
			break
		}
	}
	return best
}

// chooseMemory picks the device for memory, with the smallest share whose part of the memory suffices.
func (l *Ledger) chooseMemory(memory Bytes, room Room, empty bool) []Grant {
	quantum := l.config.Quantum
	return single(l.parts(empty, func(p part) Share { return p.free }), l.config.Strategy, func(p part) (Grant, bool) {
		all := p.slot.promisable()
		if limit, ok := room[p.slot.device.UUID]; p.left < memory || ok && limit < memory {
			return Grant{}, false
		}
		share := max(quantum, Share(float64(memory)/float64(all)*float64(WholeDevice))/quantum*quantum)
		for share > quantum && (share-quantum).Of(all) >= memory {
			share -= quantum
		}
		for share < p.free && share.Of(all) < memory {
			share += quantum
		}
		return Grant{Device: p.slot.device.UUID, Share: share, Memory: memory}, share <= p.free &&
			share.Of(all) >= memory
	})
}

func (l *Ledger) chooseWhole(count int, room Room, empty bool) []Grant {
	var grants []Grant
	for _, s := range l.slots {
		limit, limited := room[s.device.UUID]
		switch {
		case s.excluded || s.drained() || s.capacity == 0 || limited && limit < s.needed(l.config.Slack):
			continue
		case !empty && (s.closed() || s.kind() != KindFree):
			continue
		}
		grants = append(grants, Grant{Device: s.device.UUID, Share: WholeDevice, Memory: s.promisable(), Whole: true})
		if len(grants) == count {
			return grants
		}
	}
	return nil
}

// chooseInstances picks MIG instances of one profile: from the device with the fewest that still has enough, so that
// others keep theirs together, and from several devices in their order when no single one has enough.
func (l *Ledger) chooseInstances(profile string, count int, room Room, empty bool) []Grant {
	var all, best []Grant
	for _, s := range l.slots {
		var here []Grant
		instances := s.freeInstances()
		if empty && !s.excluded {
			instances = s.device.Instances
		}
		for _, i := range instances {
			if limit, ok := room[i.UUID]; i.Profile == profile && (!ok || i.Memory <= limit) {
				here = append(here, Grant{Device: s.device.UUID, Instance: i.UUID, Share: s.device.part(i),
					Memory: i.Memory})
			}
		}
		if len(here) >= count && (best == nil || len(here) < len(best)) {
			best = here
		}
		all = append(all, here...)
	}
	if best == nil {
		best = all
	}
	if len(best) < count {
		return nil
	}
	return best[:count]
}

func fill(parts []part, want Share) []Share {
	taken := make([]Share, len(parts))
	for i, p := range parts {
		taken[i] = min(want, p.free)
		if want -= taken[i]; want == 0 {
			return taken
		}
	}
	return nil
}

// spread looks at every run of neighbours in parts that has enough, and takes the one whose shares differ least, then
// the one with fewest devices, then the one that leaves fewest devices with a rest below one quantum, then the one with
// least free, so that large parts stay whole.
func spread(parts []part, want, quantum Share) []Share {
	var best []Share
	var bestCost [3]int
	for n := 1; n <= len(parts); n++ {
		for from := 0; from+n <= len(parts); from++ {
			shares := level(parts[from:from+n], want, quantum)
			if shares == nil {
				break // later runs have less free
			}
			cost := [3]int{int(slices.Max(shares) - slices.Min(shares)), n, rests(parts[from:from+n], shares, quantum)}
			if best == nil || slices.Compare(cost[:], bestCost[:]) <= 0 {
				bestCost, best = cost, make([]Share, len(parts))
				copy(best[from:], shares)
			}
		}
	}
	return best
}

// level divides want over all of run as evenly as possible: a part that is too small for an even share is taken whole
// and the others share the rest; a remainder goes to the first, one quantum each. It is nil if run has not enough.
func level(run []part, want, quantum Share) []Share {
	shares := make([]Share, len(run))
	left := len(run)
	for left > 0 && run[left-1].free*Share(left) < want {
		left--
		shares[left] = run[left].free
		want -= run[left].free
	}
	if left == 0 {
		return nil
	}
	quanta := want / quantum
	for i := range left {
		shares[i] = quanta / Share(left) * quantum
		if Share(i) < quanta%Share(left) {
			shares[i] += quantum
		}
	}
	return shares
}

func rests(run []part, shares []Share, quantum Share) (count int) {
	for i, p := range run {
		if rest := p.free - shares[i]; rest > 0 && rest < quantum {
			count++
		}
	}
	return count
}

// equalShares divides want over as few devices as possible in shares that differ by at most one quantum. The ledger
// does so unless fragments are allowed.
func equalShares(parts []part, want, quantum Share) []Share {
	for n := int((want + WholeDevice - 1) / WholeDevice); n <= len(parts); n++ {
		quanta := want / quantum
		base, extra := quanta/Share(n)*quantum, int(quanta%Share(n))
		if extra > 0 && parts[extra-1].free < base+quantum || parts[n-1].free < base {
			continue
		}
		taken := make([]Share, len(parts))
		for i := range n {
			taken[i] = base
			if i < extra {
				taken[i] += quantum
			}
		}
		return taken
	}
	return nil
}
