package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/files"
	"slipway/backend/session"
	"slipway/gpu"
)

// Disk is where folders lie: each managed one in a directory of its id, each linked one where it is.
type Disk struct {
	Dir string // made with the first folder
	// UID and GID are whose the files are that are made in folders, where this process may give them away.
	UID, GID int
	sums     *files.Sums // of uploads under way; nil: they are computed at their ends
}

// NewDisk returns a disk that adds up the checksums of uploads as they come.
func NewDisk(dir string, uid, gid int) Disk {
	return Disk{Dir: dir, UID: uid, GID: gid, sums: new(files.Sums)}
}

// deleted is what the directory of a folder is called while it is deleted.
const deleted = ".deleted-"

// Path is the directory of a folder.
func (d Disk) Path(f session.Folder) string {
	if f.Linked() {
		return f.Path
	}
	return filepath.Join(d.Dir, string(f.ID))
}

// Make makes the directory of a fresh folder.
func (d Disk) Make(f session.Folder) error {
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return diskError(d.Dir, err)
	}
	dir := d.Path(f)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return diskError(dir, err)
	}
	if d.gives() {
		if err := os.Chown(dir, d.UID, d.GID); err != nil {
			return errors.Join(diskError(dir, err), os.Remove(dir))
		}
	}
	return nil
}

// Unmake removes the directory of a fresh folder that nobody has used.
func (d Disk) Unmake(f session.Folder) error {
	if f.Linked() {
		return nil
	}
	return os.Remove(d.Path(f))
}

// gives reports whether files made here must be given to whom they belong.
func (d Disk) gives() bool { return os.Geteuid() == 0 && (d.UID > 0 || d.GID > 0) }

// InvalidLink is the failure of linking a directory that cannot be a folder.
func InvalidLink(message, hint string) error {
	return &session.Error{Code: session.CodeFileInvalid, Message: message, Hint: hint,
		Fields: []session.FieldError{{Field: "path", Kind: session.KindInvalid, Message: message, Hint: hint}}}
}

// CheckLink says why a path of the machine cannot be linked as a folder: it leads to no directory.
func (d Disk) CheckLink(path string) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return InvalidLink(fmt.Sprintf("There is no directory %s on this machine.", path),
			"Make it, or choose another.")
	case err != nil:
		return InvalidLink(fmt.Sprintf("The directory %s cannot be read.", path), "Check its permissions.")
	case !info.IsDir():
		return InvalidLink(fmt.Sprintf("%s is not a directory.", path), "Choose the directory that it lies in.")
	}
	return nil
}

// Changed is the failure of opening a linked folder at whose path there is something else than the directory that was
// linked.
func Changed(f session.Folder) error {
	return session.NewError(session.CodeFolderChanged,
		fmt.Sprintf("%s is not the directory that was linked as the folder %s.", f.Path, f.Name),
		"Put the directory back or mount its disk. To use what is there now, delete the folder and link it again.")
}

// Missing reports whether the directory of a folder is not there.
func (d Disk) Missing(f session.Folder) bool {
	info, err := os.Stat(d.Path(f))
	if err != nil || !info.IsDir() {
		return true
	}
	if !f.Linked() {
		return false
	}
	root, err := d.root(f)
	if err == nil {
		err = root.Close()
	}
	return session.CodeOf(err) == session.CodeFolderChanged
}

// root opens the directory of a folder. No part of the path of one that is linked may be a link: whoever may write
// beside it could have it lead elsewhere.
func (d Disk) root(f session.Folder) (*os.Root, error) {
	missing := func(err error) error {
		return &session.Error{Code: session.CodeFileNotFound,
			Message: fmt.Sprintf("The directory of the folder %s cannot be opened.", f.Name),
			Hint:    "Look whether its disk is there and readable.", Err: err}
	}
	root, err := os.OpenRoot(d.Path(f))
	if err != nil {
		return nil, missing(err)
	}
	if !f.Linked() {
		return root, nil
	}
	opened, err := root.Stat(".")
	real, realErr := filepath.EvalSymlinks(f.Path)
	at, atErr := os.Lstat(f.Path)
	if err := errors.Join(err, realErr, atErr); err != nil {
		return nil, errors.Join(missing(err), root.Close())
	}
	_, inode := identity(opened)
	if real != f.Path || !os.SameFile(at, opened) || f.Inode != 0 && inode != f.Inode {
		return nil, errors.Join(Changed(f), root.Close())
	}
	return root, nil
}

// Tree is the content of one open folder. Its root is "/", where relative paths begin too.
type Tree struct {
	files.Tree
	root *os.Root
}

