package gpu

import "slices"

// The functions here divide want, in whole quanta and above one device, over
// parts that are sorted by what is free, most first. Each answers a share for
// every part, or nil when it does not fit.

// fill takes everything of the first part before it touches the next.
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

// spread looks at every run of neighbours in parts that has enough, and takes
// the one whose shares differ least; of those the one with fewest devices;
// of those the one that leaves fewest devices with a rest below one quantum,
// and of those the one with least free, so that large parts stay whole.
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

// level divides want over all of run as evenly as it goes: a part that is too
// small for an even share is taken whole and the others share the rest; what
// does not divide goes to the first, one quantum each. It is nil when run has
// not enough.
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

// rests counts the parts that would be left with something too small to give.
func rests(run []part, shares []Share, quantum Share) (count int) {
	for i, p := range run {
		if rest := p.free - shares[i]; rest > 0 && rest < quantum {
			count++
		}
	}
	return count
}

// equalShares divides want over as few devices as it takes in shares that
// differ by at most one quantum, on devices that have as much free. It is what
// the ledger does unless fragments are allowed.
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
