package idle

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"slipway/backend/session"
)

const (
	// A point of several measurements is at most this part of its age long, so that a few hundred points judge windows
	// of any length equally well, but never longer than a slot. Nothing older than keep is kept.
	part = 64
	slot = 5 * time.Minute
	// single is the longest that a point of one look is.
	single = 2 * Every
	keep   = 15 * 24 * time.Hour
	// enough is the part of a window, in percent, that must have been measured.
	enough = 90
)

// Metric is the use of one resource, in percent of what was granted, times the time in which it was measured.
type Metric struct {
	PercentSeconds float64       `json:"percentSeconds"`
	Measured       time.Duration `json:"measured"`

	// What is hidden in a point of several looks: the lowest and the highest average of one, and the smallest part of
	// one that was measured.
	Low   float32 `json:"low,omitempty"`
	High  float32 `json:"high,omitempty"`
	Least float32 `json:"least,omitempty"`
}

// Add counts a measurement over a length of time.
func (m *Metric) Add(percent float64, length time.Duration) {
	m.PercentSeconds += percent * length.Seconds()
	m.Measured += length
}

// Point is what was measured of a session in one stretch of time.
type Point struct {
	From   time.Time     `json:"from"`
	Length time.Duration `json:"length"`

	CPU    Metric `json:"cpu,omitzero"`
	Memory Metric `json:"memory,omitzero"`
	GPU    Metric `json:"gpu,omitzero"`
	VRAM   Metric `json:"vram,omitzero"`

	Known   bool      `json:"known,omitempty"`  // the inside could be seen
	Busy    string    `json:"busy,omitempty"`   // what was last seen at work: "python train.py in a terminal"
	BusyAt  time.Time `json:"busyAt,omitzero"`  // when it was; zero: never
	WorkAt  time.Time `json:"workAt,omitzero"`  // last seen at work on a device; zero: never
	Traffic time.Time `json:"traffic,omitzero"` // last through a terminal or an app; zero: never
	Input   time.Time `json:"input,omitzero"`   // last of a person to a terminal; zero: never

	// What is hidden in a point of several looks: how long each of the signals had been quiet at most at the end of
	// one, and whether any could see inside.
	Lulls [signals]time.Duration `json:"lulls,omitzero"`
	Seen  bool                   `json:"seen,omitempty"`
	Many  bool                   `json:"many,omitempty"` // it is of several looks
}

func (p Point) end() time.Time { return p.From.Add(p.Length) }

func (p Point) join(next Point) Point {
	for _, metric := range metrics {
		metric.of(&next).join(*metric.of(&p))
	}
	for i, lull := range p.Lulls {
		next.Lulls[i] = max(next.Lulls[i], lull)
	}
	gap := next.From.Sub(p.end()) > single
	next.Length, next.From, next.Many = next.end().Sub(p.From), p.From, true
	next.Known, next.Seen = p.Known && next.Known && !gap, p.Seen || next.Seen
	return next
}

// Series is what was measured of one session, in the order of time. It is not safe for concurrent use.
type Series struct {
	points []Point
	due    int // as many points are merged next
}

// Add puts a point at the end. Points must not overlap.
func (s *Series) Add(p Point) {
	p.settle()
	if s.points = append(s.points, p); len(s.points) >= s.due {
		s.merge(p.From)
		s.due = len(s.points) + part/4
	}
	for len(s.points) > 0 && p.From.Sub(s.points[0].From) > keep {
		s.points = s.points[1:]
	}
}

func (s *Series) merge(now time.Time) {
	// What is older than that is as long as it may be.
	const settled = (part + 4) * slot
	from := now.Add(-settled)
	first := s.beginBefore(from)
	kept := s.points[:first]
	for i := first; i < len(s.points); i++ {
		p := &s.points[i]
		if n, longest := len(kept), min(slot, now.Sub(p.end())/part); n > 0 {
			last := &kept[n-1]
			if p.From.Sub(last.end()) <= single && p.end().Sub(last.From) <= longest {
				*last = last.join(*p)
				continue
			}
		}
		kept = append(kept, *p)
	}
	clear(s.points[len(kept):])
	s.points = kept
}

func (s *Series) beginBefore(t time.Time) int {
	return sort.Search(len(s.points), func(i int) bool { return !s.points[i].From.Before(t) })
}

// SlotOf is the start of the five minutes that a time lies in.
func SlotOf(t time.Time) time.Time { return t.Truncate(slot) }

// Slots is s from the slot of a time on, with one point for each slot: what is stored for a restart. Added to another
// series in order they give the same averages.
func (s *Series) Slots(from time.Time) []Point {
	var slots []Point
	for _, p := range s.points[s.beginBefore(SlotOf(from)):] {
		if n := len(slots); n > 0 && SlotOf(slots[n-1].From).Equal(SlotOf(p.From)) {
			slots[n-1] = slots[n-1].join(p)
			continue
		}
		slots = append(slots, p)
	}
	return slots
}

