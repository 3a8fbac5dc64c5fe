package idle

import (
	"math"
	"time"
)

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
