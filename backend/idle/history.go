package idle

import (
	"iter"
	"math"
	"time"

	"slipway/backend/session"
)

type history struct {
	policy session.UsePolicy
	points []Point
	sums   [][]Metric // of each metric, before each point
	edge   time.Duration
}

type moment struct {
	time  time.Time
	done  int  // how many points had ended by then
	exact bool // it is the end of a point of one look, or now
	under int  // the longer point that it lies in or ends; where it is not exact
}

func newHistory(policy session.UsePolicy, series *Series) *history {
	h := &history{policy: policy}
	if series != nil {
		h.points = series.points
	}
	for _, metric := range metrics {
		sums := make([]Metric, len(h.points)+1)
		for i := range h.points {
			sums[i+1] = *metric.of(&h.points[i])
			sums[i+1].join(sums[i])
		}
		h.sums = append(h.sums, sums)
	}
	// A judge at that time had the start of a long window in a longer point too.
	if window := time.Duration(policy.Window); window/part >= Every {
		h.edge = window/part + Every
	}
	return h
}

// looks are the times of a simulation: where a judge looked, if known, and often enough in between.
func (h *history) looks(since, now time.Time) iter.Seq[moment] {
	return func(yield func(moment) bool) {
		at := since
		for i, p := range h.points {
			if !p.end().After(since) || p.end().After(now) {
				continue
			}
			if p.From.After(at) {
				at = p.From
			}
			for !p.one() && p.end().Sub(at) > stride {
				at = at.Add(stride)
				if !yield(moment{at, i, false, i}) {
					return
				}
			}
			at = p.end()
			if !yield(moment{at, i + 1, p.one(), i}) {
				return
			}
		}
		if at.Before(now) || len(h.points) == 0 {
			yield(moment{now, len(h.points), true, 0})
		}
	}
}

// sights are the extremes of what can have been seen at a time: what ends the session soonest, and what ends it latest.
func (h *history) sights(at moment) (soonest, latest sight) {
	soonest, latest = h.signals(at)
	soonest.known, latest.known = h.known(at)
	soonest.to, latest.to = at.time, at.time
	if at.done > 0 && at.time.Sub(h.points[at.done-1].end()) <= single {
		end := h.points[at.done-1].end()
		soonest.to, latest.to = end, end
	}
	if !at.exact {
		soonest.to = at.time
		latest.to = at.time.Add(-single)
	}
	if h.policy.Window > 0 {
		h.averages(at, &soonest, &latest)
	}
	return soonest, latest
}

// signals bounds when each signal was last seen.
func (h *history) signals(at moment) (soonest, latest sight) {
	before := at.done - 1
	if !at.exact {
		before = at.under - 1
	}
	if before >= 0 {
		soonest.last, latest.last = h.points[before], h.points[before]
	}
	if !at.exact {
		h.within(&soonest.last, &latest.last, h.points[at.under], at.time)
	}
	return soonest, latest
}

// within widens the bounds of the signals by what lies within a point.
func (*history) within(soonest, latest *Point, under Point, at time.Time) {
	latest.Busy, soonest.Busy = under.Busy, under.Busy
	for i := range signals {
		next := *under.signal(i)
		early, late := soonest.signal(i), latest.signal(i)
		if next.After(*late) {
			*late = next
			if next.After(at) {
				*late = at
			}
		}
		if lull := under.Lulls[i]; lull < forever {
			if oldest := at.Add(-lull - single); oldest.After(*early) {
				*early = oldest
			}
		}
		if early.After(*late) {
			*early = *late
		}
	}
}

// known bounds whether the inside of the session could be seen.
func (h *history) known(at moment) (possibly, surely bool) {
	const patience = 4 * Every
	if at.exact {
		for i := at.done - 1; i >= 0 && at.time.Sub(h.points[i].end()) <= patience; i-- {
			p := h.points[i]
			possibly, surely = possibly || p.Seen || p.Known, surely || p.Known
		}
		return possibly, surely
	}
	for i := at.under; i >= 0 && at.time.Sub(h.points[i].end()) <= patience+stride; i-- {
		possibly = possibly || h.points[i].Seen || h.points[i].Known
	}
	surely = h.points[at.under].Known
	return possibly, surely
}

