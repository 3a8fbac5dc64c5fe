package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// Tx is one change, or a view. It is used by one goroutine, and not after the function that got it.
type Tx struct {
	tx *bolt.Tx
}

// Update stores all changes of fn, or none if fn or the disk fails, one at a time. fn must not use the Store.
func (s *Store) Update(fn func(*Tx) error) error {
	if err := s.fault("begin"); err != nil {
		return writeError(err)
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		if err := fn(&Tx{tx}); err != nil {
			return err
		}
		return s.fault("commit")
	})
	if err != nil {
		return writeError(err)
	}
	s.changes.Add(1)
	return writeError(s.fault("committed"))
}

// Books returns the revision of the books, changes of this Tx included.
func (t *Tx) Books() uint64 { return number(t.tx.Bucket(bucketMeta).Get(metaBooks)) }

// Expect fails with store_write_conflict unless the books have the revision.
func (t *Tx) Expect(books uint64) error {
	if now := t.Books(); now != books {
		return conflict("The store changed from revision %d to %d.", books, now)
	}
	return nil
}

func conflict(format string, args ...any) error {
	return session.NewError(session.CodeStoreConflict, fmt.Sprintf(format, args...), "")
}

// Get returns one session; session_read_not-found.
func (t *Tx) Get(id session.ID) (session.Session, error) {
	r, err := load(t.tx, id)
	return r.Session, err
}

// ByKey returns the session that an owner created under an idempotency key, unless it was moved away.
func (t *Tx) ByKey(owner, key string) (session.Session, bool, error) {
	id := t.tx.Bucket(bucketKeys).Get(pair(owner, key))
	if id == nil || t.tx.Bucket(bucketMoved).Get(id) != nil {
		return session.Session{}, false, nil
	}
	s, err := t.Get(session.ID(id))
	return s, err == nil, err
}

// Create stores a new session under an idempotency key, which may be empty, and sets its revision to 1. It fails with
// session_create_already-exists if a live session of the owner has the name, with store_write_conflict if the id or the
// key is in use, and with session_update_conflict if the session of the key was moved away.
func (t *Tx) Create(s *session.Session, key string) error {
	if t.tx.Bucket(bucketSessions).Get([]byte(s.ID)) != nil {
		return conflict("The session %s already exists.", s.ID)
	}
	if err := t.claimKey(*s, key); err != nil {
		return err
	}
	if s.Status.Live() {
		if err := t.claimName(s.Owner, s.Name, s.ID); err != nil {
			return err
		}
	}
	arrival, err := t.tx.Bucket(bucketSessions).NextSequence()
	if err != nil {
		return err
	}
	s.Key, s.Revision = key, 1
	index, finished := bucketLive, 0
	if !s.Status.Live() {
		index, finished = bucketFinished, 1
	}
	return errors.Join(t.count(finished), t.tx.Bucket(index).Put(numberKey(arrival), []byte(s.ID)), t.turnPage(),
		t.save(record{Number: arrival, Key: key, Session: *s}))
}

// Put replaces a session by its successor and raises its revision, in s too. It fails with store_write_conflict if the
// stored one has another revision than s, with store_write_transition if its status cannot become that of s, and with
// session_create_already-exists.
func (t *Tx) Put(s *session.Session) error {
	r, err := load(t.tx, s.ID)
	if err != nil {
		return err
	}
	old := r.Session
	if old.Revision != s.Revision {
		return conflict("Session %s changed meanwhile.", s.ID)
	}
	if old.Status != s.Status && !old.Status.CanBecome(s.Status) {
		return session.NewError(session.CodeStoreTransition,
			fmt.Sprintf("A session cannot go from %s to %s.", old.Status, s.Status), "")
	}
	if old.Name != s.Name && s.Status.Live() {
		if err := t.claimName(s.Owner, s.Name, s.ID); err != nil {
			return err
		}
		if err := t.tx.Bucket(bucketNames).Delete(pair(old.Owner, old.Name)); err != nil {
			return err
		}
	}
	if old.Status.Live() && !s.Status.Live() {
		if err := t.finish(r, old); err != nil {
			return err
		}
	}
	if movesBooks(old, *s) {
		if err := t.turnPage(); err != nil {
			return err
		}
	}
	s.Revision++
	r.Session = *s
	return t.save(r)
}

// movesBooks reports whether a change alters the queue or the grants.
func movesBooks(old, s session.Session) bool {
	return old.Status.Live() != s.Status.Live() || (old.Status == session.Pending) != (s.Status == session.Pending) ||
		!old.Grants.Equal(s.Grants) || old.Priority != s.Priority || old.Held != s.Held
}

func (t *Tx) finish(r record, old session.Session) error {
	return errors.Join( // an error of one undoes all
		t.tx.Bucket(bucketNames).Delete(pair(old.Owner, old.Name)),
		t.tx.Bucket(bucketLive).Delete(numberKey(r.Number)),
		t.count(1),
		t.tx.Bucket(bucketFinished).Put(numberKey(r.Number), []byte(old.ID)))
}

func (t *Tx) claimName(owner, name string, id session.ID) error {
	names := t.tx.Bucket(bucketNames)
	if holder := names.Get(pair(owner, name)); holder != nil && session.ID(holder) != id {
		return session.Refused(session.CodeNameTaken, session.NameTaken(name, ""))
	}
	return names.Put(pair(owner, name), []byte(id))
}

