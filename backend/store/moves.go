package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// bucketMoved remembers the sessions that other agents have taken over: id → moved.
var bucketMoved = []byte("moved")

// moved is what is left of a session that another agent has taken over.
type moved struct {
	To session.ID `json:"to"`
	At time.Time  `json:"at"`
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
	return s, errors.Join(t.forgetMoves(at.Add(-movesKept)), t.finish(r, s), t.drop(r), t.count(-1), t.turnPage(),
		put(t.tx.Bucket(bucketMoved), []byte(id), moved{to, at}))
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
	var old [][]byte
	for id, data := range entries(t.tx.Bucket(bucketMoved), nil) {
		m, err := decoded[moved]("move of", id, data)
		if err != nil {
			return err
		}
		if m.At.Before(before) {
			old = append(old, slices.Clone(id))
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
