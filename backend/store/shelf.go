package store

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// Shelf keeps a few JSON documents by key, such as a hub's settings. Its methods are safe for concurrent use.
type Shelf struct {
	db *bolt.DB
}

var bucketShelf = []byte("shelf")

// OpenShelf opens the file or creates it. It fails as [Open] does.
func OpenShelf(path string) (*Shelf, error) {
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketShelf)
		return err
	})
	if err != nil {
		db.Close() //nolint:errcheck // the first error says more
		return nil, writeError(err)
	}
	return &Shelf{db: db}, nil
}

// Close closes the file.
func (s *Shelf) Close() error { return s.db.Close() }

// Load reads the document under key into v and reports whether there is one; else v stays as it was.
func (s *Shelf) Load(key string, v any) (bool, error) {
	return view(s.db, func(t *Tx) (bool, error) {
		data := t.tx.Bucket(bucketShelf).Get([]byte(key))
		if data == nil {
			return false, nil
		}
		if err := json.Unmarshal(data, v); err != nil {
			return true, session.WrapError(err, session.CodeStoreRead,
				fmt.Sprintf("What is kept as %q cannot be read.", key), "It was written by another version of Slipway.")
		}
		return true, nil
	})
}

// Save keeps v under key in place of what was there.
func (s *Shelf) Save(key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return &session.Error{Code: session.CodeStoreWrite, Message: fmt.Sprintf("%q cannot be kept.", key), Err: err}
	}
	return writeError(s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketShelf).Put([]byte(key), data) }))
}
