package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// Keys of the meta bucket.
var (
	metaSchema   = []byte("schema")
	metaInstance = []byte("instance")
	metaBooks    = []byte("books")
	metaFinished = []byte("finished")
	metaSecret   = []byte("secret")
	// metaServicePort is the port of loopback of services, in decimal.
	metaServicePort = []byte("serviceport")
)

type migration func(*bolt.Tx) error

// migrations[i] leads from schema i+1 to schema i+2. A test opens a database of every released schema, from testdata.
var migrations = []migration{toSchema2, toSchema3}

// toSchema2 adds accounts and a secret, and sets the default priority in all records and the grants of single kernels.
func toSchema2(tx *bolt.Tx) error {
	if _, err := tx.CreateBucketIfNotExists(bucketAccounts); err != nil {
		return err
	}
	if err := makeSecret(tx.Bucket(bucketMeta)); err != nil {
		return err
	}
	var changed []record
	for id, data := range entries(tx.Bucket(bucketSessions), nil) {
		r, err := decoded[record]("session", id, data)
		if err != nil {
			return err
		}
		r.Session.Priority = session.DefaultPriority
		if len(r.Session.Kernels) == 1 {
			r.Session.Kernels[0].Grants = r.Session.Grants
		}
		changed = append(changed, r)
	}
	for _, r := range changed {
		if err := (&Tx{tx}).save(r); err != nil {
			return err
		}
	}
	return nil
}

// toSchema3 adds records of images. The labels that counted before prove nothing: anybody can write them into an image.
// What the records of sessions say becomes claims, which the agent compares with the images.
func toSchema3(tx *bolt.Tx) error {
	for _, name := range [][]byte{bucketImages, bucketClaims} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if err := receivedToSchema3(&Tx{tx}); err != nil {
		return err
	}
	instance := string(tx.Bucket(bucketMeta).Get(metaInstance))
	for id, data := range entries(tx.Bucket(bucketSessions), nil) {
		r, err := decoded[record]("session", id, data)
		if err != nil {
			return err
		}
		names, err := madeOf(tx, r.Session)
		if err != nil {
			return err
		}
		for _, name := range names {
			origin := session.ImageOrigin{Name: name, Owner: r.Session.Owner, Instance: instance, Session: r.Session.ID}
			if err := (&Tx{tx}).PutImageClaim(session.CommitRef(origin.Owner, name), origin); err != nil {
				return err
			}
		}
	}
	return nil
}

func madeOf(tx *bolt.Tx, s session.Session) (names []string, err error) {
	if s.EndImage != nil && s.EndImage.State == session.WorkDone {
		names = append(names, s.EndImage.Name)
	}
	phases, err := (&Tx{tx}).Phases(s.ID)
	for _, p := range phases {
		for _, step := range p.Steps {
			if p.Phase == session.PhaseCommit && step.Step == "commit" && step.Result == session.OutcomeSuccess {
				names = append(names, step.Message)
			}
		}
	}
	return names, err
}

// receivedToSchema3 limits images of other agents to those who uploaded them.
func receivedToSchema3(t *Tx) error {
	const key = "received-images"
	accounts := t.tx.Bucket(bucketAccounts)
	data := accounts.Get([]byte(key))
	if data == nil {
		return nil
	}
	received, err := decoded[map[string][]string]("account", []byte(key), data)
	if err != nil {
		return err
	}
	for id, owners := range received {
		if err := t.PutImage(id, Image{Owners: owners}); err != nil {
			return err
		}
	}
	return accounts.Delete([]byte(key))
}

func makeSecret(meta *bolt.Bucket) error {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: see the documentation of crypto/rand
	return meta.Put(metaSecret, secret[:])
}

// prepare creates the buckets of a new file or migrates an old one, in one transaction.
func prepare(db *bolt.DB, migrations []migration) error {
	current := uint64(len(migrations) + 1)
	done, err := view(db, func(t *Tx) (bool, error) {
		meta := t.tx.Bucket(bucketMeta)
		return meta != nil && number(meta.Get(metaSchema)) == current && !slices.ContainsFunc(lateBuckets,
			func(name []byte) bool { return t.tx.Bucket(name) == nil }), nil
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
		if err := addLateBuckets(tx); err != nil {
			return err
		}
		return meta.Put(metaSchema, numberKey(current))
	})
	return writeError(err)
}

func layOut(tx *bolt.Tx, schema uint64) error {
	for _, name := range buckets {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: see the documentation of crypto/rand
	meta := tx.Bucket(bucketMeta)
	return errors.Join(meta.Put(metaInstance, []byte(hex.EncodeToString(id[:]))), makeSecret(meta),
		meta.Put(metaSchema, numberKey(schema)))
}
