package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"slipway/backend/folder"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const (
	// recount is how old a count of what a folder holds may be when it is shown.
	recount = 10 * time.Minute
)

// errNothing rolls back a transaction that has changed nothing: it would cost a
// sync of the disk all the same.
var errNothing = errors.New("nothing changed")

// folders keeps the data folders of the machine.
type folders struct {
	agent   *Agent
	disk    folder.Disk
	counter *folder.Counter
	// of capacity 1: a folder is to be deleted
	due    chan struct{}
	remove func(ctx context.Context, f session.Folder, gone func(files int, bytes gpu.Bytes)) error // that of disk

	mu    sync.Mutex // guards dirty and going
	dirty map[session.FolderID]bool
	going *removal // the folder that is deleted now
}

func newFolders(a *Agent) *folders {
	f := &folders{
		agent: a, disk: folder.NewDisk(filepath.Join(a.config.Dir, "folders"), a.config.UID, a.config.GID),
		due: make(chan struct{}, 1), dirty: map[session.FolderID]bool{},
	}
	f.remove = f.disk.Remove
	f.counter = folder.NewCounter(f.count)
	return f
}

// run counts what folders hold and deletes those that are to be deleted.
func (f *folders) run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { f.counter.Run(ctx) })
	for {
		pending := f.deletePending(ctx)
		again := make(<-chan time.Time)
		if pending {
			again = f.agent.clock.Timer(retryDelete).C
		}
		select {
		case <-f.due:
		case <-again:
		case <-ctx.Done():
			group.Wait()
			return
		}
	}
}

// count counts what one folder holds and keeps it.
func (f *folders) count(ctx context.Context, id session.FolderID) error {
	f.mu.Lock()
	delete(f.dirty, id)
	f.mu.Unlock()
	known, err := f.agent.store.Folder(id)
	if err != nil {
		return err
	}
	usage, err := f.disk.Measure(ctx, known)
	if err != nil {
		return err
	}
	usage.At = f.agent.clock.Now().UTC()
	return f.agent.records.Update(func(tx *store.Tx) error {
		now, err := tx.Folder(id)
		if err != nil {
			return err
		}
		now.Usage = &usage
		return tx.PutFolder(now)
	})
}

// touched notes that what a folder holds may have changed.
func (f *folders) touched(id session.FolderID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty[id] = true
}

// dress adds to a stored folder what is not stored, and has it counted where
// what is known is old.
func (f *folders) dress(one session.Folder, users []session.FolderUser) session.Folder {
	one.Agent, one.UsedBy = f.agent.config.Name, users
	if one.State == session.FolderDeleting {
		one.Removed = f.removed(one)
		return one
	}
	if one.Missing = f.disk.Missing(one); one.Missing {
		return one
	}
	f.mu.Lock()
	stale := one.Usage == nil || f.dirty[one.ID] || f.agent.clock.Since(one.Usage.At) > recount && len(users) > 0
	f.mu.Unlock()
	if stale {
		f.counter.Ask(one.ID)
	}
	one.Counting = f.counter.Counting(one.ID)
	return one
}

