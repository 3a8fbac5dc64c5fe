package serving

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// box is one session of the simulated machine, and what only the machine knows.
type box struct {
	id       session.ID
	of       *hosted
	revision int
	attempt  int
	visible  time.Time // when a snapshot shows it first
	placed   time.Time // when it was granted its memory; zero: queued
	runs     time.Time // when it is RUNNING
	ready    time.Time // when it passes checks; zero: never
	dies     time.Time // by itself; zero: never
	stops    time.Time // when it ends after SIGTERM; zero: not asked
	end      *End
	hung     bool
	refuses  bool
	requests []time.Time // when each ends
	drained  time.Time   // when the router took it out first
	served   bool
	out      time.Time // since when the agent knows it as not healthy; zero: it is
}

func (b *box) passes(now time.Time) bool {
	return !b.hung && !b.refuses && !b.ready.IsZero() && !now.Before(b.ready)
}

// hosted is one service on the simulated machine.
type hosted struct {
	record   Record
	settings Settings
	need     gpu.Bytes
	bad      map[int]string // how a revision is bad
	latest   int
	waiting  int
	last     time.Time
	failures int // that the machine saw since a person did something
	state    State
}

// world plays a machine, its agent and people against [Plan].
type world struct {
	r        *rand.Rand
	now      time.Time
	free     gpu.Bytes
	services []*hosted
	boxes    []*box
	memory   map[session.ID]*Replica // what the agent knows; a crash loses it
	faults   bool
	crashes  int
	plans    int
	wrong    []string
}

func (w *world) errorf(format string, values ...any) {
	w.wrong = append(w.wrong, w.now.Sub(noon).String()+": "+fmt.Sprintf(format, values...))
}

var quickHealth = session.Health{Interval: sec(2), MaxRetries: 3, MaxWaitTime: sec(1), InitialDelay: sec(8)}

func newWorld(seed uint64, services int, memory gpu.Bytes) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 7)), now: noon, free: memory, memory: map[session.ID]*Replica{},
		faults: true}
	for i := range services {
		h := &hosted{record: New(ID(fmt.Sprint("id", i)), fmt.Sprint("service", i)), bad: map[int]string{}, latest: 1,
			need: gpu.Bytes(1+w.r.IntN(2)) * gpu.GiB, settings: Settings{Replicas: 1 + w.r.IntN(3), Grace: sec(10)}}
		w.services = append(w.services, h)
	}
	return w
}

func (w *world) chance(n int) bool { return w.r.IntN(n) == 0 }

func (w *world) seconds(from, to int) time.Duration {
	return time.Duration(from)*time.Second + time.Duration(w.r.IntN((to-from)*1000+1))*time.Millisecond
}

// advance moves the machine to the present.
func (w *world) advance() {
	for _, b := range w.boxes {
		if b.end != nil {
			continue
		}
		b.requests = slices.DeleteFunc(b.requests, func(ends time.Time) bool {
			done := !b.hung && !w.now.Before(ends)
			if done {
				b.of.last = w.now
			}
			return done
		})
		switch {
		case !b.stops.IsZero() && !w.now.Before(b.stops):
			w.finish(b, End{At: w.now, Reason: session.ReasonSelf})
		case b.placed.IsZero() && w.free >= b.of.need:
			w.free -= b.of.need
			b.placed, b.runs = w.now, w.now.Add(w.seconds(0, 3))
			w.fate(b)
		case !b.dies.IsZero() && !w.now.Before(b.dies):
			b.of.failures++
			w.finish(b, End{At: w.now, Reason: session.ReasonTaskFailed,
				Said: session.Phrase{Text: "The process exited with code 1."}})
		}
	}
}

// fate decides how a session that was placed will do.
func (w *world) fate(b *box) {
	b.ready = b.runs.Add(w.seconds(0, 4))
	switch b.of.bad[b.revision] {
	case "crashes":
		b.dies, b.ready = b.runs.Add(w.seconds(0, 3)), time.Time{}
	case "never healthy":
		b.ready = time.Time{}
	case "dies later":
		b.dies = b.ready.Add(w.seconds(1, 6))
	}
}

func (w *world) finish(b *box, end End) {
	b.end = &end
	if !b.placed.IsZero() {
		w.free += b.of.need
	}
	if b.requests != nil {
		b.requests = nil
	}
}

// misfortune breaks something.
func (w *world) misfortune() {
	for _, b := range w.boxes {
		if b.end != nil || b.runs.IsZero() || w.now.Before(b.runs) || !w.chance(60) {
			continue
		}
		switch w.r.IntN(4) {
		case 0:
			b.dies = w.now
		case 1:
			b.hung = true
		case 2:
			b.refuses = !b.refuses
		case 3:
			b.hung = false
		}
	}
}

// people do what people do.
func (w *world) people() {
	for _, h := range w.services {
		if !w.chance(25) {
			continue
		}
		switch w.r.IntN(8) {
		case 0, 1, 2:
			h.latest++
			h.bad[h.latest] = []string{"", "", "crashes", "never healthy", "dies later"}[w.r.IntN(5)]
			h.record, h.failures = h.record.Update(h.latest), 0
		case 3:
			if n := 1 + w.r.IntN(4); n != h.settings.Replicas {
				h.settings.Replicas, h.failures = n, 0
			}
		case 4:
			h.record = h.record.Stop()
		case 5, 6:
			h.record, h.failures = h.record.Start(w.now), 0
		case 7:
			h.record, h.failures = h.record.TryAgain(), 0
		}
	}
}

