package store

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// The keys of the meta bucket.
var (
	metaSchema   = []byte("schema")
	metaInstance = []byte("instance")
	metaBooks    = []byte("books")
	metaFinished = []byte("finished")
	metaSecret   = []byte("secret")
)

// migration brings a file from one schema to the next, in place.
type migration func(*bolt.Tx) error

// migrations[i] leads from schema i+1 to schema i+2. A database of every schema that was ever released lies in testdata
// and is opened by a test.
var migrations = []migration{toSchema2, toSchema3}

// toSchema2 makes room for accounts, gives the store a secret, gives the live sessions the usual priority and their
// kernels the grants that were the session's.
func toSchema2(tx *bolt.Tx) error {
	if _, err := tx.CreateBucketIfNotExists(bucketAccounts); err != nil {
		return err
	}
	if err := makeSecret(tx.Bucket(bucketMeta)); err != nil {
		return err
	}
	sessions := tx.Bucket(bucketSessions)
	changed := map[string]record{}
	err := sessions.ForEach(func(id, data []byte) error {
		r, err := decoded[record]("session", id, data)
		if err != nil {
			return err
		}
		r.Session.Priority = session.DefaultPriority
		if len(r.Session.Kernels) == 1 {
			r.Session.Kernels[0].Grants = r.Session.Grants
		}
		changed[string(id)] = r
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range changed {
		if err := (&Tx{tx}).save(r); err != nil {
			return err
		}
	}
	return nil
}

func makeSecret(meta *bolt.Bucket) error {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: see the documentation of crypto/rand
	return meta.Put(metaSecret, secret[:])
}

// prepare creates an empty file's buckets or migrates an old file's, each in one transaction.
func prepare(db *bolt.DB, migrations []migration) error {
	current := uint64(len(migrations) + 1)
	done, err := view(db, func(tx *bolt.Tx) (bool, error) {
		meta := tx.Bucket(bucketMeta)
		return meta != nil && number(meta.Get(metaSchema)) == current && tx.Bucket(bucketFolders) != nil, nil
	})
	if done || err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return layOut(tx, current)
		}
		schema := number(meta.Get(metaSchema))
		if schema == 0 || schema > current {
			return session.NewError(session.CodeStoreFailed,
				fmt.Sprintf("The session store has schema %d; this Slipway knows up to %d.", schema, current),
				"Use the newer Slipway that wrote it.")
		}
		for ; schema < current; schema++ {
			if err := migrations[schema-1](tx); err != nil {
				return fmt.Errorf("migrate from schema %d: %w", schema, err)
			}
		}
		// A file of the current schema lacks it where no folder was ever made.
		if _, err := tx.CreateBucketIfNotExists(bucketFolders); err != nil {
			return err
		}
		return meta.Put(metaSchema, numberKey(current))
	})
	return writeError(err)
}

// layOut makes the buckets of a new file.
func layOut(tx *bolt.Tx, schema uint64) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: see the documentation of crypto/rand
	meta := tx.Bucket(bucketMeta)
	if err := meta.Put(metaInstance, []byte(hex.EncodeToString(id[:]))); err != nil {
		return err
	}
	if err := makeSecret(meta); err != nil {
		return err
	}
	return meta.Put(metaSchema, numberKey(schema))
}