// averages bounds on which side of its threshold each metric was, and whether enough was measured.
func (h *history) averages(at moment, soonest, latest *sight) {
	window := time.Duration(h.policy.Window)
	for m, metric := range metrics {
		threshold := metric.threshold(h.policy)
		if threshold == nil {
			continue
		}
		b := h.bound(m, at, soonest.to, *threshold)
		if b.most <= 0 {
			continue
		}
		average := *threshold
		if estimated := b.sum.average(); b.sum.Measured > 0 {
			average = estimated
		}
		found := session.IdleMetric{Name: metric.name, Average: average, Threshold: *threshold}
		high, low := found, found
		if !b.surelyBelow {
			high.Average = max(average, *threshold)
		}
		if b.possiblyBelow {
			low.Average = min(average, math.Nextafter(*threshold, 0))
		}
		latest.averages = append(latest.averages, high)
		if part := percentOf(b.least, window); part < enough && latest.short == "" {
			latest.short = tooLittle(part, window, metric.name)
		}
		part := percentOf(b.most, window)
		if b.least <= 0 && part < enough {
			continue // perhaps none of it was measured, and then it does not count
		}
		soonest.averages = append(soonest.averages, low)
		if part < enough && soonest.short == "" {
			soonest.short = tooLittle(part, window, metric.name)
		}
	}
}

// The signals of use whose last time a point knows.
const (
	ofTraffic = iota
	ofBusy
	ofWork
	ofInput
	signals
)

// forever is a lull that is not known to have ended.
const forever = time.Duration(math.MaxInt64)

func (p *Point) signal(i int) *time.Time {
	return [signals]*time.Time{&p.Traffic, &p.BusyAt, &p.WorkAt, &p.Input}[i]
}

const unbounded = float32(math.MaxFloat32)

// settle sets what a point hides: nothing in one of one look, anything in a longer one of an older version.
func (p *Point) settle() {
	one := p.one()
	for _, metric := range metrics {
		m := metric.of(p)
		average := m.average()
		switch {
		case one && m.Measured > 0:
			// Rounded outwards, so that the average is never outside of them.
			m.Low, m.High = math.Nextafter32(float32(average), 0), math.Nextafter32(float32(average), unbounded)
			m.Least = float32(min(1, m.Measured.Seconds()/p.Length.Seconds()))
		case float64(m.Low) > average || float64(m.High) < average:
			m.Low, m.High = 0, unbounded
		}
	}
	if p.Lulls != [signals]time.Duration{} {
		return
	}
	p.Seen = p.Known || !one
	for i := range p.Lulls {
		p.Lulls[i] = forever
		if at := *p.signal(i); one && !at.IsZero() {
			p.Lulls[i] = max(0, p.end().Sub(at))
		}
	}
}

func (p *Point) one() bool { return !p.Many && p.Length <= single }

func (m Metric) average() float64 {
	if m.Measured <= 0 {
		return 0
	}
	return m.PercentSeconds / m.Measured.Seconds()
}

func (m *Metric) join(earlier Metric) {
	switch {
	case earlier.Measured <= 0:
	case m.Measured <= 0:
		m.Low, m.High = earlier.Low, earlier.High
	default:
		m.Low, m.High = min(m.Low, earlier.Low), max(m.High, earlier.High)
	}
	m.Least = min(m.Least, earlier.Least)
	m.PercentSeconds += earlier.PercentSeconds
	m.Measured += earlier.Measured
}

type bounds struct {
	sum                        Metric // as if each point were the same throughout
	least, most                time.Duration
	surelyBelow, possiblyBelow bool
}

// bound bounds a metric in the window that ends at a time. The window of a judge at that time began and ended with
// points that existed then, so what lies around both ends may have been in it or not.
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

// add counts a part of a point that was in the window, and returns its use in percent seconds.
func (b *bounds) add(m Metric, share float64) float64 {
	measured := time.Duration(float64(m.Measured) * share)
	b.sum.PercentSeconds += m.PercentSeconds * share
	b.sum.Measured += measured
	b.least, b.most = b.least+measured, b.most+measured
	return m.PercentSeconds * share
}

func (m Metric) less(earlier Metric) Metric {
	return Metric{PercentSeconds: m.PercentSeconds - earlier.PercentSeconds, Measured: m.Measured - earlier.Measured}
}

type stretch struct{ from, to time.Time }

func (s stretch) holds(p Point) bool { return !p.From.Before(s.from) && !p.end().After(s.to) }

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

// pieceOf is a point of which between inner and outer is in a window.
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

// above bounds by how much the part can have been above a threshold, in percent seconds.
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