// requests arrive and go to the replicas that the router knows as healthy.
func (w *world) requests(every int) {
	for _, h := range w.services {
		if every > 0 && w.chance(every) {
			h.waiting++
			h.last = w.now
		}
		if h.waiting > 0 && w.chance(20) { // a client leaves
			h.waiting--
			h.last = w.now
		}
	}
	for _, b := range w.boxes {
		r := w.memory[b.id]
		if b.end == nil && r != nil && r.Phase == Healthy && b.of.waiting > 0 {
			b.requests = append(b.requests, w.now.Add(w.seconds(0, 15)))
			b.of.waiting--
			b.of.last = w.now
			if !b.hung {
				r.Checks.Moved = w.now
			}
		}
	}
}

// look is what the agent does between plans: it sees sessions and checks them.
func (w *world) look() {
	for _, b := range w.boxes {
		if b.visible.After(w.now) {
			continue
		}
		r := w.memory[b.id]
		if r == nil {
			r = &Replica{ID: b.id, Revision: b.revision, Attempt: b.attempt, Phase: Waiting, Since: w.now,
				Health: quickHealth}
			w.memory[b.id] = r
		}
		r.Queued, r.Outstanding, r.Terminating = b.placed.IsZero(), len(b.requests), !b.stops.IsZero()
		if r.Memory = b.of.need; r.Queued {
			r.Memory = 0
		}
		if r.Phase == Waiting && !b.placed.IsZero() && !w.now.Before(b.runs) {
			*r = r.Run(b.runs, w.now)
		}
		if b.end != nil {
			r.Phase, r.End = Ended, b.end
			continue
		}
		if slices.ContainsFunc(b.of.record.Members,
			func(m Member) bool { return m.Attempt == b.attempt && m.leaves() }) && r.Phase != Waiting {
			r.Phase = Draining
		}
		if due := r.NextCheck(); !due.IsZero() && !w.now.Before(due) {
			p := Probe{Asked: w.now, Refused: b.refuses || b.ready.IsZero()}
			if b.passes(w.now) {
				p.Status = 200
			}
			*r = r.Judge(p, w.now)
			b.served = b.served || r.Phase == Healthy
		}
		if r.Phase == Healthy {
			b.out = time.Time{}
		} else if b.out.IsZero() {
			b.out = w.now
		}
	}
}

func (w *world) snapshot() (s Snapshot) {
	for _, h := range w.services {
		one := Service{Record: h.record, Settings: h.settings, Traffic: Traffic{Waiting: h.waiting, Last: h.last}}
		one.Room = w.free >= h.need
		one.Lacks = max(0, h.need-w.free)
		for _, b := range w.boxes {
			r := w.memory[b.id]
			if b.of != h || r == nil {
				continue
			}
			known := slices.ContainsFunc(h.record.Members, func(m Member) bool { return m.Attempt == b.attempt })
			if r.Phase != Ended || known {
				one.Replicas = append(one.Replicas, *r)
			}
		}
		s.Services = append(s.Services, one)
	}
	return s
}

// store keeps the records of a decision.
func (w *world) store(d Decision) {
	for i, o := range d.Services {
		w.services[i].record, w.services[i].state = o.Record, o.State
	}
}

func (w *world) box(id ID, attempt int) *box {
	at := slices.IndexFunc(w.boxes, func(b *box) bool { return b.of.record.ID == id && b.attempt == attempt })
	if at < 0 {
		return nil
	}
	return w.boxes[at]
}

// carry does what was decided, or dies on the way.
func (w *world) carry(d Decision) {
	dies := func() bool { return w.faults && w.chance(40) }
	for _, a := range d.Drains {
		b := w.box(a.Service, a.Attempt)
		if b.drained.IsZero() {
			b.drained = w.now
		}
		if w.memory[b.id].Phase != Ended {
			w.memory[b.id].Phase = Draining
		}
		if dies() {
			w.crash()
			return
		}
	}
	for _, a := range d.Terminations {
		w.terminate(w.box(a.Service, a.Attempt))
		if dies() {
			w.crash()
			return
		}
	}
	for _, a := range d.Launches {
		w.start(a)
		if dies() {
			w.crash()
			return
		}
	}
}

func (w *world) terminate(b *box) {
	r := w.memory[b.id]
	silent := !b.out.IsZero() && w.now.Sub(b.out) >= r.Health.Patience()
	if len(b.requests) > 0 && w.now.Sub(b.drained) < time.Duration(b.of.settings.Grace) && !silent {
		w.errorf("%s is terminated with %d requests under way, drained for %s", b.id, len(b.requests),
			w.now.Sub(b.drained))
	}
	if !b.served || silent {
		b.of.failures++ // perhaps
	}
	b.stops = w.now.Add(w.seconds(0, 1))
}

func (w *world) start(a Launch) {
	if b := w.box(a.Service, a.Attempt); b != nil {
		if !b.visible.After(w.now) {
			w.errorf("attempt %d of %s is launched twice", a.Attempt, a.Service)
		}
		return // the key is known
	}
	at := slices.IndexFunc(w.services, func(h *hosted) bool { return h.record.ID == a.Service })
	b := &box{id: session.ID(fmt.Sprint(a.Service, "-", a.Attempt)), of: w.services[at], revision: a.Revision,
		attempt: a.Attempt, visible: w.now}
	if w.faults && w.chance(5) {
		b.visible = w.now.Add(w.seconds(0, 2))
	}
	w.boxes = append(w.boxes, b)
}

// crash is kill -9 of the agent: sessions stay, streams are cut.
func (w *world) crash() {
	w.crashes++
	clear(w.memory)
	for _, b := range w.boxes {
		b.requests = nil
	}
	for _, h := range w.services {
		h.waiting = 0
	}
}
