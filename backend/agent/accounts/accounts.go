// Package accounts counts what sessions had and used of devices and CPUs and what was asked of services, and answers
// from that.
//
// Counters are whole numbers that only grow. Time comes from a clock that cannot be set and that stops while the
// machine sleeps; the wall clock only names the buckets of minutes, hours and days. Counters, buckets and the cursors
// up to which they count are stored in one transaction, every ten seconds and when a session starts or ends, so a
// restart counts nothing twice. A crash loses at most the use of devices and the requests since then; energy and CPU
// time are counted outside of this process and lose nothing.
package accounts

import (
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const (
	// CheckpointEvery is the most use of devices, and of requests to services that run, that a crash loses.
	CheckpointEvery  = 10 * time.Second
	checkpointSeldom = time.Minute            // between two checkpoints while no session runs
	checkpointAfter  = 100 * time.Millisecond // between a session's start or end and its checkpoint
	resumeSlack      = time.Minute            // how far the wall clock may be set back while the agent is down
	removeAtOnce     = 10_000                 // more rows than are ever stored of one session or device
	pruneAtOnce      = 500                    // old buckets that one checkpoint removes
)

// Books are the accounts of one machine. Their methods are safe for concurrent use.
type Books struct {
	log   *slog.Logger
	store *store.Store
	clock *pace.Clock

	sources  []Source
	requests *requestBook

	mu      sync.Mutex // guards everything below
	gpus    *gpu.Accounts
	cpus    *cpuBook
	names   map[session.ID]accountName // as they are stored
	fresh   map[session.ID]accountName // not stored yet
	at      gpu.Moment                 // of the last checkpoint
	changed *gpu.Moment                // when a session started or ended since; nil: none did
	failing bool

	seals seals
}

// seals are the ends of sessions whose end is being stored. It has its own mutex, because the books stay locked while
// they are stored, and an end is written in a transaction of the same store.
type seals struct {
	mu sync.Mutex
	at map[session.ID]time.Time
}

// Ending returns when a session ends that a transaction ends now. Until then, nothing is counted beyond that.
func (b *Books) Ending(id session.ID) time.Time {
	b.seals.mu.Lock()
	defer b.seals.mu.Unlock()
	at := b.clock.Now().UTC()
	b.seals.at[id] = at
	return at
}

// seal stops the counts of sessions that are being ended. The caller holds b.mu.
func (b *Books) seal(now gpu.Moment) {
	b.seals.mu.Lock()
	defer b.seals.mu.Unlock()
	for id, wall := range b.seals.at {
		at := ago(now, wall)
		b.cpus.seal(at, id)
		b.gpus.Seal(at, string(id))
	}
}

// unseal forgets the ends of sessions that are not counted any more.
func (b *Books) unseal(running map[session.ID]bool) {
	b.seals.mu.Lock()
	defer b.seals.mu.Unlock()
	maps.DeleteFunc(b.seals.at, func(id session.ID, _ time.Time) bool { return !running[id] })
}

// accountName is what is kept of a session for as long as its accounts are, which is longer than its record.
type accountName struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Label string `json:"label,omitempty"`
	// of a replica
	Service  string `json:"service,omitempty"`
	Revision int    `json:"revision,omitempty"`
}

func nameOf(s session.Session) accountName {
	name := accountName{Name: s.Name, Owner: s.Owner, Label: s.Spec.Label}
	if serving := s.Spec.Serving; serving != nil {
		name.Service, name.Revision = serving.Service, serving.Revision
	}
	return name
}

// Open opens the books as they were stored.
func Open(s *store.Store, clock *pace.Clock, log *slog.Logger) (*Books, error) {
	var gpus gpu.State
	var cpus cpuState
	if _, err := s.Account(keyGPUState, &gpus); err != nil {
		return nil, err
	}
	if _, err := s.Account(keyCPUState, &cpus); err != nil {
		return nil, err
	}
	var requests requestState
	if _, err := s.Account(keyRequestState, &requests); err != nil {
		return nil, err
	}
	if cpus.Sessions == nil {
		cpus.Sessions = map[session.ID]*cpuAccount{}
	}
	return &Books{
		log: log, store: s, clock: clock, gpus: gpu.NewAccounts(gpus), requests: newRequestBook(requests),
		cpus:  &cpuBook{state: cpus, ended: map[session.ID]cpuUse{}},
		names: map[session.ID]accountName{}, fresh: map[session.ID]accountName{},
		seals: seals{at: map[session.ID]time.Time{}},
	}, nil
}

// Follow updates the books to the sessions that run. live was read a moment ago, which may be before another call.
func (b *Books) Follow(now gpu.Moment, live []session.Session) {
	running := make(map[session.ID]bool, len(live))
	for _, s := range live {
		if s.StartedAt != nil {
			running[s.ID] = true
			b.Begin(now, s)
		}
	}
	b.mu.Lock()
	var gone []session.ID
	for id := range b.cpus.state.Sessions {
		if !running[id] {
			gone = append(gone, id)
		}
	}
	for _, id := range b.gpus.Sessions() {
		if !running[session.ID(id)] && b.cpus.state.Sessions[session.ID(id)] == nil {
			gone = append(gone, session.ID(id))
		}
	}
	b.mu.Unlock()
	for _, id := range gone {
		if at, over := b.endOf(id); over {
			b.end(now, ago(now, at), id)
		} else {
			running[id] = true
		}
	}
	b.unseal(running)
}