// LiveOf returns how many live sessions an owner has.
func (t *Tx) LiveOf(owner string) int {
	n := 0
	for range entries(t.tx.Bucket(bucketNames), pair(owner, "")) {
		n++
	}
	return n
}

func (t *Tx) save(r record) error { return put(t.tx.Bucket(bucketSessions), []byte(r.Session.ID), r) }

func (t *Tx) turnPage() error { return t.tx.Bucket(bucketMeta).Put(metaBooks, numberKey(t.Books()+1)) }

// count adds n, which may be negative, to the number of finished sessions.
func (t *Tx) count(n int) error {
	return t.tx.Bucket(bucketMeta).Put(metaFinished, numberKey(uint64(t.Finished()+n)))
}

// Finished returns how many finished sessions are kept.
func (t *Tx) Finished() int { return int(number(t.tx.Bucket(bucketMeta).Get(metaFinished))) }

// Phases returns the phases of a session in the order of their creation.
func (t *Tx) Phases(id session.ID) ([]session.Phase, error) {
	phases := []session.Phase{}
	for key, data := range entries(t.tx.Bucket(bucketPhases), phaseKey(id, "")) {
		p, err := decoded[session.Phase]("phase", key, data)
		if err != nil {
			return nil, err
		}
		phases = append(phases, p)
	}
	return phases, nil
}

// PutPhase stores a phase. One without an ID gets the next, in p too.
func (t *Tx) PutPhase(p *session.Phase) error {
	if p.ID == "" {
		phases, err := t.Phases(p.Session)
		if err != nil {
			return err
		}
		last := 0
		if len(phases) > 0 {
			_, text, _ := strings.Cut(phases[len(phases)-1].ID, "-")
			if _, err := fmt.Sscanf(text, "%d", &last); err != nil {
				return fmt.Errorf("phase %s: %w", phases[len(phases)-1].ID, err)
			}
		}
		p.ID = fmt.Sprintf("%s-%04d", p.Session, last+1)
	}
	return put(t.tx.Bucket(bucketPhases), phaseKey(p.Session, p.ID), p)
}

// owned is the part of a record that decides whether it is surplus.
type owned struct {
	Session struct {
		Owner    string            `json:"owner"`
		Status   session.Status    `json:"status"`
		EndImage *session.EndImage `json:"endImage"`
	} `json:"session"`
}

// Surplus returns the finished sessions to purge so that at most keep remain, at most limit of them: always the oldest
// of the owner with most, so that one person's sessions never displace those of another who has fewer. A session whose
// container is kept stays.
func (s *Store) Surplus(keep, limit int) ([]session.ID, error) {
	return view(s.db, func(t *Tx) ([]session.ID, error) { return surplus(t.tx, keep, limit) })
}

func surplus(tx *bolt.Tx, keep, limit int) ([]session.ID, error) {
	excess := min((&Tx{tx}).Finished()-keep, limit)
	if excess <= 0 {
		return nil, nil
	}
	var owners []string // in the order of their oldest
	oldest := map[string][]session.ID{}
	for _, id := range entries(tx.Bucket(bucketFinished), nil) {
		var r owned
		if err := unmarshal(tx.Bucket(bucketSessions).Get(id), &r); err != nil {
			return nil, fmt.Errorf("session %s: %w", id, err)
		}
		kept := session.Session{Status: r.Session.Status,
			End: session.End{EndImage: r.Session.EndImage}}.KeepsContainer()
		if owner := r.Session.Owner; !kept {
			if oldest[owner] == nil {
				owners = append(owners, owner)
			}
			oldest[owner] = append(oldest[owner], session.ID(id))
		}
	}
	var ids []session.ID
	for ; excess > 0; excess-- {
		most := ""
		for _, owner := range owners {
			if len(oldest[owner]) > len(oldest[most]) {
				most = owner
			}
		}
		if len(oldest[most]) == 0 {
			break
		}
		ids, oldest[most] = append(ids, oldest[most][0]), oldest[most][1:]
	}
	return ids, nil
}

// Purge removes the records that [Store.Surplus] returned, unless a container is kept by now, and returns them.
func (t *Tx) Purge(surplus []session.ID) ([]session.Session, error) {
	var removed []session.Session
	for _, id := range surplus {
		r, err := load(t.tx, id)
		if session.CodeOf(err) == session.CodeSessionNotFound {
			continue // purged already
		}
		if err != nil {
			return nil, err
		}
		if r.Session.Status.Live() || r.Session.KeepsContainer() {
			continue
		}
		if err := t.drop(r); err != nil {
			return nil, err
		}
		removed = append(removed, r.Session)
	}
	return removed, t.count(-len(removed))
}

func (t *Tx) drop(r record) error {
	cursor := t.tx.Bucket(bucketPhases).Cursor()
	prefix := phaseKey(r.Session.ID, "")
	for k, _ := cursor.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = cursor.Seek(prefix) {
		if err := cursor.Delete(); err != nil {
			return err
		}
	}
	var err error
	if r.Key != "" {
		err = t.tx.Bucket(bucketKeys).Delete(pair(r.Session.Owner, r.Key))
	}
	return errors.Join(err, t.tx.Bucket(bucketFinished).Delete(numberKey(r.Number)),
		t.tx.Bucket(bucketSessions).Delete([]byte(r.Session.ID)))
}

func phaseKey(id session.ID, phase string) []byte { return []byte(string(id) + "/" + phase) }

func pair(owner, text string) []byte { return []byte(owner + "\x00" + text) }
