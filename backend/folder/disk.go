// Package folder manages data folders on the disk of an agent's machine. A [Disk] creates, opens, measures and removes
// them. Everything inside a folder is accessed through an [os.Root], so that no path, link or race leads out of it. The
// agent stores who owns a folder and its state.
package folder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/files"
	"slipway/backend/hostfs"
	"slipway/backend/session"
	"slipway/gpu"
)

// Disk is the location of folders: a managed folder is in a directory with its id, a linked one at its own path.
type Disk struct {
	Dir      string      // created with the first folder
	UID, GID int         // owner of new files, if this process is root
	Machine  hostfs.FS   // that has the linked folders
	sums     *files.Sums // of unfinished uploads; nil: computed at their end
}

// NewDisk returns a disk that computes the checksums of uploads while they arrive.
func NewDisk(dir string, uid, gid int) Disk {
	return Disk{Dir: dir, UID: uid, GID: gid, sums: new(files.Sums)}
}

// deleted is the prefix of a folder's directory while it is deleted.
const deleted = ".deleted-"

// Path returns the directory of a managed folder on this computer, or of a linked one on the machine.
func (d Disk) Path(f session.Folder) string {
	if f.Linked() {
		return f.Path
	}
	return filepath.Join(d.Dir, string(f.ID))
}

// Make creates the directory of a new folder.
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

// Unmake removes the directory of a new folder that was not used.
func (d Disk) Unmake(f session.Folder) error {
	if f.Linked() {
		return nil
	}
	return os.Remove(d.Path(f))
}

// gives reports whether new files must be changed to their owner.
func (d Disk) gives() bool { return os.Geteuid() == 0 && (d.UID > 0 || d.GID > 0) }

// InvalidLink returns the error of linking a directory that cannot be a folder.
func InvalidLink(message, hint string) error {
	return &session.Error{Code: session.CodeFileInvalid, Message: message, Hint: hint,
		Fields: []session.FieldError{{Field: "path", Kind: session.KindInvalid, Message: message, Hint: hint}}}
}

// CheckLink fails for a path of the machine that cannot be linked as a folder, because it is not a readable directory.
func (d Disk) CheckLink(path string) error {
	path, _ = d.Machine.Clean(path)
	info, err := d.Machine.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return InvalidLink(fmt.Sprintf("There is no directory %s on this machine.", path),
			"Make it, or choose another.")
	case err != nil:
		return InvalidLink(fmt.Sprintf("The directory %s cannot be read.", path), "Check its permissions.")
	case !info.IsDir():
		return InvalidLink(fmt.Sprintf("%s is not a directory.", path), "Choose the directory that contains it.")
	}
	return nil
}

// Changed returns the error of opening a linked folder whose path is no longer the directory that was linked.
func Changed(f session.Folder) error {
	return session.NewError(session.CodeFolderChanged,
		fmt.Sprintf("%s is not the directory that was linked as the folder %s.", f.Path, f.Name),
		"Put the directory back or mount its disk. To use what is there now, delete the folder and link it again.")
}

