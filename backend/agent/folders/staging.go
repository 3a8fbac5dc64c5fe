package folders

import (
	"context"
	"errors"

	"slipway/backend/session"
	"slipway/backend/store"
)

// Staging is a managed folder that is filled before it exists.
type Staging struct {
	Dir     string // to be filled
	folders *Folders
	folder  session.Folder
}

// Stage begins a folder, which Keep makes exist. It fails as CreateFolder does. The caller discards or keeps it.
func Stage(f *Folders, req session.FolderRequest) (*Staging, error) {
	one, err := f.config.wanted(req)
	if err != nil {
		return nil, err
	}
	all, err := f.config.Records.Folders()
	if err == nil {
		err = admit(all, one)
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.staged[one.ID] = true
	f.mu.Unlock()
	s := &Staging{folders: f, folder: one}
	if s.Dir, err = f.disk.Stage(one); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

func (s *Staging) release() {
	s.folders.mu.Lock()
	defer s.folders.mu.Unlock()
	delete(s.folders.staged, s.folder.ID)
}

// Keep makes the folder exist with what its directory holds. If it fails, nothing is left.
func (s *Staging) Keep() error {
	f := s.folders
	err := f.disk.Fit(s.folder)
	if err == nil {
		err = f.config.Records.Update(func(tx *store.Tx) error {
			all, err := tx.Folders()
			if err == nil {
				err = admit(all, s.folder)
			}
			if err != nil {
				return err
			}
			return tx.PutFolder(s.folder)
		})
	}
	if err == nil {
		err = f.disk.Settle(s.folder)
	}
	if err == nil {
		s.release()
		return nil
	}
	// A change that failed may be stored all the same. If that cannot be undone, the next start settles it.
	if drop := f.config.Records.Update(func(tx *store.Tx) error {
		return tx.DropFolder(s.folder.ID)
	}); drop != nil {
		return errors.Join(err, drop)
	}
	return errors.Join(err, s.Discard())
}

// Discard removes the directory.
func (s *Staging) Discard() error {
	defer s.release()
	return s.folders.disk.Unstage(context.Background(), s.folder)
}

// settleStaged removes what earlier runs of the agent have staged, or gives it to its folder if that was stored.
func settleStaged(ctx context.Context, f *Folders) {
	ids, err := f.disk.Staged()
	for _, id := range ids {
		f.mu.Lock()
		mine := f.staged[id]
		f.mu.Unlock()
		if mine {
			continue
		}
		one, missing := f.config.Records.Folder(id)
		switch {
		case missing == nil:
			err = errors.Join(err, f.disk.Settle(one))
		case session.CodeOf(missing) == session.CodeFolderNotFound:
			err = errors.Join(err, f.disk.Unstage(ctx, session.Folder{ID: id}))
		}
	}
	if err != nil && ctx.Err() == nil {
		f.config.Log.Warn("folders that were not finished could not be removed", "error", err)
	}
}
