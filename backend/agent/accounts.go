package agent

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const (
	// checkpointEvery is how much use of devices a crash may cost. Energy and
	// CPU time lose nothing: their counters are outside this process.
	checkpointEvery = 10 * time.Second
	// checkpointSeldom is the pause between two while no session runs.
	checkpointSeldom = time.Minute
	// checkpointAfter is the pause between a session's start or end and the
	// checkpoint that keeps it.
	checkpointAfter = 100 * time.Millisecond
	// resumeSlack is by how much the clock on the wall may have been set back
	// while the agent was away, for what ended meanwhile to be found.
	resumeSlack = time.Minute
	// pruneAtOnce is how many old buckets one checkpoint removes.
	pruneAtOnce = 500
)

// accounts keeps the books of what sessions had and used, of devices and of
// CPUs. State, counters and buckets are stored in one transaction, so that a
// restart goes on exactly where the last checkpoint stopped. Its methods are
// safe for concurrent use.
type accounts struct {
	log   *slog.Logger
	store *store.Store
	clock *pace.Clock

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

// seals are when sessions end that are just being ended. It is a mutex of its
// own, because the books stay locked while they are stored, and an end is
// written in a transaction of the same store.
type seals struct {
	mu sync.Mutex
	at map[session.ID]time.Time
}

// ending says when a session ends that is ended in a transaction under way.
// Nothing that it was promised is counted beyond that while the transaction
// lasts, be it seconds.
func (b *accounts) ending(id session.ID) time.Time {
	b.seals.mu.Lock()
	defer b.seals.mu.Unlock()
	if b.seals.at == nil {
		b.seals.at = map[session.ID]time.Time{}
	}
	at := b.clock.Now().UTC()
	b.seals.at[id] = at
	return at
}

// seal tells the books who is just ending. b.mu is held.
func (b *accounts) seal(now gpu.Moment) {
	b.seals.mu.Lock()
	defer b.seals.mu.Unlock()
	for id, wall := range b.seals.at {
		at := ago(now, wall)
		b.cpus.seal(at, id)
		b.gpus.Seal(at, string(id))
	}
}

// unseal forgets the ends of sessions that the books do not have.
func (b *accounts) unseal(running map[session.ID]bool) {
	b.seals.mu.Lock()
	defer b.seals.mu.Unlock()
	for id := range b.seals.at {
		if !running[id] {
			delete(b.seals.at, id)
		}
	}
}

// accountName is what is kept of a session for as long as its accounts are,
// which is longer than its record.
type accountName struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Label string `json:"label,omitempty"`
}

// openAccounts goes on from what is stored.
func openAccounts(s *store.Store, clock *pace.Clock, log *slog.Logger) (*accounts, error) {
	var gpus gpu.State
	var cpus cpuState
	if _, err := s.Account(keyGPUState, &gpus); err != nil {
		return nil, err
	}
	if _, err := s.Account(keyCPUState, &cpus); err != nil {
		return nil, err
	}
	return &accounts{
		log: log, store: s, clock: clock, gpus: gpu.NewAccounts(gpu.AccountsConfig{}, gpus), cpus: newCPUBook(cpus),
		names: map[session.ID]accountName{}, fresh: map[session.ID]accountName{},
	}, nil
}

// follow brings the books up to who runs. live are the live sessions as they
// were a moment ago, which may be before another call; ended says when a session
// that is not among them ended, on the wall clock, and whether it did. It is
// called without the books' lock held.
func (b *accounts) follow(now gpu.Moment, live []session.Session, ended func(session.ID) (time.Time, bool)) {
	running := make(map[session.ID]bool, len(live))
	for _, s := range live {
		if s.StartedAt != nil {
			running[s.ID] = true
			b.begin(now, s)
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
		if at, over := ended(id); over {
			b.end(now, ago(now, at), id)
		} else {
			running[id] = true
		}
	}
	b.unseal(running)
}

// begin counts a session from its start on, unless it is counted already or
// was: one that has ended never starts again, however late this is called.
func (b *accounts) begin(now gpu.Moment, s session.Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cpus.state.Sessions[s.ID] == nil {
		if b.counted(s.ID) {
			return
		}
		if b.changed == nil {
			b.changed = &now
		}
	}
	b.start(ago(now, *s.StartedAt), s)
}

// start counts a session from a moment on. b.mu is held.
func (b *accounts) start(since gpu.Moment, s session.Session) {
	name := accountName{Name: s.Name, Owner: s.Owner, Label: s.Spec.Label}
	if b.names[s.ID] != name {
		b.names[s.ID], b.fresh[s.ID] = name, name
	}
	b.cpus.start(since, s.ID, len(s.Grants.CPUs))
	if len(s.Grants.GPUs) > 0 {
		b.gpus.Start(since, holderOf(s))
	}
}

// counted reports whether a session that is not counted now was. What cannot
// be read counts as yes: it is asked again. b.mu is held, for the store never
// calls back.
func (b *accounts) counted(id session.ID) bool {
	if _, ended := b.cpus.ended[id]; ended {
		return true
	}
	var use cpuUse
	found, err := b.store.Account(keyCPURow+string(id), &use)
	return found || err != nil
}

func (b *accounts) end(now, at gpu.Moment, id session.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cpus.stop(at, id)
	b.gpus.Stop(at, string(id))
	delete(b.names, id)
	if b.changed == nil {
		b.changed = &now
	}
}

// resume counts the sessions that ended without having been counted, because
// the agent died between their start and the next checkpoint. finished are
// the newest that ended.
func (b *accounts) resume(now gpu.Moment, finished []session.Session) error {
	var last gpu.Moment
	known, err := b.store.Account(keyCheckpoint, &last)
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

// ago is the moment of a time on the wall clock that lies at or before now.
func ago(now gpu.Moment, wall time.Time) gpu.Moment {
	return now.Before(min(max(0, now.Wall.Sub(wall)), now.Awake))
}

// holderOf is a session as the books of devices know it.
func holderOf(s session.Session) gpu.Holder {
	h := gpu.Holder{Session: string(s.ID), Grants: s.Grants.GPUs}
	for _, k := range s.Kernels {
		if k.Container != "" {
			h.Containers = append(h.Containers, k.Container)
		}
	}
	return h
}

// book counts what happened between the last sample and this one.
func (b *accounts) book(s gpu.Sample) gpu.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seal(s.At)
	return b.gpus.Book(s)
}

// used takes the counter of CPU time of one container.
func (b *accounts) used(wall time.Time, id session.ID, container string, counter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cpus.used(wall, id, container, counter)
}

// active reports whether there is anything to keep books of.
func (b *accounts) active() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed != nil || len(b.cpus.state.Sessions) > 0 || len(b.gpus.Devices()) > 0
}