// Missing reports whether the directory of a folder is missing or was replaced.
func (d Disk) Missing(f session.Folder) bool {
	stat := os.Stat
	if f.Linked() {
		stat = d.Machine.Stat
	}
	info, err := stat(d.Path(f))
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

// root opens the directory of a folder. The path of a linked folder must not contain a symbolic link, which somebody
// with write access beside it could redirect.
func (d Disk) root(f session.Folder) (*os.Root, error) {
	missing := func(err error) error {
		return session.WrapError(err, session.CodeFileNotFound,
			fmt.Sprintf("The directory of the folder %s cannot be opened.", f.Name),
			"Look whether its disk is there and readable.")
	}
	open := os.OpenRoot
	if f.Linked() {
		open = d.Machine.OpenRoot
	}
	root, err := open(d.Path(f))
	if err != nil {
		return nil, missing(err)
	}
	if !f.Linked() {
		return root, nil
	}
	opened, err := root.Stat(".")
	real, realErr := d.Machine.Resolve(f.Path)
	at, atErr := d.Machine.Lstat(f.Path)
	if err := errors.Join(err, realErr, atErr); err != nil {
		return nil, errors.Join(missing(err), root.Close())
	}
	_, inode := identity(opened)
	if real != f.Path || !os.SameFile(at, opened) || f.Inode != 0 && inode != f.Inode {
		return nil, errors.Join(Changed(f), root.Close())
	}
	return root, nil
}

// Tree is the content of an open folder. Its root is "/", which is also the base of relative paths.
type Tree struct {
	files.Tree
	root    *os.Root
	content content
}

// Content is the tree for reading, until it is closed. Opening a pipe does not block.
func (t *Tree) Content() fs.FS { return t.content }

// Open opens a folder. The tree of a read-only folder is read-only.
func (d Disk) Open(f session.Folder) (*Tree, error) {
	root, err := d.root(f)
	if err != nil {
		return nil, err
	}
	inner := &rooted{root: root, readOnly: f.Permission == session.FolderReadOnly}
	if d.gives() {
		inner.give, inner.uid, inner.gid = true, d.UID, d.GID
	}
	return &Tree{Tree: files.Tree{FS: files.Of(inner), Home: "/", Sums: d.sums}, root: root,
		content: content{inner}}, nil
}

// Close closes the folder, but not its open files.
func (t *Tree) Close() error { return t.root.Close() }

// Source is a directory to be mounted.
type Source struct {
	Path          string // on this computer, or on the machine if the folder is linked
	Device, Inode uint64 // of the directory, to check that it was mounted and not another one at its path
}

// Find returns the directory at a path inside a folder; empty: the folder's own. The path must not contain a symbolic
// link, because a mount would follow it out of the folder.
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
	join := filepath.Join
	if f.Linked() {
		join = d.Machine.Join
	}
	return Source{Path: join(d.Path(f), at), Device: device, Inode: inode}, nil
}

// MakeDirectory makes a directory in a folder, with those around it. It fails if something else is there, also a link.
func (d Disk) MakeDirectory(f session.Folder, sub string) error {
	tree, err := d.Open(f)
	if err != nil {
		return err
	}
	defer tree.Close()
	at := "."
	for part := range strings.SplitSeq(sub, "/") {
		at = filepath.Join(at, part)
		info, err := tree.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := tree.FS.Mkdir(at); err != nil {
				return diskError(at, err)
			}
		case err != nil:
			return diskError(at, err)
		case !info.IsDir():
			return session.NewError(session.CodeFolderConflict,
				fmt.Sprintf("%q in the folder %s is not a directory, so nothing can be mounted there.", at, f.Name),
				"Remove it or choose another path.")
		}
	}
	return nil
}

// Empty reports whether a managed folder holds no files but those that every new home of its image has, or was not made
// yet.
func (d Disk) Empty(ctx context.Context, f session.Folder) (bool, error) {
	if _, err := os.Lstat(d.Path(f)); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	tree, err := d.Open(f)
	if err != nil {
		return false, err
	}
	defer tree.Close()
	empty := true
	err = fs.WalkDir(tree.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return ctx.Err()
		}
		if err == nil {
			if info, err := entry.Info(); err == nil && isStartFile(tree.root, name, info) {
				return nil
			}
		}
		empty = false // also if it is unknown
		return cmp.Or(ctx.Err(), fs.SkipAll)
	})
	return empty, err
}

// Remove removes the directory of a managed folder and its content; a linked one stays. It calls gone for everything
// that was removed, with the number of files and their size. It can be called again after an interruption.
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
	return diskError(d.Path(f), removeAll(ctx, root, aside, gone))
}

// PutBack restores what is left of a folder after an interrupted removal. It does nothing if there is none.
func (d Disk) PutBack(f session.Folder) error {
	if f.Linked() {
		return nil
	}
	err := os.Rename(filepath.Join(d.Dir, deleted+string(f.ID)), d.Path(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return diskError(d.Path(f), err)
}

// removeAll removes a tree until ctx ends, even closed directories. A file with several names counts with the last one.
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

// openClosed opens a directory, after making it accessible to its owner.
func openClosed(root *os.Root, name string) (*os.Root, error) {
	if info, err := root.Lstat(name); err == nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		if err := root.Chmod(name, 0o700); err != nil {
			return nil, err
		}
	}
	return root.OpenRoot(name)
}

func someNames(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1000)
	if len(names) > 0 || errors.Is(err, io.EOF) {
		return names, nil
	}
	return nil, err
}

// diskError gives a failure of the disk a code; nil and a cancellation stay.
func diskError(path string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return session.WrapError(err, session.CodeFileFailed, fmt.Sprintf("%s cannot be changed.", path),
		"Check its permissions and the free space on its disk.")
}
