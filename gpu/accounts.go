package gpu

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// maxInterval is the longest time that one sample describes.
const maxInterval = 15 * time.Second

// trust is the longest time that a sample describes without [Sample].Since. Samples come every two seconds.
const trust = 10 * time.Second

// maxWaits is for how many samples an ended session waits for the energy of a device that does not respond.
const maxWaits = 300

// State is everything that accounts keep: counters, and the moments up to which they count. It is stored whole and in
// one transaction, so that a restart neither counts twice nor skips. The caller does not look inside.
type State struct {
	Version int           `json:"version"`
	At      Moment        `json:"at"` // of the last sample
	Devices []DeviceState `json:"devices,omitempty"`
	Rows    []*Row        `json:"rows,omitempty"`
	Holders []*Running    `json:"holders,omitempty"`
	Buckets []Bucket      `json:"buckets,omitempty"` // the open ones
	Steady  time.Time     `json:"steady"`            // a wall clock without jumps, for pruning
	Parts   int64         `json:"parts"`
}

const stateVersion = 1

// Running is a session that is running, or that ended since the last sample.
type Running struct {
	Holder Holder `json:"holder"`
	Upto   Moment `json:"upto"` // its allocation is counted up to here
	Ended  bool   `json:"ended,omitempty"`

	until *Moment // see Accounts.Seal
}

// DeviceState is the state of one device.
type DeviceState struct {
	UUID     UUID        `json:"uuid"`
	At       Moment      `json:"at"` // of the last sample that had it
	Epoch    Epoch       `json:"epoch"`
	Energy   *MilliJoule `json:"energy,omitempty"` // the counter at EnergyAt
	EnergyAt Moment      `json:"energyAt"`
	Power    *MilliWatt  `json:"power,omitempty"`
	Micro    int64       `json:"micro,omitempty"` // microjoules from power that are not booked yet
	Carry    int64       `json:"carry,omitempty"` // busy time not booked yet, in ten-thousandths of a millisecond
	Idle     IdlePower   `json:"idle"`
	Counted  Counters    `json:"counted"` // what the device itself counted
	Closed   Counters    `json:"closed"`  // of rows that were stored and dropped here
}

// Accounts counts what sessions were allocated and used. Its methods are not safe for concurrent use, and they read no
// clock: moments come with events and samples.
//
// Call Start when a session gets its devices, Book for every sample, Stop when it releases them, and Checkpoint and
// then Committed every ten seconds and at each Start and Stop. Book a sample just before a Stop, so that the last
// seconds are measured.
type Accounts struct {
	state  State
	rows   map[rowKey]*Row
	dirty  map[*Row]bool
	closed []Row    // ended, not committed yet
	done   []Bucket // full, not committed yet
	fresh  bool     // no sample was booked since the process started
}

type rowKey struct {
	session string
	device  UUID
}

// NewAccounts continues from a stored state; the zero state is the beginning.
func NewAccounts(state State) *Accounts {
	a := &Accounts{state: state.clone(), rows: map[rowKey]*Row{}, dirty: map[*Row]bool{}, fresh: true}
	a.state.Version = stateVersion
	for _, r := range a.state.Rows {
		a.rows[rowKey{r.Session, r.Device}] = r
	}
	return a
}

// clone copies everything that is changed in place.
func (s State) clone() State {
	c := s
	c.Devices = slices.Clone(s.Devices)
	for i := range c.Devices {
		c.Devices[i].Idle.Seen = slices.Clone(s.Devices[i].Idle.Seen)
	}
	c.Rows = make([]*Row, len(s.Rows))
	for i, r := range s.Rows {
		c.Rows[i] = new(*r)
	}
	c.Holders = make([]*Running, len(s.Holders))
	for i, h := range s.Holders {
		c.Holders[i] = new(*h)
	}
	c.Buckets = make([]Bucket, len(s.Buckets))
	for i, b := range s.Buckets {
		b.Rows = slices.Clone(b.Rows)
		c.Buckets[i] = b
	}
	return c
}

// Start counts the allocation of holder from a moment that may lie in the past. For a session that is running already
// it only updates the containers, so that an agent may start all of them again after a restart.
func (a *Accounts) Start(at Moment, holder Holder) {
	holder.Grants = byDevice(holder.Grants)
	if h := a.holder(holder.Session); h != nil {
		if !h.Ended {
			h.Holder.Containers = holder.Containers
			return
		}
		a.state.Holders = slices.DeleteFunc(a.state.Holders, func(other *Running) bool { return other == h })
	}
	a.state.Holders = append(a.state.Holders, &Running{Holder: holder, Upto: at})
	for _, g := range holder.Grants {
		a.row(holder.Session, g.Device)
	}
}

// byDevice merges grants on one device into one, with the instance of the first.
func byDevice(grants []Grant) []Grant {
	var merged []Grant
	for _, g := range grants {
		i := slices.IndexFunc(merged, func(m Grant) bool { return m.Device == g.Device })
		if i < 0 {
			merged = append(merged, g)
			continue
		}
		merged[i].Share += g.Share
		merged[i].Memory += g.Memory
	}
	return merged
}

// Seal sets a moment beyond which the allocation of session is not counted until [Accounts.Stop] sets the real end. A
// later call replaces an earlier one; an unknown session is not an error.
func (a *Accounts) Seal(at Moment, session string) {
	if h := a.holder(session); h != nil {
		h.until = &at
	}
}