func (a *Agent) ListFolders(_ context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	all, err := a.store.Folders()
	if err != nil {
		return nil, err
	}
	users, err := a.folderUsers()
	if err != nil {
		return nil, err
	}
	list := []session.Folder{}
	for _, one := range all {
		if filter.Owner == "" || one.Owner == filter.Owner {
			list = append(list, a.folders.dress(one, users[one.ID]))
		}
	}
	slices.SortFunc(list, func(a, b session.Folder) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// folderUsers returns the live sessions that have folders mounted, by the folders.
func (a *Agent) folderUsers() (map[session.FolderID][]session.FolderUser, error) {
	live, _, err := a.store.Live()
	if err != nil {
		return nil, err
	}
	users := map[session.FolderID][]session.FolderUser{}
	for _, s := range live {
		for _, id := range mountedBy(s) {
			users[id] = append(users[id], session.FolderUser{Session: s.ID, Name: s.Name, Owner: s.Owner})
		}
	}
	return users, nil
}

// mountedBy returns the folders that a session has mounted, each once.
func mountedBy(s session.Session) []session.FolderID {
	var ids []session.FolderID
	for _, m := range s.Folders {
		if !slices.Contains(ids, m.Folder) {
			ids = append(ids, m.Folder)
		}
	}
	return ids
}

func (a *Agent) GetFolder(_ context.Context, id session.FolderID) (session.Folder, error) {
	one, err := a.store.Folder(id)
	if err != nil {
		return session.Folder{}, err
	}
	users, err := a.folderUsers()
	if err != nil {
		return session.Folder{}, err
	}
	return a.folders.dress(one, users[id]), nil
}

func (a *Agent) CreateFolder(ctx context.Context, req session.FolderRequest) (session.Folder, error) {
	if wrong := req.Validate(); len(wrong) > 0 {
		return session.Folder{}, folderInvalid("create", wrong)
	}
	one := session.Folder{
		ID: session.FolderID(session.NewID()), Name: req.Name, Owner: cmp.Or(req.Owner, a.config.Owner),
		Permission: cmp.Or(req.Permission, session.FolderReadWrite),
		Mode:       cmp.Or(req.Mode, session.FolderGeneral), State: session.FolderReady, CreatedAt: a.clock.Now().UTC(),
	}
	var err error
	if req.Path != "" {
		a.allowed.write.Lock() // so that no directory around it or in it is opened meanwhile
		defer a.allowed.write.Unlock()
		err = a.link(&one, req.Path)
	} else {
		err = a.folders.disk.Make(one)
	}
	if err != nil {
		return session.Folder{}, err
	}
	err = a.records.Update(func(tx *store.Tx) error {
		all, err := tx.Folders()
		if err != nil {
			return err
		}
		if len(all) >= session.MaxFolders {
			return &session.Error{Code: "folder_create_too-many",
				Message: fmt.Sprintf("There are %d folders on this machine already.", len(all)),
				Hint:    "Delete some that nobody needs."}
		}
		if err := nameFree("create", all, one); err != nil {
			return err
		}
		open := a.allowed.all()
		delete(open, one.Owner)
		if other, whose := a.nested(one.Path, one.Owner, all, open); other != "" {
			return folder.InvalidLink(overlap(one.Path, other, whose), "Choose another directory.")
		}
		return tx.PutFolder(one)
	})
	if err != nil {
		return session.Folder{}, errors.Join(err, a.folders.disk.Unmake(one))
	}
	return a.GetFolder(ctx, one.ID)
}

// link makes a fresh folder one of a directory of the machine.
func (a *Agent) link(one *session.Folder, path string) error {
	if err := a.folders.disk.CheckLink(path); err != nil {
		return err
	}
	found, err := a.offLimits().Look(path, one.Owner != a.config.Owner)
	if err != nil {
		e := session.AsError(err, session.CodeInvalidSource)
		return folder.InvalidLink(e.Message, e.Hint)
	}
	one.Path, one.Inode = found.Path, found.Inode
	return nil
}

func folderInvalid(op string, wrong []session.FieldError) error {
	return &session.Error{Code: session.Code("folder_" + op + "_invalid"), Message: wrong[0].Message,
		Hint: wrong[0].Hint, Fields: wrong}
}

// nameFree fails where another folder of the same person has one's name and is
// not in the trash.
func nameFree(op string, all []session.Folder, one session.Folder) error {
	for _, other := range all {
		if other.ID != one.ID && other.Owner == one.Owner && other.Name == one.Name &&
			other.State == session.FolderReady {
			message := fmt.Sprintf("There is a folder %s already.", one.Name)
			return &session.Error{Code: session.Code("folder_" + op + "_" + session.DetailExists), Message: message,
				Hint: "Choose another name.",
				Fields: []session.FieldError{{Field: "name", Code: "folder_create_already-exists", Message: message,
					Hint: "Choose another name."}}}
		}
	}
	return nil
}

// changeFolder changes a folder in one transaction.
func (a *Agent) changeFolder(ctx context.Context, id session.FolderID,
	change func(*store.Tx, *session.Folder) error) (session.Folder, error) {
	err := a.records.Update(func(tx *store.Tx) error {
		one, err := tx.Folder(id)
		if err != nil {
			return err
		}
		if err := change(tx, &one); err != nil {
			return err
		}
		return tx.PutFolder(one)
	})
	if err != nil && !errors.Is(err, errNothing) {
		return session.Folder{}, err
	}
	return a.GetFolder(ctx, id)
}

func (a *Agent) UpdateFolder(ctx context.Context, id session.FolderID,
	change session.FolderChange) (session.Folder, error) {
	if wrong := change.Validate(); len(wrong) > 0 {
		return session.Folder{}, folderInvalid("update", wrong)
	}
	return a.changeFolder(ctx, id, func(tx *store.Tx, one *session.Folder) error {
		if one.State != session.FolderReady {
			return &session.Error{Code: "folder_update_conflict", Message: fmt.Sprintf("The folder %s is in the trash.",
				one.Name), Hint: "Restore it first."}
		}
		if change.Permission != nil {
			one.Permission = *change.Permission
		}
		if change.Mode != nil {
			one.Mode = *change.Mode
		}
		if change.Name == nil {
			return nil
		}
		one.Name = *change.Name
		all, err := tx.Folders()
		if err != nil {
			return err
		}
		return nameFree("update", all, *one)
	})
}

func (a *Agent) TrashFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return a.changeFolder(ctx, id, func(tx *store.Tx, one *session.Folder) error {
		if one.State != session.FolderReady {
			return errNothing
		}
		if err := unused(tx, "trash", *one); err != nil {
			return err
		}
		now := a.clock.Now().UTC()
		one.State, one.TrashedAt = session.FolderTrashed, &now
		return nil
	})
}

// unused fails while a live session has a folder mounted, and names it.
func unused(tx *store.Tx, op string, one session.Folder) error {
	users, err := tx.FolderUsers(one.ID)
	if err != nil || len(users) == 0 {
		return err
	}
	who := "The session " + users[0].Name + " has"
	if users[0].Owner != one.Owner {
		who = "A session of " + users[0].Owner + " has"
	}
	if len(users) > 1 {
		who = fmt.Sprintf("%d sessions, %s among them, have", len(users), users[0].Name)
	}
	return &session.Error{Code: session.Code("folder_" + op + "_in-use"),
		Message: fmt.Sprintf("%s the folder %s mounted.", who, one.Name), Hint: "End it first."}
}

func (a *Agent) RestoreFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return a.changeFolder(ctx, id, func(tx *store.Tx, one *session.Folder) error {
		switch one.State {
		case session.FolderReady:
			return errNothing
		case session.FolderDeleting:
			return &session.Error{Code: "folder_restore_conflict",
				Message: fmt.Sprintf("The folder %s is being deleted.", one.Name),
				Hint:    "Cancel that first, to have back what is left of it."}
		case session.FolderTrashed:
		}
		all, err := tx.Folders()
		if err != nil {
			return err
		}
		if err := nameFree("restore", all, *one); err != nil {
			return err
		}
		one.State, one.TrashedAt, one.Removed = session.FolderReady, nil, nil
		return nil
	})
}
