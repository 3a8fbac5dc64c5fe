package accounts

import (
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// cpuUse is what a session had and used of the machine's CPUs.
type cpuUse struct {
	UsedNs  int64 `json:"usedNs"`  // nanoseconds in which a CPU worked for it
	AllocMs int64 `json:"allocMs"` // CPUs granted × milliseconds
}

func (u cpuUse) plus(d cpuUse) cpuUse { return cpuUse{u.UsedNs + d.UsedNs, u.AllocMs + d.AllocMs} }

// cpuState is everything that the accounts of CPU time must remember: counters with the cursors up to which they count.
type cpuState struct {
	Sessions map[session.ID]*cpuAccount `json:"sessions"`
	Buckets  []cpuBucket                `json:"buckets"` // the open ones
	Parts    int64                      `json:"parts"`
}

type cpuAccount struct {
	CPUs int                      `json:"cpus"`
	Upto gpu.Moment               `json:"upto"` // what was granted is counted up to here
	Seen map[string]time.Duration `json:"seen"` // how much of each container's counter is in Use
	Use  cpuUse                   `json:"use"`

	until *gpu.Moment // see cpuBook.seal
}

// cpuBucket is what was counted while the wall clock was in one span.
type cpuBucket struct {
	Span  gpu.Span              `json:"span"`
	Start time.Time             `json:"start"`
	Part  int64                 `json:"part"`
	Use   map[session.ID]cpuUse `json:"use"`
}

// cpuBook keeps the accounts of CPU time. It is not safe for concurrent use.
type cpuBook struct {
	state  cpuState
	ended  map[session.ID]cpuUse // not stored yet
	closed []cpuBucket           // not stored yet
}

// start counts what a session was granted, from a moment that may be in the past, unless it is counted already.
func (b *cpuBook) start(at gpu.Moment, id session.ID, cpus int) {
	if b.state.Sessions[id] == nil {
		b.state.Sessions[id] = &cpuAccount{CPUs: cpus, Upto: at, Seen: map[string]time.Duration{}}
	}
}

// seal ends the count of what a session was granted at a moment, until stop is called with its end.
func (b *cpuBook) seal(at gpu.Moment, id session.ID) {
	if account := b.state.Sessions[id]; account != nil {
		account.until = &at
	}
}

func (b *cpuBook) stop(at gpu.Moment, id session.ID) {
	account := b.state.Sessions[id]
	if account == nil {
		return
	}
	account.until = nil
	b.accrue(at, id, account)
	b.ended[id] = account.Use
	delete(b.state.Sessions, id)
}

// used takes the counter of one container. A new one counts from 0, as its container is new, and so does one that fell.
func (b *cpuBook) used(wall time.Time, id session.ID, container string, counter time.Duration) {
	account := b.state.Sessions[id]
	if account == nil {
		return
	}
	before := account.Seen[container]
	if counter < before {
		before = 0
	}
	account.Seen[container] = counter
	b.charge(wall, id, account, cpuUse{UsedNs: int64(counter - before)})
}

// accrue counts what a session was granted up to a moment, without time asleep and time before the boot.
func (b *cpuBook) accrue(at gpu.Moment, id session.ID, account *cpuAccount) {
	if account.Upto.BootID != at.BootID {
		account.Upto = at
		return
	}
	if account.until != nil && account.until.BootID == at.BootID && account.until.Awake < at.Awake {
		at = *account.until
	}
	ms := at.Awake.Milliseconds() - account.Upto.Awake.Milliseconds()
	if ms <= 0 {
		return
	}
	account.Upto = at
	b.charge(at.Wall, id, account, cpuUse{AllocMs: int64(account.CPUs) * ms})
}

func (b *cpuBook) charge(wall time.Time, id session.ID, account *cpuAccount, d cpuUse) {
	if d == (cpuUse{}) {
		return
	}
	account.Use = account.Use.plus(d)
	b.turn(wall)
	for _, bucket := range b.state.Buckets {
		bucket.Use[id] = bucket.Use[id].plus(d)
	}
}

// turn closes and opens buckets. After the clock was set back, two may have one start: readers add them up.
func (b *cpuBook) turn(wall time.Time) {
	for _, span := range gpu.Spans {
		start := span.StartOf(wall)
		i := slices.IndexFunc(b.state.Buckets, func(c cpuBucket) bool { return c.Span == span })
		if i >= 0 && b.state.Buckets[i].Start.Equal(start) {
			continue
		}
		if i >= 0 {
			b.closed = append(b.closed, b.state.Buckets[i])
			b.state.Buckets = slices.Delete(b.state.Buckets, i, i+1)
		}
		b.state.Parts++
		b.state.Buckets = append(b.state.Buckets, cpuBucket{Span: span, Start: start, Part: b.state.Parts,
			Use: map[session.ID]cpuUse{}})
	}
}

// put adds to rows, by key, what must be stored to continue the book after a crash. Storing it twice is harmless.
func (b *cpuBook) put(rows map[string]any) {
	rows[keyCPUState] = b.state
	for id, use := range b.ended {
		rows[keyCPURow+string(id)] = use
	}
	for id, account := range b.state.Sessions {
		rows[keyCPURow+string(id)] = account.Use
	}
	for _, bucket := range slices.Concat(b.closed, b.state.Buckets) {
		rows[bucketKey(keyCPUBucket, bucket.Span, bucket.Start, bucket.Part)] = bucket
	}
}

// The keys of accounts in the store. Those of buckets are in the order of time.
const (
	keyGPUState   = "gpu/state"
	keyGPURow     = "gpu/row/"
	keyGPUBucket  = "gpu/bucket/"
	keyCPUState   = "cpu/state"
	keyCPURow     = "cpu/row/"
	keyCPUBucket  = "cpu/bucket/"
	keyName       = "name/"
	keyCheckpoint = "checkpoint" // when all of this was stored

	keyRequestState  = "requests/state"
	keyRequestBucket = "requests/bucket/"
	keyToken         = "requests/token/" // owner/service/ID: its name
)

func bucketKey(prefix string, span gpu.Span, start time.Time, part int64) string {
	return fmt.Sprintf("%s%020d", bucketFrom(prefix, span, start), part)
}

// bucketFrom is before every key of a bucket that starts at start, and after the keys of earlier buckets.
func bucketFrom(prefix string, span gpu.Span, start time.Time) string {
	return fmt.Sprintf("%s%s/%020d/", prefix, span, max(0, start.Unix()))
}
