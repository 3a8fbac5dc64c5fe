package store

import (
	"slipway/backend/session"
)

var bucketFolders = []byte("folders") // id → folder

// Folders returns every folder, in any order.
func (s *Store) Folders() ([]session.Folder, error) {
	return view(s.db, (*Tx).Folders)
}

// Folder returns one folder; folder_read_not-found.
func (s *Store) Folder(id session.FolderID) (session.Folder, error) {
	return view(s.db, func(t *Tx) (session.Folder, error) { return t.Folder(id) })
}

// Folders returns every folder.
func (t *Tx) Folders() ([]session.Folder, error) {
	folders := []session.Folder{}
	err := t.tx.Bucket(bucketFolders).ForEach(func(id, data []byte) error {
		f, err := decoded[session.Folder]("folder", id, data)
		folders = append(folders, f)
		return err
	})
	return folders, err
}

// Folder returns one folder; folder_read_not-found.
func (t *Tx) Folder(id session.FolderID) (session.Folder, error) {
	data := t.tx.Bucket(bucketFolders).Get([]byte(id))
	if data == nil {
		return session.Folder{}, session.NoFolder(string(id))
	}
	return decoded[session.Folder]("folder", []byte(id), data)
}

// PutFolder stores a folder, in place of what was there.
func (t *Tx) PutFolder(f session.Folder) error {
	return put(t.tx.Bucket(bucketFolders), []byte(f.ID), f)
}

// DropFolder removes a folder, if it is there.
func (t *Tx) DropFolder(id session.FolderID) error {
	return t.tx.Bucket(bucketFolders).Delete([]byte(id))
}

// FolderUsers returns the live sessions that have a folder mounted.
func (t *Tx) FolderUsers(id session.FolderID) ([]session.FolderUser, error) {
	var users []session.FolderUser
	err := t.tx.Bucket(bucketLive).ForEach(func(_, live []byte) error {
		r, err := load(t.tx, session.ID(live))
		if err != nil {
			return err
		}
		users = append(users, r.Session.UserOf(id)...)
		return nil
	})
	return users, err
}
