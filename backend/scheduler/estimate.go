package scheduler

import (
	"slices"
	"time"

	"slipway/backend/session"
)

// Run is how long one session ran.
type Run struct {
	Kinds  []string // most specific first
	Length time.Duration
}

// History is how long sessions ran before, by kind. It is not changed after it was made.
type History struct {
	lengths map[string][]time.Duration // sorted
}

// enough is how many sessions of a kind it takes to tell how long one runs.
const enough = 5

// NewHistory keeps what is known of runs.
func NewHistory(runs []Run) *History {
	h := &History{lengths: map[string][]time.Duration{}}
	for _, r := range runs {
		for _, kind := range r.Kinds {
			h.lengths[kind] = append(h.lengths[kind], r.Length)
		}
	}
	for _, lengths := range h.lengths {
		slices.Sort(lengths)
	}
	return h
}

// Length says how long a session of some kinds runs that has run for so long already: the median of those that ran
// longer, and how far four in five of them were from it. It reports false where fewer than five are known.
func (h *History) Length(kinds []string, already time.Duration) (length, margin time.Duration, known bool) {
	if h == nil {
		return 0, 0, false
	}
	for _, kind := range kinds {
		lengths := h.lengths[kind]
		first, _ := slices.BinarySearch(lengths, already+1)
		rest := lengths[first:]
		if len(rest) < enough {
			continue
		}
		length = rest[len(rest)/2]
		off := make([]time.Duration, len(rest))
		for i, l := range rest {
			off[i] = (l - length).Abs()
		}
		slices.Sort(off)
		return length, off[(len(off)*4-1)/5], true
	}
	return 0, 0, false
}

// foreseen is when a promise is expected to end.
type foreseen struct {
	promise Promise
	at      time.Time
	margin  time.Duration
}

// estimate gives the first of those in line an estimated start, as far as own history tells when enough ends.
func (p *planner) estimate(line []*Request) {
	const most, every = 8, time.Minute
	if p.head == nil || p.snapshot.History == nil {
		return
	}
	r := p.room.clone()
	var ends []foreseen
	for _, promise := range r.promised {
		if f, known := p.foresee(promise, promise.Since, p.now); known {
			ends = append(ends, f)
		}
	}
	now, margin, given := p.now, time.Duration(0), 0
	for _, request := range line {
		q := *request
		d := p.decisions[q.Session]
		if d.Wait == nil || d.Wait.Code == session.CodeWaitLimit {
			continue
		}
		if given++; given > most {
			return
		}
		grants := r.find(q, nil)
		for ; grants == nil; grants = r.find(q, nil) {
			if len(ends) == 0 {
				return
			}
			slices.SortStableFunc(ends, func(a, b foreseen) int { return a.at.Compare(b.at) })
			r.release(ends[0].promise)
			now, margin = later(ends[0].at, now), max(margin, ends[0].margin)
			ends = ends[1:]
		}
		if !r.take(q, grants, now) {
			return
		}
		if now.After(p.now) {
			d.Wait.Start, d.Wait.Margin = new(now.Truncate(every)), session.Duration((margin + every/2).Truncate(every))
			p.lookAgain(p.now.Add(every))
		}
		if f, known := p.foresee(r.promised[len(r.promised)-1], &now, now); known {
			f.margin += margin
			ends = append(ends, f)
		}
	}
}

// foresee says when a session is expected to end that runs since a time.
func (p *planner) foresee(promise Promise, since *time.Time, now time.Time) (foreseen, bool) {
	began := now
	if since != nil {
		began = *since
	}
	length, margin, known := p.snapshot.History.Length(promise.Kinds, max(0, now.Sub(began)))
	if !known {
		return foreseen{}, false
	}
	f := foreseen{promise: promise, at: began.Add(length), margin: margin}
	if promise.Ends != nil && promise.Ends.Before(f.at) {
		f.at = *promise.Ends
	}
	return f, true
}