// Stop ends the allocation of session, if it is running. What its processes used is booked with the next sample.
func (a *Accounts) Stop(at Moment, session string) {
	h := a.holder(session)
	if h == nil || h.Ended {
		return
	}
	a.turn(at.Wall)
	h.until = nil
	a.accrue(h, at)
	h.Ended = true
}

// Sessions lists the running sessions in the order of their start.
func (a *Accounts) Sessions() []string {
	var running []string
	for _, h := range a.state.Holders {
		if !h.Ended {
			running = append(running, h.Holder.Session)
		}
	}
	return running
}

// Rows lists the rows that are open or not committed: of sessions, and of [Others] and the like.
func (a *Accounts) Rows() []Row {
	rows := slices.Clone(a.closed)
	for _, r := range a.state.Rows {
		rows = append(rows, *r)
	}
	return rows
}

// Devices lists the state of each device: its counters, and the idle power that was learned.
func (a *Accounts) Devices() []DeviceState { return a.state.clone().Devices }

func (a *Accounts) holder(session string) *Running {
	for _, h := range a.state.Holders {
		if h.Holder.Session == session {
			return h
		}
	}
	return nil
}

func (a *Accounts) row(session string, device UUID) *Row {
	key := rowKey{session, device}
	r := a.rows[key]
	if r == nil {
		a.state.Parts++
		r = &Row{Session: session, Device: device, Part: a.state.Parts}
		a.rows[key] = r
		a.state.Rows = append(a.state.Rows, r)
	}
	a.dirty[r] = true
	return r
}

func (a *Accounts) charge(r *Row, d Counters) {
	a.dirty[r] = true
	if d == (Counters{}) {
		return
	}
	r.Counters.Add(d)
	for i := range a.state.Buckets {
		a.state.Buckets[i].add(r.Session, r.Device, d)
	}
}

// between returns the awake milliseconds from one moment to another; 0 across a boot and in the wrong order.
func between(from, to Moment) int64 {
	if from.BootID != to.BootID {
		return 0
	}
	return max(0, to.Awake.Milliseconds()-from.Awake.Milliseconds())
}

func (a *Accounts) accrue(h *Running, at Moment) {
	if h.until != nil && between(*h.until, at) > 0 {
		at = *h.until
	}
	ms := between(h.Upto, at)
	if ms == 0 && h.Upto.BootID == at.BootID {
		return
	}
	h.Upto = at
	for _, g := range h.Holder.Grants {
		r := a.row(h.Holder.Session, g.Device)
		micro := r.Carry + int64(g.Share)*ms
		r.Carry = micro % 1000
		r.Held += ms
		r.Pending += ms
		r.Weight += int64(g.Share) * ms
		a.charge(r, Counters{AllocGPUMs: micro / 1000, VRAMAlloc: Held(g.Memory, ms)})
	}
}

// Span is how long a bucket is.
type Span string

// The spans. Minutes and hours are pruned, days are kept. A day is one of the calendar of the wall clock.
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

// maxBucketRows limits an open bucket, because it is written whole.
const maxBucketRows = 256

// Bucket is what was counted in one span of the wall clock. Span, Start and Part are its key. After the clock was set
// back, or when a bucket is full, several have one start; readers add them up.
type Bucket struct {
	Span  Span        `json:"span"`
	Start time.Time   `json:"start"` // on the wall clock
	Part  int64       `json:"part"`
	Rows  []BucketRow `json:"rows"`
}

// BucketRow is what one session, or [Others] and the like, added to its counters in that time.
type BucketRow struct {
	Session  string   `json:"session"`
	Device   UUID     `json:"device"`
	Counters Counters `json:"counters"`
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

// Spans are the lengths of buckets, shortest first.
var Spans = []Span{SpanMinute, SpanHour, SpanDay}

// StartOf returns the start of the span that wall lies in.
func (s Span) StartOf(wall time.Time) time.Time {
	switch s {
	case SpanMinute:
		return wall.Truncate(time.Minute)
	case SpanHour:
		return wall.Truncate(time.Hour)
	}
	return time.Date(wall.Year(), wall.Month(), wall.Day(), 0, 0, 0, 0, wall.Location())
}

// turn closes the buckets that do not contain wall and opens those that do.
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

// steady moves the clock for pruning, never ahead of the real time, so that setting the wall clock prunes nothing.
func (a *Accounts) steady(from, to Moment) {
	ahead := 31 * 24 * time.Hour
	if from.BootID == to.BootID {
		ahead = to.Boot - from.Boot + time.Minute
	}
	limit := a.state.Steady.Add(ahead)
	if a.state.Steady.IsZero() || to.Wall.Before(limit) {
		limit = to.Wall
	}
	a.state.Steady = limit
}

// Checkpoint is what to store now, in one transaction: the state as one value, each row and each bucket in place of the
// one with its key (session, device, part and span, start, part), without the buckets that start before PruneMinutes
// and PruneHours. Rows and buckets are complete, so storing one twice changes nothing.
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
			b.Rows = slices.Clone(b.Rows)
			c.Buckets = append(c.Buckets, b)
		}
	}
	return c
}

// Committed records that c was stored. Later changes are in the next checkpoint.
func (a *Accounts) Committed(c Checkpoint) {
	maps.DeleteFunc(a.dirty, func(r *Row, _ bool) bool { return c.written[r] == *r })
	a.closed = slices.Delete(a.closed, 0, c.closed)
	a.done = slices.Delete(a.done, 0, c.done)
}

// close moves the rows of ended sessions from the state to those that are stored and dropped.
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
