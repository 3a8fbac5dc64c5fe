package store

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// owned is what decides whether a record is surplus.
type owned struct {
	Session struct {
		Owner    string            `json:"owner"`
		Status   session.Status    `json:"status"`
		EndImage *session.EndImage `json:"endImage"`
	} `json:"session"`
}

// Surplus returns the finished sessions that must go so that at most keep remain, at most limit of them: always the
// oldest of whoever has most, so that no number of sessions of one person purges those of another who has fewer. One
// whose container is kept stays.
func (s *Store) Surplus(keep, limit int) (ids []session.ID, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		ids, err = surplus(tx, keep, limit)
		return err
	})
	return ids, readError(err)
}

func surplus(tx *bolt.Tx, keep, limit int) ([]session.ID, error) {
	excess := min((&Tx{tx}).Finished()-keep, limit)
	if excess <= 0 {
		return nil, nil
	}
	var owners []string // in the order of their oldest
	oldest := map[string][]session.ID{}
	err := tx.Bucket(bucketFinished).ForEach(func(_, id []byte) error {
		var r owned
		if err := json.Unmarshal(tx.Bucket(bucketSessions).Get(id), &r); err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
		kept := session.Session{Status: r.Session.Status,
			End: session.End{EndImage: r.Session.EndImage}}.KeepsContainer()
		if owner := r.Session.Owner; !kept {
			if oldest[owner] == nil {
				owners = append(owners, owner)
			}
			oldest[owner] = append(oldest[owner], session.ID(id))
		}
		return nil
	})
	var ids []session.ID
	for ; excess > 0 && err == nil; excess-- {
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
	return ids, err
}