// Last is the newest point, or the zero point.
func (s *Series) Last() Point {
	if len(s.points) == 0 {
		return Point{}
	}
	return s.points[len(s.points)-1]
}

// Reach is how long points are kept. Nothing older is judged.
const Reach = keep

// Shift moves everything by d: the wall clock was set, or the machine slept, which is not a time without use.
func (s *Series) Shift(d time.Duration) {
	for i := range s.points {
		p := &s.points[i]
		p.From = p.From.Add(d)
		Move(d, &p.BusyAt, &p.WorkAt, &p.Traffic, &p.Input)
	}
}

// Move moves times by d, except those that are zero.
func Move(d time.Duration, times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
}

// Since is the start of the oldest point; zero if there is none.
func (s *Series) Since() time.Time {
	if s == nil || len(s.points) == 0 {
		return time.Time{}
	}
	return s.points[0].From
}

func (s *Series) until(t time.Time) []Point {
	if s == nil {
		return nil
	}
	return s.points[:endedBy(s.points, t)]
}

// endedBy is how many points had ended by a time.
func endedBy(points []Point, t time.Time) int {
	return sort.Search(len(points), func(i int) bool { return points[i].end().After(t) })
}

// latest is the newest point at a time; false if the session was hidden for longer than a reconnection takes.
func (s *Series) latest(now time.Time) (Point, bool) {
	points := s.until(now)
	if len(points) == 0 {
		return Point{}, false
	}
	if len(points) < len(s.points) {
		// A look back into a long point: what is in it was known all along.
		if under := s.points[len(points)]; under.Known && under.From.Before(now) {
			return points[len(points)-1], true
		}
	}
	for _, p := range slices.Backward(points) {
		if now.Sub(p.end()) > 4*Every {
			break
		}
		if p.Known {
			return points[len(points)-1], true
		}
	}
	return points[len(points)-1], false
}

var metrics = []struct {
	name      string
	threshold func(session.UsePolicy) *float64
	of        func(*Point) *Metric
}{
	{"cpu", func(p session.UsePolicy) *float64 { return p.CPU }, func(p *Point) *Metric { return &p.CPU }},
	{"memory", func(p session.UsePolicy) *float64 { return p.Memory }, func(p *Point) *Metric { return &p.Memory }},
	{"gpu", func(p session.UsePolicy) *float64 { return p.GPU }, func(p *Point) *Metric { return &p.GPU }},
	{"vram", func(p session.UsePolicy) *float64 { return p.VRAM }, func(p *Point) *Metric { return &p.VRAM }},
}

var names = map[string]string{"cpu": "CPU", "memory": "memory", "gpu": "GPU", "vram": "GPU memory"}

// averages are the averages of the metrics of policy that were measured at all between two times, at the later of which
// a point ends. short says which was measured for too little of the time.
func (s *Series) averages(policy session.UsePolicy, from, to time.Time) (averages []session.IdleMetric, short string) {
	points := s.until(to)
	points = points[endedBy(points, from):]
	for _, metric := range metrics {
		threshold := metric.threshold(policy)
		if threshold == nil {
			continue
		}
		var sum Metric
		for i := range points {
			m := metric.of(&points[i])
			part := points[i].after(from)
			sum.PercentSeconds += m.PercentSeconds * part
			sum.Measured += time.Duration(float64(m.Measured) * part)
		}
		if sum.Measured <= 0 {
			continue
		}
		averages = append(averages, session.IdleMetric{Name: metric.name,
			Average: sum.PercentSeconds / sum.Measured.Seconds(), Threshold: *threshold})
		if part := percentOf(sum.Measured, to.Sub(from)); part < enough && short == "" {
			short = tooLittle(part, to.Sub(from), metric.name)
		}
	}
	return averages, short
}

func percentOf(measured, window time.Duration) int64 { return int64(measured) * 100 / int64(window) }

func tooLittle(part int64, window time.Duration, name string) string {
	return fmt.Sprintf("Only %d %% of the last %s of %s were measured; %d %% are needed for a judgement.",
		part, spell(window), names[name], enough)
}

// judgedTo is the end of the window that is judged at a time: of the newest point, if it is recent.
func (s *Series) judgedTo(now time.Time) time.Time {
	if points := s.until(now); len(points) > 0 && now.Sub(points[len(points)-1].end()) <= single {
		return points[len(points)-1].end()
	}
	return now
}

func (p Point) after(t time.Time) float64 {
	if p.Length <= 0 || !p.From.Before(t) {
		return 1
	}
	return float64(p.end().Sub(t)) / float64(p.Length)
}

func judged(p session.UsePolicy) bool {
	return p.CPU != nil || p.Memory != nil || p.GPU != nil || p.VRAM != nil
}

// Clone returns an independent copy.
func (s *Series) Clone() Series { return Series{points: slices.Clone(s.points)} }
