package gpu

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Span is how long a bucket is.
type Span string

// The spans. Minutes and hours are pruned, days are kept. A day is one of the
// calendar that the wall clock shows.
const (
	SpanMinute Span = "minute"
	SpanHour   Span = "hour"
	SpanDay    Span = "day"
)

// How long buckets are kept.
const (
	MinutesKept = 26 * time.Hour
	HoursKept   = 90 * 24 * time.Hour
)

// maxBucketRows bounds an open bucket, because it is written whole.
const maxBucketRows = 256

// Bucket is what was counted while the wall clock stood in one span. Span,
// Start and Part are its key; when the clock was set back, or a bucket is
// full, there are several of one start, and whoever reads adds them up.
type Bucket struct {
	Span  Span        `json:"span"`
	Start time.Time   `json:"start"` // on the wall clock
	Part  int64       `json:"part"`
	Rows  []BucketRow `json:"rows"`
}

// BucketRow is what one session, or bucket that is no session, added to its
// counters in that time.
type BucketRow struct {
	Session  string   `json:"session"`
	Device   UUID     `json:"device"`
	Counters Counters `json:"counters"`
}

func (b Bucket) clone() Bucket {
	b.Rows = slices.Clone(b.Rows)
	return b
}

func (b *Bucket) add(session string, device UUID, d Counters) {
	for i := range b.Rows {
		if b.Rows[i].Session == session && b.Rows[i].Device == device {
			b.Rows[i].Counters.Add(d)
			return
		}
	}
	b.Rows = append(b.Rows, BucketRow{session, device, d})
}

// Spans are the lengths of buckets, the shortest first.
var Spans = []Span{SpanMinute, SpanHour, SpanDay}

// StartOf is the start of the span that wall lies in.
func (s Span) StartOf(wall time.Time) time.Time {
	switch s {
	case SpanMinute:
		return wall.Truncate(time.Minute)
	case SpanHour:
		return wall.Truncate(time.Hour)
	}
	return time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, wall.Location())
}

// turn closes the buckets that wall is not in and opens those that it is in.
func (a *Accounts) turn(wall time.Time) {
	for _, span := range Spans {
		start := span.StartOf(wall)
		i := slices.IndexFunc(a.state.Buckets, func(b Bucket) bool { return b.Span == span })
		if i >= 0 && a.state.Buckets[i].Start.Equal(start) && len(a.state.Buckets[i].Rows) < maxBucketRows {
			continue
		}
		if i >= 0 {
			if len(a.state.Buckets[i].Rows) > 0 {
				a.done = append(a.done, a.state.Buckets[i])
			}
			a.state.Buckets = slices.Delete(a.state.Buckets, i, i+1)
		}
		a.state.Parts++
		a.state.Buckets = append(a.state.Buckets, Bucket{Span: span, Start: start, Part: a.state.Parts})
	}
}

// steady moves the clock for pruning. It never runs ahead of the time that
// really passed, so that a wall clock set to next year deletes nothing.
func (a *Accounts) steady(from, to Moment) {
	wall := to.Wall
	switch {
	case a.state.Steady.IsZero():
		a.state.Steady = wall
	case from.BootID == to.BootID:
		limit := a.state.Steady.Add(to.Boot - from.Boot + time.Minute)
		a.state.Steady = earlier(wall, limit)
	default:
		a.state.Steady = earlier(wall, a.state.Steady.Add(31*24*time.Hour))
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Checkpoint is what to store now, all in one transaction: the state as one
// value, each row and each bucket under its key (session, device, part and
// span, start, part) in place of what is there, and everything pruned that is
// older than the two times. Rows and buckets are complete, so that storing one
// twice changes nothing.
type Checkpoint struct {
	State        State
	Rows         []Row
	Buckets      []Bucket
	PruneMinutes time.Time // minute buckets that start before it go
	PruneHours   time.Time // hour buckets that start before it go

	closed, done int
	written      map[*Row]Row // the open rows as they are in Rows
}

// Checkpoint collects what changed since the last one that was committed.
func (a *Accounts) Checkpoint() Checkpoint {
	c := Checkpoint{
		State: a.state.clone(), Rows: slices.Clone(a.closed), closed: len(a.closed), done: len(a.done),
		PruneMinutes: a.state.Steady.Add(-MinutesKept), PruneHours: a.state.Steady.Add(-HoursKept),
		written: map[*Row]Row{},
	}
	for r := range a.dirty {
		c.Rows = append(c.Rows, *r)
		c.written[r] = *r
	}
	slices.SortFunc(c.Rows, func(x, y Row) int { return cmp.Compare(x.Part, y.Part) })
	for _, b := range slices.Concat(a.done, a.state.Buckets) {
		if len(b.Rows) > 0 {
			c.Buckets = append(c.Buckets, b.clone())
		}
	}
	return c
}

// Committed tells that c was stored. What changed since then is in the next
// one.
func (a *Accounts) Committed(c Checkpoint) {
	maps.DeleteFunc(a.dirty, func(r *Row, _ bool) bool { return c.written[r] == *r })
	a.closed = slices.Delete(a.closed, 0, c.closed)
	a.done = slices.Delete(a.done, 0, c.done)
}

// close moves the rows of ended sessions from the state to what is stored and
// dropped.
func (a *Accounts) close() {
	running := map[string]bool{Others: true, Idle: true, Unattributed: true}
	for _, h := range a.state.Holders {
		running[h.Holder.Session] = true
	}
	a.state.Rows = slices.DeleteFunc(a.state.Rows, func(r *Row) bool {
		if running[r.Session] {
			return false
		}
		if r.Waits++; r.Weight > 0 && r.Waits < maxWaits {
			return false
		}
		a.closed = append(a.closed, *r)
		a.device(r.Device).Closed.Add(r.Counters)
		delete(a.rows, rowKey{r.Session, r.Device})
		delete(a.dirty, r)
		return true
	})
}
