// Package store keeps the records of an agent in one bbolt file: sessions with their grants, the phases of their
// history, folders, accounts, and the keys that make a launch safe to repeat. Every change is one transaction, synced
// to disk before it counts, and whole or absent after a crash.
//
// A record is only replaced by its successor: [Tx.Put] compares revisions, and refuses a status that the transition
// table does not allow. The books, that is the grants and the queue, have a revision of their own, so that a plan made
// without a lock is stored only if it is still true.
//
// [Store.Check] audits all of it. [Shelf] is a second, simpler file for the few documents of a hub.
package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"slipway/backend/session"
)

// Config says where a store is.
type Config struct {
	Path string // of the file; its directory is created
	// Fault, if set, makes a change fail at the points "begin", "commit" and "committed". After "committed" the change
	// is stored although it fails, as when a process dies before it can answer.
	Fault func(point string) error
}

// Store is an open store. Its methods are safe for concurrent use.
type Store struct {
	db       *bolt.DB
	instance string
	secret   []byte
	fault    func(string) error
	changes  atomic.Uint64
	live     liveCache
}

// The buckets. Numbers in keys are big-endian, so that their order is kept.
var (
	bucketMeta     = []byte("meta")     // schema, instance, books, finished, secret
	bucketSessions = []byte("sessions") // id → record
	bucketLive     = []byte("live")     // number of arrival → id
	bucketFinished = []byte("finished") // number of arrival → id
	bucketNames    = []byte("names")    // owner NUL name → id, live sessions only
	bucketKeys     = []byte("keys")     // owner NUL key → id
	bucketPhases   = []byte("phases")   // id "/" number → phase
	buckets        = [][]byte{bucketMeta, bucketSessions, bucketLive, bucketFinished, bucketNames, bucketKeys,
		bucketPhases, bucketAccounts, bucketImages, bucketClaims, bucketFolders, bucketMoved, bucketServices}
)

type record struct {
	Number  uint64          `json:"number"` // of arrival, from 1
	Key     string          `json:"key,omitempty"`
	Session session.Session `json:"session"`
}

// Open opens the store, creates it if there is none and updates an older schema. It fails with store_open_locked while
// another process uses it, and with store_open_failed for a file that is damaged or of a newer version.
func Open(config Config) (*Store, error) {
	db, err := openFile(config.Path)
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, fault: config.Fault}
	if s.fault == nil {
		s.fault = func(string) error { return nil }
	}
	if err := prepare(db, migrations); err != nil {
		db.Close() //nolint:errcheck // the first error says more
		return nil, err
	}
	err = db.View(func(tx *bolt.Tx) error {
		s.instance = string(tx.Bucket(bucketMeta).Get(metaInstance))
		s.secret = slices.Clone(tx.Bucket(bucketMeta).Get(metaSecret))
		return nil
	})
	if err != nil {
		db.Close() //nolint:errcheck // the first error says more
		return nil, readError(err)
	}
	return s, nil
}

// openFile opens a bbolt file that only this user may read.
func openFile(path string) (*bolt.DB, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		var db *bolt.DB
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
		if err == nil {
			return db, nil
		}
	}
	e := session.WrapError(err, session.CodeStoreFailed, fmt.Sprintf("The file %s cannot be opened.", path),
		"Check the permissions of its directory and the free space on its disk.")
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		e.Code, e.Message, e.Hint = session.CodeStoreLocked, fmt.Sprintf("Another Slipway is using %s.", path),
			"Use that one, or end it first."
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum),
		errors.Is(err, bolterrors.ErrVersionMismatch):
		e.Code, e.Message, e.Hint = session.CodeStoreFailed, fmt.Sprintf("The file %s is damaged.", path),
			"Move it away and start again; running sessions are found by their labels."
	}
	return nil, e
}

// Close closes the file. It waits for reads and changes under way.
func (s *Store) Close() error { return s.db.Close() }

// Instance is the random id that this store got when it was created.
func (s *Store) Instance() string { return s.instance }

// Secret is 32 random bytes of this store, to make keys from. The caller must not change them.
func (s *Store) Secret() []byte { return s.secret }

// Changes counts the transactions that were stored since Open.
func (s *Store) Changes() uint64 { return s.changes.Load() }

// Books returns the revision of the books: it grows when the queue or grants change.
func (s *Store) Books() (uint64, error) {
	return view(s.db, func(t *Tx) (uint64, error) { return t.Books(), nil })
}

// Get returns one session; session_read_not-found.
func (s *Store) Get(id session.ID) (session.Session, error) {
	return view(s.db, func(t *Tx) (session.Session, error) { return t.Get(id) })
}

// Live returns the live sessions in the order of their arrival, and the revision of the books that they belong to.
func (s *Store) Live() ([]session.Session, uint64, error) {
	var live []session.Session
	var books uint64
	err := s.db.View(func(tx *bolt.Tx) error {
		books = number(tx.Bucket(bucketMeta).Get(metaBooks))
		return tx.Bucket(bucketLive).ForEach(func(_, id []byte) error {
			r, err := load(tx, session.ID(id))
			live = append(live, r.Session)
			return err
		})
	})
	return live, books, readError(err)
}

type liveCache struct {
	mu    sync.Mutex // guards what follows
	list  []session.Session
	at    uint64 // count of changes before the list was read
	known bool
}

