package idle

import "time"

// bounds are what a window can have been of one metric.
type bounds struct {
	sum                        Metric // as if each point were the same throughout
	least, most                time.Duration
	surelyBelow, possiblyBelow bool
}

// bound says what the window that ends at a time can have been of a metric. A
// judge's own window began and ended with points that were kept then, so that
// what lies around both ends may have been in it or not.
func (h *history) bound(metric int, at moment, to time.Time, threshold float64) bounds {
	from, blur := to.Add(-time.Duration(h.policy.Window)), time.Duration(0)
	if !at.exact {
		blur = stride + single
	}
	outer := stretch{from.Add(-h.edge - blur), to}
	inner := stretch{from.Add(h.edge), to.Add(-blur)}
	last := at.done - 1
	if !at.exact {
		last = at.under
	}
	first := endedBy(h.points[:last+1], outer.from)
	b := bounds{}
	low, high := 0.0, 0.0              // of what is above the threshold, in percent seconds
	missed := outer.to.Sub(outer.from) // how much of all that was not measured
	for i := first; i <= last; i++ {
		p := &h.points[i]
		if inner.holds(*p) {
			// So are those that follow, but for the last few: they are summed up at once.
			end := endedBy(h.points[:last+1], inner.to)
			sums := h.sums[metric]
			whole := sums[end].less(sums[i])
			above := b.add(whole, 1) - threshold*whole.Measured.Seconds()
			low, high, i, missed = low+above, high+above, end-1, missed-whole.Measured
			continue
		}
		m := *metrics[metric].of(p)
		if share := p.after(from); at.exact && h.edge == 0 && p.one() {
			above := b.add(m, share) - threshold*m.Measured.Seconds()*share
			low, high, missed = low+above, high+above, missed-time.Duration(float64(m.Measured)*share)
			continue
		}
		missed -= outer.part(*p) - max(0, p.Length-m.Measured)
		piece := pieceOf(m, p.Length, inner.part(*p), outer.part(*p))
		share := float64(stretch{from, to}.part(*p)) / float64(max(1, p.Length))
		b.sum.PercentSeconds += piece.PercentSeconds * share
		b.sum.Measured += time.Duration(float64(piece.Measured) * share)
		b.least, b.most = b.least+piece.least, b.most+piece.most
		least, most := piece.above(threshold)
		low, high = low+least, high+most
	}
	// Wherever the window lay, no more of it was missed than of all that.
	b.least = max(b.least, time.Duration(h.policy.Window)-max(0, missed))
	const rounding = 1e-6 // of sums of many numbers
	slack := rounding * (1 + b.most.Seconds()*threshold)
	b.surelyBelow, b.possiblyBelow = high < -slack, low < slack
	return b
}

// add counts a part of a point that was in the window, and returns what was used
// in it, in percent seconds.
func (b *bounds) add(m Metric, share float64) float64 {
	measured := time.Duration(float64(m.Measured) * share)
	b.sum.PercentSeconds += m.PercentSeconds * share
	b.sum.Measured += measured
	b.least, b.most = b.least+measured, b.most+measured
	return m.PercentSeconds * share
}

// less is what was measured between an earlier sum and m.
func (m Metric) less(earlier Metric) Metric {
	return Metric{PercentSeconds: m.PercentSeconds - earlier.PercentSeconds, Measured: m.Measured - earlier.Measured}
}

// stretch is a stretch of time.
type stretch struct{ from, to time.Time }

func (s stretch) holds(p Point) bool { return !p.From.Before(s.from) && !p.end().After(s.to) }

// part is how much of p lies in s.
func (s stretch) part(p Point) time.Duration {
	from, to := p.From, p.end()
	if s.from.After(from) {
		from = s.from
	}
	if s.to.Before(to) {
		to = s.to
	}
	return max(0, to.Sub(from))
}

// piece is a point of which only a part is in a window.
type piece struct {
	Metric
	least, most time.Duration // that was measured of that part
}

// pieceOf is a point of some length of which at least one and at most another
// length of time is in a window.
func pieceOf(m Metric, length, inner, outer time.Duration) piece {
	p := piece{Metric: m, most: min(m.Measured, outer+single)} // the first of a look may be of the one before
	missing := max(0, length-m.Measured)
	p.least = max(0, inner-missing, time.Duration(float64(m.Least)*float64(inner)))
	p.least = min(p.least, m.Measured)
	if outer <= 0 {
		p.least, p.most = 0, 0
	}
	if inner >= length {
		p.least = m.Measured
	}
	return p
}

// above bounds by how much the part can have been above a threshold, in percent
// seconds. Nothing in it was below Low or above High, and neither was anything
// in the rest.
func (p piece) above(threshold float64) (least, most float64) {
	all, sum := p.Measured.Seconds(), p.PercentSeconds
	low, high := float64(p.Low), float64(p.High)
	at := func(kink float64, bound func(float64) float64) (float64, float64) {
		a, b := bound(p.least.Seconds()), bound(p.most.Seconds())
		lowest, highest := min(a, b), max(a, b)
		if kink > p.least.Seconds() && kink < p.most.Seconds() {
			c := bound(kink)
			lowest, highest = min(lowest, c), max(highest, c)
		}
		return lowest, highest
	}
	kinkLow, kinkHigh := 0.0, 0.0
	if high > low {
		kinkLow, kinkHigh = (high*all-sum)/(high-low), (sum-low*all)/(high-low)
	}
	least, _ = at(kinkLow, func(m float64) float64 { return max(low*m, sum-high*(all-m)) - threshold*m })
	_, most = at(kinkHigh, func(m float64) float64 { return min(high*m, sum-low*(all-m)) - threshold*m })
	return least, most
}