// Begin counts a session from its start, unless it is counted or has ended. One that was counted before may have waited
// again since.
func (b *Books) Begin(now gpu.Moment, s session.Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cpus.state.Sessions[s.ID] == nil {
		if b.counted(s.ID) {
			current, err := b.store.Get(s.ID)
			if err != nil || current.StartedAt == nil || current.Status.Terminal() {
				return
			}
			s = current
		}
		if b.changed == nil {
			b.changed = &now
		}
	}
	b.start(ago(now, *s.StartedAt), s)
}

// start counts a session from a moment on. The caller holds b.mu.
func (b *Books) start(since gpu.Moment, s session.Session) {
	name := nameOf(s)
	if b.names[s.ID] != name {
		b.names[s.ID], b.fresh[s.ID] = name, name
	}
	b.cpus.start(since, s.ID, len(s.Grants.CPUs))
	if len(s.Grants.GPUs) > 0 {
		b.gpus.Start(since, HolderOf(s))
	}
}

// counted reports whether a session that is not counted now was counted before. If that cannot be read, it reports
// true, and is called again later. The caller holds b.mu, because the store never calls back.
func (b *Books) counted(id session.ID) bool {
	if _, ended := b.cpus.ended[id]; ended {
		return true
	}
	var use cpuUse
	found, err := b.store.Account(keyCPURow+string(id), &use)
	return found || err != nil
}

func (b *Books) end(now, at gpu.Moment, id session.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cpus.stop(at, id)
	b.gpus.Stop(at, string(id))
	delete(b.names, id)
	if b.changed == nil {
		b.changed = &now
	}
}

// endOf returns when a session ended, and whether it did, or waits again. One without a record has ended: only ended
// ones are removed.
func (b *Books) endOf(id session.ID) (time.Time, bool) {
	s, err := b.store.Get(id)
	switch {
	case err == nil && s.Status.Terminal() && s.TerminatedAt != nil:
		return *s.TerminatedAt, true
	case session.CodeOf(err) == session.CodeSessionNotFound || err == nil && s.StartedAt == nil:
		return b.clock.Now(), true
	}
	return time.Time{}, false
}

// LastCheckpoint returns when the books were stored, and whether they ever were.
func (b *Books) LastCheckpoint() (at gpu.Moment, ever bool, err error) {
	ever, err = b.store.Account(keyCheckpoint, &at)
	return at, ever, err
}

// Resume counts the running sessions, and those that ended while the agent was down or before the next checkpoint.
func (b *Books) Resume(now gpu.Moment, live []session.Session) error {
	const newest = 1000
	finished, err := b.store.List(session.Filter{Finished: true, Limit: newest})
	if err != nil {
		return err
	}
	if err := b.countMissed(now, finished); err != nil {
		b.log.Warn("accounts are not looked through", "err", err)
	}
	b.Follow(now, live)
	return nil
}

// countMissed counts those of the newest ended sessions that were never counted.
func (b *Books) countMissed(now gpu.Moment, finished []session.Session) error {
	last, known, err := b.LastCheckpoint()
	if err != nil {
		return err
	}
	if !known { // what ended before there were accounts is not in them
		return b.store.Update(func(tx *store.Tx) error { return tx.PutAccount(keyCheckpoint, now) })
	}
	for _, s := range finished {
		if s.StartedAt == nil || s.TerminatedAt == nil || s.TerminatedAt.Before(last.Wall.Add(-resumeSlack)) {
			continue
		}
		at := ago(now, *s.TerminatedAt)
		b.mu.Lock()
		missed := b.cpus.state.Sessions[s.ID] == nil && !b.counted(s.ID)
		if missed {
			b.start(at.Before(s.TerminatedAt.Sub(*s.StartedAt)), s)
		}
		b.mu.Unlock()
		if missed {
			b.end(now, at, s.ID)
		}
	}
	return nil
}

// ago is the moment of a time on the wall clock that is not after now.
func ago(now gpu.Moment, wall time.Time) gpu.Moment {
	return now.Before(min(max(0, now.Wall.Sub(wall)), now.Awake))
}

// HolderOf is a session as the accounts of devices know it.
func HolderOf(s session.Session) gpu.Holder {
	return gpu.Holder{Session: string(s.ID), Grants: s.Grants.GPUs, Containers: s.Containers()}
}

// Book counts what happened between the previous sample and this one.
func (b *Books) Book(s gpu.Sample) gpu.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seal(s.At)
	return b.gpus.Book(s)
}

