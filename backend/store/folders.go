package store

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
)

// bucketFolders holds the folders: id → record. It is made with the first one.
var bucketFolders = []byte("folders")

// Folders returns every folder, in no order that means anything.
func (s *Store) Folders() ([]session.Folder, error) {
	folders := []session.Folder{}
	err := s.db.View(func(tx *bolt.Tx) error {
		return eachFolder(tx, func(f session.Folder) error {
			folders = append(folders, f)
			return nil
		})
	})
	return folders, readError(err)
}

// Folder returns one folder; folder_read_not-found.
func (s *Store) Folder(id session.FolderID) (session.Folder, error) {
	var f session.Folder
	err := s.db.View(func(tx *bolt.Tx) (err error) {
		f, err = loadFolder(tx, id)
		return err
	})
	return f, readError(err)
}

// Folders returns every folder.
func (t *Tx) Folders() ([]session.Folder, error) {
	var folders []session.Folder
	err := eachFolder(t.tx, func(f session.Folder) error {
		folders = append(folders, f)
		return nil
	})
	return folders, err
}

// Folder returns one folder; folder_read_not-found.
func (t *Tx) Folder(id session.FolderID) (session.Folder, error) {
	return loadFolder(t.tx, id)
}

// PutFolder stores a folder, in place of what was there.
func (t *Tx) PutFolder(f session.Folder) error {
	bucket, err := t.tx.CreateBucketIfNotExists(bucketFolders)
	if err != nil {
		return err
	}
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return bucket.Put([]byte(f.ID), data)
}

// DropFolder forgets a folder. One that is not there is no failure.
func (t *Tx) DropFolder(id session.FolderID) error {
	bucket := t.tx.Bucket(bucketFolders)
	if bucket == nil {
		return nil
	}
	return bucket.Delete([]byte(id))
}

// FolderUsers returns the live sessions that have a folder mounted.
func (t *Tx) FolderUsers(id session.FolderID) ([]session.FolderUser, error) {
	var users []session.FolderUser
	err := t.tx.Bucket(bucketLive).ForEach(func(_, live []byte) error {
		r, err := load(t.tx, session.ID(live))
		if err != nil {
			return err
		}
		for _, m := range r.Session.Folders {
			if m.Folder == id {
				users = append(users, session.FolderUser{Session: r.Session.ID, Name: r.Session.Name,
					Owner: r.Session.Owner})
				break
			}
		}
		return nil
	})
	return users, err
}

func loadFolder(tx *bolt.Tx, id session.FolderID) (session.Folder, error) {
	var data []byte
	if bucket := tx.Bucket(bucketFolders); bucket != nil {
		data = bucket.Get([]byte(id))
	}
	if data == nil {
		return session.Folder{}, session.NoFolder(string(id))
	}
	return readFolder(id, data)
}

func readFolder(id session.FolderID, data []byte) (session.Folder, error) {
	var f session.Folder
	if err := json.Unmarshal(data, &f); err != nil {
		return f, &session.Error{Code: CodeRead, Message: fmt.Sprintf("The record of the folder %s cannot be read.",
			id), Hint: "It was written by another version of Slipway.", Err: err}
	}
	return f, nil
}

func eachFolder(tx *bolt.Tx, fn func(session.Folder) error) error {
	bucket := tx.Bucket(bucketFolders)
	if bucket == nil {
		return nil
	}
	return bucket.ForEach(func(id, data []byte) error {
		f, err := readFolder(session.FolderID(id), data)
		if err != nil {
			return err
		}
		return fn(f)
	})
}
