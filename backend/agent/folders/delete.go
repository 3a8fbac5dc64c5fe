package folders

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const (
	retryDelete = time.Minute     // before a folder that could not be deleted is tried again
	storeEvery  = 5 * time.Second // between two writes of how much of a folder is deleted
)

// removal is the deletion of one folder while it runs.
type removal struct {
	folder session.Folder // as stored when the deletion began
	stop   context.CancelFunc
	ended  chan struct{}         // closed when the deletion has ended
	done   session.FolderRemoval // belongs to the goroutine that deletes
	// removed is what is deleted of the folder so far, nil while it is whole.
	removed atomic.Pointer[session.FolderRemoval]
}

func (r *removal) took(files int, bytes gpu.Bytes) {
	r.done.Files += files
	r.done.Bytes += bytes
	r.removed.Store(new(r.done))
}

// removed is what is deleted so far of a folder that is to be deleted.
func (f *Folders) removed(one session.Folder) *session.FolderRemoval {
	f.mu.Lock()
	going := f.going
	f.mu.Unlock()
	if going != nil && going.folder.ID == one.ID {
		return going.removed.Load()
	}
	return one.Removed
}

// deletePending deletes the folders that are to be deleted. It reports whether something is left.
func (f *Folders) deletePending(ctx context.Context) (left bool) {
	all, err := f.config.Records.Folders()
	if err != nil {
		f.config.Log.Warn("the folders cannot be read", "error", err)
		return true
	}
	for _, one := range all {
		if one.State != session.FolderDeleting || ctx.Err() != nil {
			continue
		}
		if err := f.delete(ctx, one.ID); err != nil {
			left = true
			f.config.Log.Warn("a folder could not be deleted", "folder", one.ID, "error", err)
		}
	}
	return left
}

// delete deletes one folder. If stopped, the rest returns to the trash; if ctx ends, it is for the next start.
func (f *Folders) delete(ctx context.Context, id session.FolderID) error {
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	going, err := f.claim(id, stop)
	if err != nil || going == nil {
		return err
	}
	defer f.release(going)
	stored := f.config.Clock.Now()
	err = f.config.Remove(stopping, going.folder, func(files int, bytes gpu.Bytes) {
		going.took(files, bytes)
		if now := f.config.Clock.Now(); now.Sub(stored) >= storeEvery {
			stored = now
			if err := f.storeProgress(going, ""); err != nil {
				f.config.Log.Warn("how much of a folder is deleted could not be stored", "folder", id, "error", err)
			}
		}
	})
	switch {
	case err == nil:
		return f.config.Records.Update(func(tx *store.Tx) error { return tx.DropFolder(id) })
	case ctx.Err() != nil:
		return f.storeProgress(going, "")
	case stopping.Err() != nil:
		return f.putBack(going.folder, going.removed.Load())
	}
	return errors.Join(f.storeProgress(going, session.AsError(err, session.CodeFileFailed).Message), err)
}

// claim makes a folder the one that is being deleted. It returns nil if the folder is not to be deleted any more.
func (f *Folders) claim(id session.FolderID, stop context.CancelFunc) (*removal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, err := f.config.Records.Folder(id)
	if err != nil || one.State != session.FolderDeleting {
		return nil, err
	}
	going := &removal{folder: one, stop: stop, ended: make(chan struct{})}
	switch {
	case one.Removed != nil:
		going.done = *one.Removed
		going.removed.Store(one.Removed)
	case one.Usage != nil:
		going.done.OfFiles, going.done.OfBytes = one.Usage.Files, one.Usage.Bytes
	}
	f.going = going
	return going, nil
}

func (f *Folders) release(going *removal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.going = nil
	close(going.ended)
}

// storeProgress stores how much of a folder is deleted, and why not more.
func (f *Folders) storeProgress(going *removal, problem string) error {
	return f.config.Records.Update(func(tx *store.Tx) error {
		one := going.folder
		one.Removed, one.Problem = going.removed.Load(), problem
		return tx.PutFolder(one)
	})
}

// putBack returns a folder that was to be deleted to the trash, and has the rest of it counted.
func (f *Folders) putBack(one session.Folder, removed *session.FolderRemoval) error {
	if err := f.disk.PutBack(one); err != nil {
		return err
	}
	one.State, one.Problem, one.Removed = session.FolderTrashed, "", removed
	if removed != nil {
		one.Usage = leftOf(*removed, one.Usage)
	}
	if err := f.config.Records.Update(func(tx *store.Tx) error { return tx.PutFolder(one) }); err != nil {
		return err
	}
	f.counter.Ask(one.ID)
	return nil
}

func (f *Folders) DeleteFolder(_ context.Context, id session.FolderID) error {
	err := f.config.Records.Update(func(tx *store.Tx) error {
		one, err := tx.Folder(id)
		if err != nil {
			return err
		}
		if one.State == session.FolderDeleting {
			return records.ErrUnchanged
		}
		if one.State != session.FolderTrashed {
			return conflict("Put it there first.", "The folder %s is not in the trash.", one.Name)
		}
		if err := unused(tx, "delete", one); err != nil {
			return err
		}
		if one.Linked() {
			return tx.DropFolder(id)
		}
		one.State = session.FolderDeleting
		if r := one.Removed; r != nil {
			r.OfFiles, r.OfBytes = 0, 0
			if one.Usage != nil {
				r.OfFiles, r.OfBytes = r.Files+one.Usage.Files, r.Bytes+one.Usage.Bytes
			}
		}
		return tx.PutFolder(one)
	})
	if err != nil {
		return err
	}
	f.counter.Forget(id)
	pace.Signal(f.due)
	return nil
}

func (f *Folders) StopDeleting(ctx context.Context, id session.FolderID) (session.Folder, error) {
	if err := f.stop(ctx, id); err != nil {
		return session.Folder{}, err
	}
	return f.GetFolder(ctx, id)
}

// stop stops the deletion of a folder and returns when nothing more of it is deleted.
func (f *Folders) stop(ctx context.Context, id session.FolderID) error {
	for {
		going, err := f.stopped(id)
		if going == nil {
			return err
		}
		going.stop()
		select {
		case <-going.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stopped returns the folder's running deletion, which then puts the folder back, or puts it back itself.
func (f *Folders) stopped(id session.FolderID) (*removal, error) {
	f.mu.Lock()
	defer f.mu.Unlock() // no deletion begins meanwhile
	if f.going != nil && f.going.folder.ID == id {
		return f.going, nil
	}
	one, err := f.config.Records.Folder(id)
	if err != nil || one.State != session.FolderDeleting {
		return nil, err
	}
	return nil, f.putBack(one, one.Removed)
}

// leftOf is what a folder still holds as far as known, until it is counted.
func leftOf(r session.FolderRemoval, counted *session.FolderUsage) *session.FolderUsage {
	if counted == nil || r.OfFiles == 0 {
		return nil
	}
	left := *counted
	left.Files, left.Bytes = max(r.OfFiles-r.Files, 0), max(r.OfBytes-r.Bytes, 0)
	return &left
}
