package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// bucketMoved remembers the sessions that other agents have taken over: id → moved.
var bucketMoved = []byte("moved")

// moved is what is left of a session that another agent has taken over. The key of its launch still leads to it, so
// that the launch is not repeated here.
type moved struct {
	To    session.ID `json:"to"`
	At    time.Time  `json:"at"`
	Owner string     `json:"owner,omitempty"`
	Key   string     `json:"key,omitempty"`
}

// movesKept is how long a move is remembered. Until then it can be asked for again.
const movesKept = 90 * 24 * time.Hour

// Move removes a PENDING session, because the session to of another agent takes its place, and returns it. It returns
// an empty session if that has been done already. It fails with session_read_not-found, and with
// session_update_conflict if another session has taken its place, if it was placed before, or if others wait for it.
func (t *Tx) Move(id, to session.ID, at time.Time) (session.Session, error) {
	if data := t.tx.Bucket(bucketMoved).Get([]byte(id)); data != nil {
		before, err := decoded[moved]("move of", []byte(id), data)
		if err == nil && before.To != to {
			err = cannotMove("has been moved already")
		}
		return session.Session{}, err
	}
	r, err := load(t.tx, id)
	if err != nil {
		return session.Session{}, err
	}
	s := r.Session
	if s.Status != session.Pending || s.Attempt > 0 {
		return session.Session{}, cannotMove("does not wait any more")
	}
	waited, err := t.isWaitedFor(id)
	if err != nil {
		return session.Session{}, err
	}
	if waited {
		return session.Session{}, cannotMove("is waited for by others on this machine")
	}
	err = errors.Join(t.forgetMoves(at.Add(-movesKept)), t.finish(r, s), t.drop(r), t.count(-1), t.turnPage(),
		put(t.tx.Bucket(bucketMoved), []byte(id), moved{to, at, s.Owner, r.Key}))
	if err == nil && r.Key != "" {
		err = t.tx.Bucket(bucketKeys).Put(pair(s.Owner, r.Key), []byte(id))
	}
	return s, err
}

// claimKey makes the key of a launch lead to a session. It fails with store_write_conflict if it leads to another one,
// and with session_update_conflict if that one was moved away, unless the session comes back from there.
func (t *Tx) claimKey(s session.Session, key string) error {
	keys := t.tx.Bucket(bucketKeys)
	switch before := keys.Get(pair(s.Owner, key)); {
	case key == "":
		return nil
	case before == nil, s.From != "" && t.tx.Bucket(bucketMoved).Get(before) != nil:
		return keys.Put(pair(s.Owner, key), []byte(s.ID))
	case t.tx.Bucket(bucketMoved).Get(before) != nil:
		return session.NewError(session.CodeSessionConflict, "The session of this launch was moved to another machine.",
			"Look for it there.")
	}
	return conflict("The key of this launch is in use.")
}

func cannotMove(why string) error {
	return session.NewError(session.CodeSessionConflict, fmt.Sprintf("The session %s.", why),
		"Only a session that waits, and that no other waits for, can be moved to another machine.")
}

func (t *Tx) isWaitedFor(id session.ID) (bool, error) {
	for _, live := range entries(t.tx.Bucket(bucketLive), nil) {
		r, err := load(t.tx, session.ID(live))
		if err != nil || slices.Contains(r.Session.DependsOn, id) {
			return true, err
		}
	}
	return false, nil
}

// forgetMoves drops what is remembered of moves before a time.
func (t *Tx) forgetMoves(before time.Time) error {
	keys := t.tx.Bucket(bucketKeys)
	var old [][]byte
	for id, data := range entries(t.tx.Bucket(bucketMoved), nil) {
		m, err := decoded[moved]("move of", id, data)
		if err != nil {
			return err
		}
		if !m.At.Before(before) {
			continue
		}
		old = append(old, slices.Clone(id))
		if key := pair(m.Owner, m.Key); m.Key != "" && bytes.Equal(keys.Get(key), id) {
			if err := keys.Delete(key); err != nil {
				return err
			}
		}
	}
	for _, id := range old {
		if err := t.tx.Bucket(bucketMoved).Delete(id); err != nil {
			return err
		}
	}
	return nil
}

// lateBuckets are those that a file of the current schema lacks where an older version never needed them.
var lateBuckets = [][]byte{bucketFolders, bucketMoved, bucketServices}

func addLateBuckets(tx *bolt.Tx) error {
	for _, bucket := range lateBuckets {
		if _, err := tx.CreateBucketIfNotExists(bucket); err != nil {
			return err
		}
	}
	return nil
}
