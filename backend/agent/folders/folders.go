// Package folders keeps the data folders of a machine and finds what sessions mount of them and of other directories.
package folders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/folder"
	"slipway/backend/hostfs"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// maxAge is the age up to which a count of a mounted folder's content is shown without counting again.
const maxAge = 10 * time.Minute

// Config says where the folders are.
type Config struct {
	host.Host
	Dir       string                  // that contains the folders
	Machine   hostfs.FS               // where directories of the machine are
	OffLimits func() offlimits.Places // the places that no session may see
	// Opened returns the directories opened to people, by person. None is opened or closed until release is called.
	Opened func() (dirs map[string][]string, release func())
	// Remove deletes what a folder holds. nil: from the disk.
	Remove func(ctx context.Context, f session.Folder, gone func(files int, bytes gpu.Bytes)) error
}

// Folders keeps the data folders of a machine.
type Folders struct {
	config  Config
	disk    folder.Disk
	counter *folder.Counter
	due     chan struct{} // of capacity 1: a folder may have to be deleted

	mu    sync.Mutex // guards everything below
	dirty map[session.FolderID]bool
	ended map[session.FolderID]bool // a session that used it has ended
	going *removal                  // the folder that is deleted now
	// staged are the folders that are filled now.
	staged map[session.FolderID]bool
}

// New returns the folders of a machine. Run counts and deletes them.
func New(config Config) *Folders {
	f := &Folders{config: config, disk: folder.NewDisk(config.Dir, config.UID, config.GID),
		due: make(chan struct{}, 1), dirty: map[session.FolderID]bool{}, ended: map[session.FolderID]bool{},
		staged: map[session.FolderID]bool{}}
	f.disk.Machine = config.Machine
	if config.Remove == nil {
		f.config.Remove = f.disk.Remove
	}
	f.counter = folder.NewCounter(f.count)
	return f
}

