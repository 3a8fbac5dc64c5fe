package scheduler

import (
	"fmt"
	"math"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

type reservation struct {
	head    Request
	at      *time.Time        // when enough is certainly free; nil: unknown
	latest  session.Phrase    // the same in words, up to the next minute
	freed   freed             // until then
	after   *room             // what is left beside the head then; only where at is set
	devices map[gpu.UUID]bool // that the head will have then; only where at is set
	beside  *room             // what the head cannot use now; only where at is not set
	needs   session.Phrase    // what it asks for
	shut    bool              // the head waits for devices, so none are allocated meanwhile
}

type ending struct {
	at      time.Time
	free    func(*room)
	promise *Promise // nil: a device settles
}

// reserve finds when the head can certainly start, and with what.
func (p *planner) reserve(head Request) *reservation {
	v := &reservation{head: head, needs: head.needs(), freed: freed{lacks: p.room.lacks(head)}}
	r := p.room.clone()
	for _, e := range p.endings(r) {
		e.free(r)
		if e.promise != nil {
			v.freed.add(*e.promise)
		}
		grants := r.find(head, nil)
		if grants == nil || !r.take(head, grants, e.at) {
			continue
		}
		at := e.at
		v.at, v.after, v.devices = &at, r, map[gpu.UUID]bool{}
		v.latest = session.Moment("at", at.Add(time.Minute-1).Truncate(time.Minute))
		for _, k := range grants {
			for _, g := range k.GPUs {
				v.devices[g.Device] = true
			}
		}
		return v
	}
	v.keep(p.room.clone(), p.now)
	return v
}

func (p *planner) endings(r *room) []ending {
	var list []ending
	for _, promise := range r.promised {
		if promise.Ends != nil {
			list = append(list, ending{later(*promise.Ends, p.now), func(r *room) { r.release(promise) }, &promise})
		}
	}
	for _, m := range r.machine.Measured {
		if m.Returned > 0 {
			list = append(list, ending{later(m.Settles, p.now), func(r *room) { r.settle(m) }, nil})
		}
	}
	slices.SortStableFunc(list, func(a, b ending) int { return a.at.Compare(b.at) })
	return list
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// keep takes out of r everything that the head could use.
func (v *reservation) keep(r *room, now time.Time) {
	v.beside = r
	devices, ok := r.devices(v.head, nil)
	if ok && len(devices) > 0 {
		grants := make([]session.Grants, len(devices))
		for i := range grants {
			grants[i].GPUs = devices[i]
		}
		ok = r.take(v.head, grants, now)
	}
	v.shut = !ok
	r.free = r.free[min(len(r.free), v.head.cpus()):]
	r.memory -= min(max(0, r.memory), v.head.memory())
}

// goAhead finds what q can be allocated although the head waits, and explains why that takes nothing from the head.
func (p *planner) goAhead(q Request) ([]session.Grants, string) {
	v := p.head
	if v.at == nil {
		return p.goBeside(q)
	}
	grants := p.room.find(q, nil)
	if grants == nil {
		return nil, ""
	}
	if q.Timeout > 0 && !p.now.Add(q.Timeout).After(*v.at) {
		return grants, fmt.Sprintf("It ends before %s can start, which is first in line.", p.headFor(q).English())
	}
	why := fmt.Sprintf("It fits beside %s, which is first in line and waits for more.", p.headFor(q).English())
	if v.take(q, grants, p.now) {
		return grants, why
	}
	if q.GPU.IsZero() {
		return nil, ""
	}
	if grants = p.room.find(q, v.devices); grants != nil && v.take(q, grants, p.now) {
		return grants, why
	}
	return nil, ""
}

// take allocates grants to q in what is left besides the started head; false if they are not free. Any CPUs will do.
func (v *reservation) take(q Request, grants []session.Grants, now time.Time) bool {
	r := v.after
	if q.cpus() > len(r.free) || q.memory() > r.memory {
		return false
	}
	total := Placement{Kernels: grants}.Total()
	for _, g := range total.GPUs {
		memory := memoryOn(total.GPUs, g.Device)
		if q.GPU.Memory == 0 {
			memory -= r.tolerance(memory)
		}
		if claim, measured := r.claims[g.Device]; measured && claim < memory {
			return false
		}
	}
	total.CPUs = slices.Clone(r.free[:q.cpus()])
	return r.take(q, []session.Grants{total}, now)
}

// goBeside is goAhead if it is unknown when the head can start.
func (p *planner) goBeside(q Request) ([]session.Grants, string) {
	v := p.head
	if q.Timeout > 0 && q.Timeout <= Short {
		if grants := p.room.find(q, nil); grants != nil {
			v.beside.lose(q, grants)
			return grants,
				fmt.Sprintf("It ends within %s, and when %s, which is first in line, can start is unknown.",
					session.Duration(Short), p.headFor(q).English())
		}
		return nil, ""
	}
	if v.shut && !q.GPU.IsZero() {
		return nil, ""
	}
	grants := v.beside.find(q, nil)
	if grants == nil {
		return nil, ""
	}
	for i := range grants {
		// What is left beside the head counts; which CPUs it is does not matter.
		grants[i].CPUs = p.room.free[i*q.CPU : (i+1)*q.CPU]
		grants[i].CPUs = slices.Sorted(slices.Values(grants[i].CPUs))
	}
	v.beside.lose(q, grants)
	return grants, fmt.Sprintf("It takes nothing that %s could use, which is first in line.", p.headFor(q).English())
}

// lose takes out of r, which lacks the head's part already, what q was allocated. The devices may be those of the head,
// because the session is short. They are closed to all others then.
func (r *room) lose(q Request, grants []session.Grants) {
	total := Placement{Kernels: grants}.Total()
	if len(total.GPUs) > 0 {
		r.ledger.Adopt(string(q.Session), total.GPUs)
		subtract(r.claims, total.GPUs)
	}
	r.free = r.free[min(len(r.free), q.cpus()):]
	r.memory = max(0, r.memory-q.memory())
}

// Run is how long one session ran.
type Run struct {
	Kinds  []string // most specific first
	Length time.Duration
}

// History is how long sessions ran before, by kind. It does not change.
type History struct {
	lengths map[string][]time.Duration // sorted
}

const enough = 5

// NewHistory makes a history of runs.
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

// Length estimates how long a session of some kinds runs that has run for so long already: the median of those that ran
// longer, and how far four in five of them were from it. runs is how many those are, 0 for fewer than five.
func (h *History) Length(kinds []string, already time.Duration) (length, margin time.Duration, runs int) {
	if h == nil {
		return 0, 0, 0
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
		return length, off[(len(off)*4-1)/5], len(rest)
	}
	return 0, 0, 0
}

type foreseen struct {
	promise Promise
	at      time.Time
	margin  time.Duration
	runs    int
}

// estimate gives the first sessions in line an estimated start, if the history tells when enough ends.
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
	now, margin, runs, given := p.now, time.Duration(0), math.MaxInt, 0
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
		by := freed{}
		if grants == nil {
			by.lacks = r.lacks(q)
		}
		for ; grants == nil; grants = r.find(q, nil) {
			if len(ends) == 0 {
				return
			}
			slices.SortStableFunc(ends, func(a, b foreseen) int { return a.at.Compare(b.at) })
			r.release(ends[0].promise)
			by.add(ends[0].promise)
			now, margin, runs = later(ends[0].at, now), max(margin, ends[0].margin), min(runs, ends[0].runs)
			ends = ends[1:]
		}
		if !r.take(q, grants, now) {
			return
		}
		if now.After(p.now) && (q.Session != p.head.head.Session || p.head.at == nil || now.Before(*p.head.at)) {
			w := d.Wait
			w.Start, w.Margin = new(now.Truncate(every)), session.Duration((margin + every/2).Truncate(every))
			at, around := session.Moment("at", *w.Start), max(w.Margin, session.Duration(every)).Words()
			w.Estimate = new(count("estimateAbout", runs, at, as("margin", plain(around))))
			p.room.tell(w, q, by, "freesAbout", at)
			p.lookAgain(p.now.Add(every))
		}
		if f, known := p.foresee(r.promised[len(r.promised)-1], &now, now); known {
			f.margin, f.runs = f.margin+margin, min(f.runs, runs)
			ends = append(ends, f)
		}
	}
}

func (p *planner) foresee(promise Promise, since *time.Time, now time.Time) (foreseen, bool) {
	began := now
	if since != nil {
		began = *since
	}
	length, margin, runs := p.snapshot.History.Length(promise.Kinds, max(0, now.Sub(began)))
	if runs == 0 {
		return foreseen{}, false
	}
	f := foreseen{promise: promise, at: began.Add(length), margin: margin, runs: runs}
	if promise.Ends != nil && promise.Ends.Before(f.at) {
		f.at = *promise.Ends
	}
	return f, true
}