// LiveSessions are the live sessions, read once between two changes. The caller must not change them.
func (s *Store) LiveSessions() ([]session.Session, error) {
	c := &s.live
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes := s.Changes(); !c.known || c.at != changes {
		live, _, err := s.Live()
		if err != nil {
			return nil, err
		}
		c.list, c.at, c.known = live, changes, true
	}
	return c.list, nil
}

// List returns sessions, newest first. Without an owner it decodes only those that it returns.
func (s *Store) List(filter session.Filter) ([]session.Session, error) {
	list := []session.Session{}
	if filter.Key != "" {
		one, found, err := s.ByKey(filter.Owner, filter.Key)
		if found {
			list = append(list, one)
		}
		return list, err
	}
	err := s.db.View(func(tx *bolt.Tx) error {
		rest := filter
		var ids [][]byte
		for id := range newestFirst(tx, filter) {
			if filter.Owner == "" && rest.Offset > 0 {
				rest.Offset--
			} else if ids = append(ids, id); filter.Owner == "" && len(ids) == filter.Limit {
				break
			}
		}
		if filter.Owner == "" {
			list = slices.Grow(list, len(ids))
		}
		for _, id := range ids {
			r, err := load(tx, session.ID(id))
			switch {
			case err != nil:
				return err
			case filter.Owner != "" && r.Session.Owner != filter.Owner:
				continue
			case rest.Offset > 0:
				rest.Offset--
				continue
			}
			if list = append(list, r.Session); len(list) == filter.Limit {
				return nil
			}
		}
		return nil
	})
	return list, readError(err)
}

func newestFirst(tx *bolt.Tx, filter session.Filter) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var cursors [2]*bolt.Cursor
		var numbers, ids [2][]byte
		for i, wanted := range []bool{filter.Live || !filter.Finished, filter.Finished || !filter.Live} {
			if wanted {
				cursors[i] = tx.Bucket([][]byte{bucketLive, bucketFinished}[i]).Cursor()
				numbers[i], ids[i] = cursors[i].Last()
			}
		}
		for numbers[0] != nil || numbers[1] != nil {
			next := 0
			if bytes.Compare(numbers[1], numbers[0]) > 0 {
				next = 1
			}
			if !yield(ids[next]) {
				return
			}
			numbers[next], ids[next] = cursors[next].Prev()
		}
	}
}

// History returns the phases of a session in the order of their creation; session_read_not-found.
func (s *Store) History(id session.ID) ([]session.Phase, error) {
	return view(s.db, func(t *Tx) ([]session.Phase, error) {
		if _, err := load(t.tx, id); err != nil {
			return []session.Phase{}, err
		}
		return t.Phases(id)
	})
}

func load(tx *bolt.Tx, id session.ID) (record, error) {
	data := tx.Bucket(bucketSessions).Get([]byte(id))
	if data == nil {
		return record{}, session.NoSession(id)
	}
	return decoded[record]("session", []byte(id), data)
}

func view[T any](db *bolt.DB, read func(*Tx) (T, error)) (found T, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		found, err = read(&Tx{tx})
		return err
	})
	return found, readError(err)
}

func decoded[T any](kind string, key, data []byte) (value T, err error) {
	if err := unmarshal(data, &value); err != nil {
		return value, session.WrapError(err, session.CodeStoreRead,
			fmt.Sprintf("The record of the %s %s cannot be read.", kind, key),
			"It was written by another version of Slipway.")
	}
	return value, nil
}

func put(bucket *bolt.Bucket, key []byte, value any) error {
	data, err := json.Marshal(value, jsonv1.DefaultOptionsV1(), json.OmitZeroStructFields(true))
	if err != nil {
		return err
	}
	return bucket.Put(key, data)
}

// unmarshal decodes what [put] encoded into a zero value, as the standard library does, which encoded it once.
func unmarshal(data []byte, value any) error {
	return json.Unmarshal(data, value, jsonv1.DefaultOptionsV1())
}

// entries are the keys of a bucket with a prefix, in order, with their values. None may be deleted meanwhile.
func entries(bucket *bolt.Bucket, prefix []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		cursor := bucket.Cursor()
		for key, value := cursor.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
			if !yield(key, value) {
				return
			}
		}
	}
}

func number(key []byte) uint64 {
	if len(key) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(key)
}

func numberKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// known reports whether err is nil or has a code already.
func known(err error) bool { return err == nil || session.CodeOf(err) != "" }

func readError(err error) error {
	if known(err) {
		return err
	}
	return session.WrapError(err, session.CodeStoreRead, "The session store cannot be read.", "Look at Slipway's log.")
}

func writeError(err error) error {
	switch {
	case known(err):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return session.WrapError(err, session.CodeDiskFull, "The disk that holds Slipway's files is full.",
			"Free some space on it and try again.")
	}
	return session.WrapError(err, session.CodeStoreWrite, "The change could not be stored.",
		"Check the disk that holds Slipway's files.")
}

// Finished returns how many finished sessions are kept.
func (s *Store) Finished() (int, error) {
	return view(s.db, func(t *Tx) (int, error) { return t.Finished(), nil })
}

// ByKey returns the session that an owner created under an idempotency key.
func (s *Store) ByKey(owner, key string) (found session.Session, known bool, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		found, known, err = (&Tx{tx}).ByKey(owner, key)
		return err
	})
	return found, known, readError(err)
}