// Run counts what folders hold and deletes folders, until ctx ends.
func (f *Folders) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { f.counter.Run(ctx) })
	group.Go(func() { settleStaged(ctx, f) })
	for {
		next, err := f.settleHomes(ctx)
		if err != nil {
			f.config.Log.Warn("kept homes could not be followed", "error", err)
		}
		again := make(<-chan time.Time)
		if left := f.deletePending(ctx); left || err != nil {
			again = f.config.Clock.Timer(retryDelete).C
		} else if !next.IsZero() {
			again = f.config.Clock.Timer(f.config.Clock.Until(next)).C
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

func (f *Folders) count(ctx context.Context, id session.FolderID) error {
	f.mu.Lock()
	delete(f.dirty, id)
	f.mu.Unlock()
	known, err := f.config.Records.Folder(id)
	if err != nil {
		return err
	}
	usage, err := f.disk.Measure(ctx, known)
	if err != nil {
		return err
	}
	usage.At = f.config.Clock.Now().UTC()
	return f.config.Records.Update(func(tx *store.Tx) error {
		now, err := tx.Folder(id)
		if err != nil {
			return err
		}
		now.Usage = &usage
		return tx.PutFolder(now)
	})
}

func (f *Folders) touched(id session.FolderID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty[id] = true
}

// dress adds to a stored folder what is not stored, and has it counted if its count is old.
func (f *Folders) dress(one session.Folder, users []session.FolderUser) session.Folder {
	one.Agent, one.UsedBy = f.config.Agent, users
	if one.State == session.FolderDeleting {
		one.Removed = f.removed(one)
		return one
	}
	if one.Home != nil && len(users) > 0 {
		one.Home = new(*one.Home)
		one.Home.Until = nil
	}
	if one.Missing = f.disk.Missing(one); one.Missing {
		return one
	}
	f.mu.Lock()
	stale := one.Usage == nil || f.dirty[one.ID] || f.config.Clock.Since(one.Usage.At) > maxAge && len(users) > 0
	f.mu.Unlock()
	if stale {
		f.counter.Ask(one.ID)
	}
	one.Counting = f.counter.Counting(one.ID)
	return one
}

func (f *Folders) ListFolders(_ context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	all, err := f.config.Records.Folders()
	if err != nil {
		return nil, err
	}
	users, err := f.folderUsers()
	if err != nil {
		return nil, err
	}
	list := []session.Folder{}
	for _, one := range all {
		if filter.Owner == "" || one.Owner == filter.Owner {
			list = append(list, f.dress(one, users[one.ID]))
		}
	}
	slices.SortFunc(list, func(a, b session.Folder) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

func (f *Folders) folderUsers() (map[session.FolderID][]session.FolderUser, error) {
	live, err := f.config.Records.LiveSessions()
	if err != nil {
		return nil, err
	}
	users := map[session.FolderID][]session.FolderUser{}
	for _, s := range live {
		mounted := map[session.FolderID]bool{}
		for _, m := range s.Folders {
			if !mounted[m.Folder] {
				mounted[m.Folder] = true
				users[m.Folder] = append(users[m.Folder], s.UserOf(m.Folder)...)
			}
		}
	}
	return users, nil
}

func (f *Folders) GetFolder(_ context.Context, id session.FolderID) (session.Folder, error) {
	one, err := f.config.Records.Folder(id)
	if err != nil {
		return session.Folder{}, err
	}
	users, err := f.folderUsers()
	if err != nil {
		return session.Folder{}, err
	}
	return f.dress(one, users[id]), nil
}

// wanted returns the folder that is asked for, which does not exist yet.
func (c Config) wanted(req session.FolderRequest) (session.Folder, error) {
	if wrong := req.Validate(); len(wrong) > 0 {
		return session.Folder{}, session.Refused(session.CodeFileInvalid, wrong...)
	}
	return session.Folder{
		ID: session.FolderID(session.NewID()), Name: req.Name, Owner: cmp.Or(req.Owner, c.Owner),
		Permission: cmp.Or(req.Permission, session.FolderReadWrite),
		Mode:       cmp.Or(req.Mode, session.FolderGeneral), State: session.FolderReady,
		CreatedAt: c.Clock.Now().UTC(),
	}, nil
}

func (f *Folders) CreateFolder(ctx context.Context, req session.FolderRequest) (session.Folder, error) {
	one, err := f.config.wanted(req)
	if err != nil {
		return session.Folder{}, err
	}
	var opened map[string][]string
	if req.Path != "" {
		dirs, release := f.config.Opened() // no directory around it or in it is opened meanwhile
		defer release()
		opened = dirs
		err = f.link(&one, req.Path)
	} else {
		err = f.disk.Make(one)
	}
	if err != nil {
		return session.Folder{}, err
	}
	err = f.config.Records.Update(func(tx *store.Tx) error {
		all, err := tx.Folders()
		if err == nil {
			err = admit(all, one)
		}
		if err != nil {
			return err
		}
		delete(opened, one.Owner)
		if message := Overlap(one.Path, one.Owner, f.config.Owner, all, opened); message != "" {
			return folder.InvalidLink(message, "Choose another directory.")
		}
		return tx.PutFolder(one)
	})
	if err != nil {
		// a change that failed may be stored all the same, and then its directory is needed
		if _, gone := f.config.Records.Folder(one.ID); session.CodeOf(gone) == session.CodeFolderNotFound {
			err = errors.Join(err, f.disk.Unmake(one))
		}
		return session.Folder{}, err
	}
	return f.GetFolder(ctx, one.ID)
}

func (f *Folders) link(one *session.Folder, path string) error {
	if err := f.disk.CheckLink(path); err != nil {
		return err
	}
	found, err := f.config.OffLimits().Look(path, one.Owner != f.config.Owner)
	if err != nil {
		e := session.AsError(err, session.CodeFileInvalid)
		return folder.InvalidLink(e.Message, e.Hint)
	}
	one.Path, one.Inode = found.Path, found.Inode
	return nil
}

// admit fails unless there can be a new folder beside all that there are.
func admit(all []session.Folder, one session.Folder) error {
	return cmp.Or(roomFor(all), nameFree(all, one))
}

// roomFor fails if the machine has as many folders as it may have.
func roomFor(all []session.Folder) error {
	if len(all) < session.MaxFolders {
		return nil
	}
	return conflict("Delete folders that are no longer needed.", "There are %d folders on this machine already.",
		len(all))
}

// nameFree fails if another ready folder of the same person has the name.
func nameFree(all []session.Folder, one session.Folder) error {
	for _, other := range all {
		if other.ID != one.ID && other.Owner == one.Owner && other.Name == one.Name &&
			other.State == session.FolderReady {
			return session.Refused(session.CodeFolderExists, session.FieldError{Field: "name",
				Kind: session.KindDuplicate, Message: fmt.Sprintf("There is a folder %s already.", one.Name),
				Hint: "Choose another name."})
		}
	}
	return nil
}

func (f *Folders) changeFolder(ctx context.Context, id session.FolderID,
	change func(*store.Tx, *session.Folder) error) (session.Folder, error) {
	err := f.config.Records.Update(func(tx *store.Tx) error {
		one, err := tx.Folder(id)
		if err != nil {
			return err
		}
		if err := change(tx, &one); err != nil {
			return err
		}
		return tx.PutFolder(one)
	})
	if err != nil {
		return session.Folder{}, err
	}
	return f.GetFolder(ctx, id)
}

func (f *Folders) UpdateFolder(ctx context.Context, id session.FolderID,
	change session.FolderChange) (session.Folder, error) {
	if wrong := change.Validate(); len(wrong) > 0 {
		return session.Folder{}, session.Refused(session.CodeFileInvalid, wrong...)
	}
	return f.changeFolder(ctx, id, func(tx *store.Tx, one *session.Folder) error {
		if one.State != session.FolderReady {
			return conflict("Restore it first.", "The folder %s is in the trash.", one.Name)
		}
		if change.Permission != nil {
			one.Permission = *change.Permission
		}
		if change.Mode != nil {
			one.Mode = *change.Mode
		}
		if change.Keep {
			one.Home = nil
		}
		if change.Name == nil {
			return nil
		}
		one.Name = *change.Name
		all, err := tx.Folders()
		if err != nil {
			return err
		}
		return nameFree(all, *one)
	})
}

func (f *Folders) TrashFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return f.changeFolder(ctx, id, func(tx *store.Tx, one *session.Folder) error {
		if one.State != session.FolderReady {
			return records.ErrUnchanged
		}
		if err := unused(tx, "trash", *one); err != nil {
			return err
		}
		now := f.config.Clock.Now().UTC()
		one.State, one.TrashedAt = session.FolderTrashed, &now
		return nil
	})
}

// unused fails while a live session has a folder mounted, and names the session.
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
	return conflict("End it first.", "%s the folder %s mounted.", who, one.Name)
}

func (f *Folders) RestoreFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	defer pace.Signal(f.due) // the time of a kept home begins
	return f.changeFolder(ctx, id, func(tx *store.Tx, one *session.Folder) error {
		switch one.State {
		case session.FolderReady:
			return records.ErrUnchanged
		case session.FolderDeleting:
			return conflict("Cancel that first to restore what is left.",
				"The folder %s is being deleted.", one.Name)
		case session.FolderTrashed:
		}
		all, err := tx.Folders()
		if err != nil {
			return err
		}
		if err := nameFree(all, *one); err != nil {
			return err
		}
		one.State, one.TrashedAt, one.Removed = session.FolderReady, nil, nil
		if one.Home != nil {
			one.Home.Until = new(f.config.Clock.Now().UTC().Add(time.Duration(one.Home.Keep)))
		}
		return nil
	})
}

// conflict is the error for a folder in the wrong state.
func conflict(hint, format string, args ...any) error {
	return session.NewError(session.CodeFolderConflict, fmt.Sprintf(format, args...), hint)
}

// Files implements the methods of a guest for the files of one folder. It keeps no file open between calls.
type Files struct {
	folders *Folders
	folder  session.Folder
}

// Files returns the files of a folder. A folder in the trash is read-only.
func (f *Folders) Files(id session.FolderID) (Files, error) {
	one, err := f.config.Records.Folder(id)
	if err == nil && one.State == session.FolderDeleting {
		err = session.NoFolder(string(id))
	}
	if err != nil {
		return Files{}, err
	}
	if one.State == session.FolderTrashed {
		one.Permission = session.FolderReadOnly // people may look what there is to restore
	}
	return Files{folders: f, folder: one}, nil
}

// Content opens a folder for reading. The caller closes it.
func (f *Folders) Content(id session.FolderID) (session.Folder, fs.FS, io.Closer, error) {
	files, err := f.Files(id)
	if err != nil {
		return session.Folder{}, nil, nil, err
	}
	tree, err := f.disk.Open(files.folder)
	if err != nil {
		return session.Folder{}, nil, nil, err
	}
	return files.folder, tree.Content(), tree, nil
}

func inFolder[T any](f Files, call func(*folder.Tree) (T, error)) (T, error) {
	tree, err := f.folders.disk.Open(f.folder)
	if err != nil {
		var none T
		return none, err
	}
	defer tree.Close()
	return call(tree)
}

// changes is inFolder for a call that changes what the folder holds.
func changes[T any](f Files, call func(*folder.Tree) (T, error)) (T, error) {
	defer f.folders.touched(f.folder.ID)
	return inFolder(f, call)
}

func (f Files) ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error) {
	return inFolder(f, func(t *folder.Tree) (io.ReadCloser, error) {
		from, err := t.ReadFile(ctx, req)
		if err != nil {
			return nil, err
		}
		return &ending{ReadCloser: from, ctx: ctx}, nil
	})
}

// ending is a file whose reads fail once its context has ended.
type ending struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the whole download
}

func (e *ending) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.ReadCloser.Read(p)
}

func (e *ending) OnDisk() (*os.File, bool) {
	file, ok := e.ReadCloser.(*os.File)
	return file, ok
}

func done(err error) (struct{}, error) { return struct{}{}, err }