// Used takes the counter of CPU time of one container.
func (b *Books) Used(wall time.Time, id session.ID, container string, counter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cpus.used(wall, id, container, counter)
}

func (b *Books) Active() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed != nil || len(b.cpus.state.Sessions) > 0 || len(b.gpus.Devices()) > 0 || b.requests.pending()
}

// Due reports whether it is time for a checkpoint: regularly, and a moment after sessions started or ended.
func (b *Books) Due(now gpu.Moment) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	every := CheckpointEvery
	if len(b.cpus.state.Sessions) == 0 {
		every = checkpointSeldom
	}
	return b.at.BootID != now.BootID || now.Boot-b.at.Boot >= every || b.changed != nil &&
		now.Boot-b.changed.Boot >= checkpointAfter
}

// Soon returns when a checkpoint may be due.
func (b *Books) Soon() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil && !b.failing {
		return checkpointAfter
	}
	return checkpointSeldom
}

// Source has something to store with the accounts.
type Source interface {
	// Extra returns what the source adds to a checkpoint: everything, or what is due.
	Extra(now gpu.Moment, all bool) Extra
}

func (b *Books) Add(source Source) { b.sources = append(b.sources, source) }

// Extra is what a checkpoint stores with the accounts.
type Extra struct {
	Remove []Keys // before Rows are stored
	Rows   map[string]any
	Stored func() // is called when it is; may be nil
}

// Keys is a range of keys, from the first up to but without the last.
type Keys struct{ From, To string }

// KeysOf are all keys of one session or device under a prefix.
func KeysOf(prefix, of string) Keys { return Keys{prefix + of + "/", prefix + of + "0"} } // 0 follows /

// KeyAt is the key of one session or device at a time.
func KeyAt(prefix, of string, at time.Time) string {
	return fmt.Sprintf("%s%s/%020d", prefix, of, max(0, at.Unix()))
}

func (e Extra) put(tx *store.Tx) error {
	for _, keys := range e.Remove {
		if _, err := tx.PruneAccounts(keys.From, keys.To, removeAtOnce); err != nil {
			return err
		}
	}
	for key, value := range e.Rows {
		if err := tx.PutAccount(key, value); err != nil {
			return err
		}
	}
	return nil
}

// Checkpoint stores the books and what the sources add in one transaction. After a failure, the next one stores it all.
func (b *Books) Checkpoint(now gpu.Moment, all bool) error {
	extras := make([]Extra, len(b.sources))
	for i, source := range b.sources {
		extras[i] = source.Extra(now, all)
	}
	if err := b.save(now, extras); err != nil {
		return err
	}
	for _, extra := range extras {
		if extra.Stored != nil {
			extra.Stored()
		}
	}
	return nil
}

// save keeps the books locked while they are stored, because the store never calls back.
func (b *Books) save(now gpu.Moment, extras []Extra) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seal(now)
	for id, account := range b.cpus.state.Sessions {
		b.cpus.accrue(now, id, account)
	}
	gpus := b.gpus.Checkpoint()
	requests := map[string]any{}
	stored := b.requests.put(requests)
	extras = append(extras, Extra{Rows: requests})
	err := b.store.Update(func(tx *store.Tx) error { return b.put(tx, gpus, now, extras) })
	b.at = now
	if err != nil {
		if !b.failing {
			b.log.Warn("accounts cannot be stored; they are kept and tried again", "err", err)
		}
		b.failing = true
		return err
	}
	stored()
	b.gpus.Committed(gpus)
	clear(b.cpus.ended)
	b.cpus.closed = nil
	clear(b.fresh)
	b.changed, b.failing = nil, false
	return nil
}

func (b *Books) put(tx *store.Tx, gpus gpu.Checkpoint, now gpu.Moment, extras []Extra) error {
	rows := map[string]any{keyGPUState: gpus.State, keyCheckpoint: now}
	for _, row := range gpus.Rows {
		rows[fmt.Sprintf("%s%s/%s/%020d", keyGPURow, row.Session, row.Device, row.Part)] = row
	}
	for _, bucket := range gpus.Buckets {
		rows[bucketKey(keyGPUBucket, bucket.Span, bucket.Start, bucket.Part)] = bucket
	}
	b.cpus.put(rows)
	for id, name := range b.fresh {
		rows[keyName+string(id)] = name
	}
	for _, extra := range append(extras, Extra{Rows: rows}) {
		if err := extra.put(tx); err != nil {
			return err
		}
	}
	for _, old := range []struct {
		span   gpu.Span
		before time.Time
	}{{gpu.SpanMinute, gpus.PruneMinutes}, {gpu.SpanHour, gpus.PruneHours}} {
		for _, prefix := range []string{keyGPUBucket, keyCPUBucket, keyRequestBucket} {
			if _, err := tx.PruneAccounts(prefix+string(old.span)+"/", bucketFrom(prefix, old.span, old.before),
				pruneAtOnce); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check audits the books: the rows of each device sum to what it counted.
func (b *Books) Check() []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gpus.Check()
}
