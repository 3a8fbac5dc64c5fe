package store

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// bucketAccounts holds the accounts of the agent: key → JSON.
var bucketAccounts = []byte("accounts")

// PutAccount stores value under key.
func (t *Tx) PutAccount(key string, value any) error {
	return put(t.tx.Bucket(bucketAccounts), []byte(key), value)
}

// PruneAccounts removes at most limit entries with keys from first on and before last, and returns how many it removed.
func (t *Tx) PruneAccounts(first, last string, limit int) (int, error) {
	cursor, removed := t.tx.Bucket(bucketAccounts).Cursor(), 0
	for ; removed < limit; removed++ {
		key, _ := cursor.Seek([]byte(first))
		if key == nil || string(key) >= last {
			break
		}
		if err := cursor.Delete(); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// Account reads the value of key and reports whether there is one.
func (s *Store) Account(key string, value any) (found bool, err error) {
	err = s.EachAccount(key, key+"\x00", func(_ string, data []byte) error {
		found = true
		return unmarshal(data, value)
	})
	return found, err
}

// EachAccount calls fn for each key from first on and before last, in order. data is valid during the call only, and fn
// must not change the store. It returns the first error of fn.
func (s *Store) EachAccount(first, last string, fn func(key string, data []byte) error) error {
	err := s.db.View(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(bucketAccounts).Cursor()
		for key, data := cursor.Seek([]byte(first)); key != nil && string(key) < last; key, data = cursor.Next() {
			if err := fn(string(key), data); err != nil {
				return session.WrapError(err, session.CodeStoreRead, fmt.Sprintf("The account %s cannot be read.", key),
					"It was written by another version of Slipway.")
			}
		}
		return nil
	})
	return readError(err)
}