// due reports whether it is time for a checkpoint: a moment after a session
// started or ended, so that several at once cost one; and now and then.
func (b *accounts) due(now gpu.Moment) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	every := checkpointEvery
	if len(b.cpus.state.Sessions) == 0 {
		every = checkpointSeldom
	}
	return b.at.BootID != now.BootID || now.Boot-b.at.Boot >= every || b.changed != nil &&
		now.Boot-b.changed.Boot >= checkpointAfter
}

// soon is when a checkpoint may be due.
func (b *accounts) soon() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil && !b.failing {
		return checkpointAfter
	}
	return checkpointSeldom
}

// checkpoint stores the books as they are, and more beside them. After a failure everything that was
// not stored is part of the next one. The books stay locked meanwhile: the
// store never calls back.
func (b *accounts) checkpoint(now gpu.Moment, more memory) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seal(now)
	b.cpus.accrueAll(now)
	gpus := b.gpus.Checkpoint()
	err := b.store.Update(func(tx *store.Tx) error { return b.put(tx, gpus, now, more) })
	b.at = now
	if err != nil {
		if !b.failing {
			b.log.Warn("accounts cannot be stored; they are kept and tried again", "err", err)
		}
		b.failing = true
		return err
	}
	b.gpus.Committed(gpus)
	b.cpus.stored()
	clear(b.fresh)
	b.changed, b.failing = nil, false
	return nil
}

func (b *accounts) put(tx *store.Tx, gpus gpu.Checkpoint, now gpu.Moment, more memory) error {
	if err := tx.PutAccount(keyGPUState, gpus.State); err != nil {
		return err
	}
	for _, row := range gpus.Rows {
		if err := tx.PutAccount(fmt.Sprintf("%s%s/%s/%020d", keyGPURow, row.Session, row.Device, row.Part),
			row); err != nil {
			return err
		}
	}
	for _, bucket := range gpus.Buckets {
		if err := tx.PutAccount(bucketKey(keyGPUBucket, bucket.Span, bucket.Start, bucket.Part), bucket); err != nil {
			return err
		}
	}
	if err := b.cpus.each(tx.PutAccount); err != nil {
		return err
	}
	for id, name := range b.fresh {
		if err := tx.PutAccount(keyName+string(id), name); err != nil {
			return err
		}
	}
	if err := more.put(tx); err != nil {
		return err
	}
	if err := tx.PutAccount(keyCheckpoint, now); err != nil {
		return err
	}
	for _, old := range []struct {
		span   gpu.Span
		before time.Time
	}{{gpu.SpanMinute, gpus.PruneMinutes}, {gpu.SpanHour, gpus.PruneHours}} {
		for _, prefix := range []string{keyGPUBucket, keyCPUBucket} {
			if _, err := tx.PruneAccounts(prefix+string(old.span)+"/", bucketFrom(prefix, old.span, old.before),
				pruneAtOnce); err != nil {
				return err
			}
		}
	}
	return nil
}

// check audits the books: every device's rows sum to what it counted.
func (b *accounts) check() []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gpus.Check()
}

// nameOf returns what is kept of a session for its accounts.
func nameOf(s *store.Store, id session.ID) (accountName, error) {
	var name accountName
	_, err := s.Account(keyName+string(id), &name)
	return name, err
}

// decode reads what a row of accounts holds.
func decode[T any](data []byte) (T, error) {
	var value T
	err := json.Unmarshal(data, &value)
	return value, err
}
