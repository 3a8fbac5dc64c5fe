package idle

import (
	"iter"
	"math"
	"time"

	"slipway/backend/session"
)

// history is a series as a simulation looks back into it.
type history struct {
	policy session.UsePolicy
	points []Point
	sums   [][]Metric // of each metric, before each point
	edge   time.Duration
}

// moment is one look of a simulation.
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

// looks are the times of a simulation: where a judge looked, as far as that is
// known, and often enough in between.
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

// sights are what was seen at a time at the utmost: what ends the session
// soonest, and what ends it latest.
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

// signals bounds when each of the signals was last seen.
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

// within widens what is known of the signals by what lies within a point.
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

// known bounds whether what goes on inside could be seen at a time.
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

// averages bounds on which side of its threshold each metric was, and whether
// enough was measured.
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

// signal is the last time of one of the signals.
func (p *Point) signal(i int) *time.Time {
	return [signals]*time.Time{&p.Traffic, &p.BusyAt, &p.WorkAt, &p.Input}[i]
}

// unbounded is more than any percentage is.
const unbounded = float32(math.MaxFloat32)

// settle fills in what a point of one look hides, which is nothing, and of a
// longer one that an older version stored, which may be anything.
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

// one says whether p is of one look.
func (p *Point) one() bool { return !p.Many && p.Length <= single }

// average is that of what was measured; 0 where nothing was.
func (m Metric) average() float64 {
	if m.Measured <= 0 {
		return 0
	}
	return m.PercentSeconds / m.Measured.Seconds()
}

// join adds what was measured in an earlier stretch of time.
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