// Open opens a folder. Where it is only to be read, so is the tree.
func (d Disk) Open(f session.Folder) (*Tree, error) {
	root, err := d.root(f)
	if err != nil {
		return nil, err
	}
	inner := &rooted{root: root, readOnly: f.Permission == session.FolderReadOnly}
	if d.gives() {
		inner.give, inner.uid, inner.gid = true, d.UID, d.GID
	}
	return &Tree{Tree: files.Tree{FS: files.Of(inner), Home: "/", Sums: d.sums}, root: root}, nil
}

// Close closes the folder. Files that are open stay so.
func (t *Tree) Close() error { return t.root.Close() }

// Source is a directory to be mounted.
type Source struct {
	Path string
	// Device and Inode are the directory's own. Whoever mounts it by its path compares them with what it got.
	Device, Inode uint64
}

// Find returns the directory at a path inside a folder; empty: the folder's own. No part of the path may be a link,
// because whoever mounts it knows nothing of the folder's bounds.
func (d Disk) Find(f session.Folder, sub string) (Source, error) {
	tree, err := d.Open(f)
	if err != nil {
		return Source{}, err
	}
	defer tree.Close()
	missing := func(format string, args ...any) error {
		return session.NewError(session.CodeFileInvalid, fmt.Sprintf(format, args...),
			"Choose a directory inside of the folder.")
	}
	if message := session.CheckSubPath(sub); message != "" {
		return Source{}, missing("%s", message)
	}
	at := "."
	info, err := tree.root.Lstat(at)
	for part := range strings.SplitSeq(strings.TrimSuffix(sub, "/"), "/") {
		if err != nil || part == "" {
			break
		}
		at = filepath.Join(at, part)
		if info, err = tree.root.Lstat(at); err == nil && !info.IsDir() {
			return Source{}, missing("%q in the folder %s is not a directory.", at, f.Name)
		}
	}
	if err != nil {
		return Source{}, missing("There is no directory %q in the folder %s.", sub, f.Name)
	}
	device, inode := identity(info)
	return Source{Path: filepath.Join(d.Path(f), at), Device: device, Inode: inode}, nil
}

// Remove removes the directory of a managed folder with all that is in it. What is linked stays. It tells of everything
// that is gone: how many files that was, and what they took. It can be called again after it was broken off.
func (d Disk) Remove(ctx context.Context, f session.Folder, gone func(files int, bytes gpu.Bytes)) error {
	if f.Linked() {
		return nil
	}
	root, err := os.OpenRoot(d.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return diskError(d.Dir, err)
	}
	defer root.Close()
	aside := deleted + string(f.ID)
	if err := root.Rename(string(f.ID), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diskError(d.Path(f), err)
	}
	if err := removeAll(ctx, root, aside, gone); err != nil {
		return diskError(d.Path(f), err)
	}
	return nil
}

// PutBack makes what is left of a folder, whose removal was broken off, a folder again. It does nothing where none was
// begun or all is gone.
func (d Disk) PutBack(f session.Folder) error {
	if f.Linked() {
		return nil
	}
	err := os.Rename(filepath.Join(d.Dir, deleted+string(f.ID)), d.Path(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diskError(d.Path(f), err)
	}
	return nil
}

// removeAll removes a tree and can be cancelled. A directory that its owner closed to themselves is opened again. Of a
// file with several names the last counts.
func removeAll(ctx context.Context, root *os.Root, name string, gone func(files int, bytes gpu.Bytes)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := root.Remove(name); err != nil {
			return err
		}
		files, bytes := 0, gpu.Bytes(0)
		if names(info) <= 1 {
			files = 1
			if info.Mode().IsRegular() {
				bytes = gpu.Bytes(info.Size())
			}
		}
		gone(files, bytes)
		return nil
	}
	inner, err := openClosed(root, name)
	if err != nil {
		return err
	}
	defer inner.Close()
	for {
		names, err := someNames(inner)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			if err := root.Remove(name); err != nil {
				return err
			}
			gone(0, 0)
			return nil
		}
		for _, name := range names {
			if err := removeAll(ctx, inner, name, gone); err != nil {
				return err
			}
		}
	}
}

// openClosed opens a directory, after making it open to its owner where it is not.
func openClosed(root *os.Root, name string) (*os.Root, error) {
	if info, err := root.Lstat(name); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		if err := root.Chmod(name, 0o700); err != nil {
			return nil, err
		}
	}
	return root.OpenRoot(name)
}

// someNames returns some of what is in a directory; none: it is empty.
func someNames(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1000)
	if len(names) > 0 {
		return names, nil
	}
	if err != nil && !isEnd(err) {
		return nil, err
	}
	return nil, nil
}

func diskError(path string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &session.Error{Code: session.CodeFileFailed, Message: fmt.Sprintf("%s cannot be changed.",
		path), Hint: "Check its permissions and the room on its disk.", Err: err}
}
