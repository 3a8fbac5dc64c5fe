// Package files implements [session.Files] on a tree of files. An upload is collected in a hidden part next to its
// destination and then renamed, so it appears complete. The tree may be a container's, a folder's or simulated; its
// [FS] decides what can be reached.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway/backend/session"
)

// Contents opens, describes and lists files. Paths are absolute and clean.
type Contents interface {
	OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error)
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	// ReadDir returns entries whose Info is that of Lstat.
	ReadDir(path string) ([]fs.DirEntry, error)
	Readlink(path string) (string, error)
}

// Names creates, changes, renames and removes entries of directories. Paths are as in [Contents].
type Names interface {
	Mkdir(path string) error
	Rename(from, to string) error
	// Link gives a file a second name. It fails if that exists.
	Link(from, to string) error
	// Symlink makes a link to a target, which it stores as it is. It fails if path exists.
	Symlink(target, path string) error
	// SetAttributes sets permissions and, unless it is zero, the time of the last change.
	SetAttributes(path string, mode fs.FileMode, modified time.Time) error
	Remove(path string) error
	RemoveAll(path string) error
}

// FS is a tree of files.
type FS struct {
	Contents
	Names
}

// Of returns the tree whose two parts are the same value.
func Of(fs interface {
	Contents
	Names
}) FS {
	return FS{fs, fs}
}

// Tree has the methods of [session.Files] for one tree. It is safe for concurrent use if its FS is.
type Tree struct {
	FS   FS
	Home string // base of relative paths
	Sums *Sums  // nil: uploads are read again for their checksums
}

func (t Tree) resolve(p session.FilePath) (string, error) {
	if err := session.CheckPath(p); err != nil {
		return "", err
	}
	if path.IsAbs(string(p)) {
		return path.Clean(string(p)), nil
	}
	return path.Join(t.Home, string(p)), nil
}

// StatFile describes the file at a path.
func (t Tree) StatFile(_ context.Context, p session.FilePath) (session.FileInfo, error) {
	return t.Stat(p)
}

// Stat is StatFile without a context.
func (t Tree) Stat(p session.FilePath) (session.FileInfo, error) {
	full, err := t.resolve(p)
	if err != nil {
		return session.FileInfo{}, err
	}
	own, err := t.FS.Lstat(full)
	if err != nil {
		return session.FileInfo{}, failure(full, err)
	}
	return t.describe(full, own), nil
}

// describe describes a file, of which own is the result of Lstat.
func (t Tree) describe(full string, own fs.FileInfo) session.FileInfo {
	info := session.FileInfo{Name: session.FilePath(path.Base(full)), Link: own.Mode()&fs.ModeSymlink != 0}
	if info.Link {
		if target, err := t.FS.Readlink(full); err == nil {
			info.Target = session.FilePath(target)
		}
		if target, err := t.FS.Stat(full); err == nil {
			own = target
		}
	}
	info.Kind, info.Mode, info.Modified = session.KindOther, uint32(own.Mode().Perm()), own.ModTime().UTC()
	switch {
	case own.IsDir():
		info.Kind = session.KindDirectory
	case own.Mode().IsRegular():
		info.Kind, info.Size = session.KindFile, own.Size()
	}
	info.Version = version(own)
	return info
}

func version(info fs.FileInfo) string {
	return fmt.Sprintf("%x-%x", info.ModTime().UnixNano(), info.Size())
}

// listedBytes is how many bytes of names and targets a listing has, so that it fits into a message even if JSON escapes
// every byte.
const listedBytes = 200 << 10

// ListFiles returns a part of a directory.
func (t Tree) ListFiles(_ context.Context, req session.ListRequest) (session.FileListing, error) {
	full, err := t.resolve(req.Path)
	if err != nil {
		return session.FileListing{}, err
	}
	entries, err := t.FS.ReadDir(full)
	if err != nil {
		return session.FileListing{}, failure(full, err)
	}
	t.sweep(full, entries)
	names := make([]fs.DirEntry, 0, len(entries))
	for _, e := range entries {
		if name := e.Name(); !isPart(name) {
			names = append(names, sortable{e, strings.ToLower(name)})
		}
	}
	slices.SortFunc(names, func(a, b fs.DirEntry) int {
		return a.(sortable).compare(b.(sortable).lower, b.Name())
	})
	listing := session.FileListing{Path: session.FilePath(full), Entries: []session.FileInfo{}, Total: len(names)}
	if req.After != "" {
		at, found := slices.BinarySearchFunc(names, string(req.After), func(e fs.DirEntry, after string) int {
			return e.(sortable).compare(strings.ToLower(after), after)
		})
		if found {
			at++
		}
		names = names[at:]
	}
	limit := req.Limit
	if limit <= 0 || limit > session.MaxListed {
		limit = session.MaxListed
	}
	size := 0
	for i, n := range names {
		if i == limit || size > listedBytes {
			listing.More = true
			break
		}
		if own, err := n.Info(); err == nil { // else it was removed meanwhile
			info := t.describe(path.Join(full, n.Name()), own)
			listing.Entries = append(listing.Entries, info)
			size += len(info.Name) + len(info.Target)
		}
	}
	return listing, nil
}

// sortable is a directory entry, sorted as such so that the guest has the code of one sort for them.
type sortable struct {
	fs.DirEntry
	lower string // name
}

func (s sortable) compare(lower, name string) int {
	return cmp.Or(strings.Compare(s.lower, lower), strings.Compare(s.Name(), name))
}

// MakeDirectory creates a directory.
func (t Tree) MakeDirectory(_ context.Context, p session.FilePath, parents bool) error {
	full, err := t.resolve(p)
	if err != nil {
		return err
	}
	if !parents {
		return failure(full, t.FS.Mkdir(full))
	}
	return failure(full, t.mkdirAll(full))
}

func (t Tree) mkdirAll(full string) error {
	err := t.FS.Mkdir(full)
	if errors.Is(err, fs.ErrNotExist) && full != "/" {
		if err := t.mkdirAll(path.Dir(full)); err != nil {
			return err
		}
		err = t.FS.Mkdir(full)
	}
	if err != nil {
		if info, other := t.FS.Stat(full); other == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// MakeLink makes a symbolic link.
func (t Tree) MakeLink(_ context.Context, p, target session.FilePath) error {
	full, err := t.resolve(p)
	if err != nil {
		return err
	}
	if err := session.CheckPath(target); err != nil {
		return err
	}
	err = t.FS.Symlink(string(target), full)
	if errors.Is(err, fs.ErrExist) {
		if there, other := t.FS.Readlink(full); other == nil && there == string(target) {
			return nil
		}
	}
	return failure(full, err)
}

// SetAttributes changes the permissions and the time of a file or directory. A directory keeps the bits that are more
// than permissions, such as the one that gives new files its group.
func (t Tree) SetAttributes(_ context.Context, p session.FilePath, a session.Attributes) error {
	full, err := t.resolve(p)
	if err != nil {
		return err
	}
	if full == "/" {
		return session.NewError(session.CodeFileConflict, "The attributes of the root cannot be changed.",
			"Change those of its contents instead.")
	}
	info, err := t.FS.Stat(full)
	if err != nil {
		return failure(full, err)
	}
	mode := fs.FileMode(a.Mode).Perm()
	if info.IsDir() {
		mode |= info.Mode() & (fs.ModeSetgid | fs.ModeSticky)
	}
	return failure(full, t.FS.SetAttributes(full, mode, a.Modified))
}

// MoveFile renames a file or directory. It replaces nothing.
func (t Tree) MoveFile(_ context.Context, from, to session.FilePath) error {
	source, err := t.resolve(from)
	if err != nil {
		return err
	}
	target, err := t.resolve(to)
	if err != nil {
		return err
	}
	info, err := t.FS.Lstat(source)
	if err != nil {
		return failure(source, err)
	}
	if info.Mode().IsRegular() {
		return failure(target, t.appear(source, target))
	}
	if _, err := t.FS.Lstat(target); err == nil {
		return failure(target, fs.ErrExist)
	}
	return failure(target, t.FS.Rename(source, target))
}

// appear renames a file to a name that must not exist.
func (t Tree) appear(from, to string) error {
	err := t.FS.Link(from, to)
	if err == nil {
		return t.FS.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The file system has no hard links, or this file cannot have one.
	if _, err := t.FS.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return t.FS.Rename(from, to)
}

// RemoveFile removes a file or directory. If ctx ends meanwhile, the rest stays.
func (t Tree) RemoveFile(ctx context.Context, p session.FilePath, recursive bool) error {
	full, err := t.resolve(p)
	if err != nil {
		return err
	}
	if full == "/" || full == path.Clean(t.Home) {
		return session.NewError(session.CodeFileConflict,
			"The root and the home directory of a session cannot be removed.", "Remove their contents instead.")
	}
	if !recursive {
		return failure(full, t.FS.Remove(full))
	}
	info, err := t.FS.Lstat(full)
	if err != nil {
		return failure(full, err)
	}
	if info.IsDir() {
		if err := t.clear(ctx, full); err != nil {
			return err
		}
	}
	return failure(full, t.FS.RemoveAll(full))
}

// clear removes what it can of the content of a directory. It fails only if ctx ends.
func (t Tree) clear(ctx context.Context, dir string) error {
	entries, _ := t.FS.ReadDir(dir)
	for _, entry := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		inner := path.Join(dir, entry.Name())
		if entry.IsDir() {
			if err := t.clear(ctx, inner); err != nil {
				return err
			}
		}
		_ = t.FS.Remove(inner)
	}
	return ctx.Err()
}

// failure converts a failure of the file system to a [session.Error].
func failure(full string, err error) error {
	if _, known := errors.AsType[*session.Error](err); known || err == nil {
		return err
	}
	for _, c := range causes {
		for _, match := range c.errs {
			if errors.Is(err, match) {
				return session.WrapError(err, c.code, fmt.Sprintf("%q: %s", full, c.message), c.hint)
			}
		}
	}
	return session.WrapError(err, session.CodeFileFailed, fmt.Sprintf("%q: %v.", full, Errno(err)),
		"Check the file system.")
}

// causes are tried in order, so the more specific come first.
var causes = []struct {
	code          session.Code
	message, hint string
	errs          []error
}{
	{session.CodeFileConflict, "The directory is not empty.",
		"Empty it first, or remove it with its contents.", []error{syscall.ENOTEMPTY}},
	{session.CodeFileExists, "A file or directory of that name exists.", "Choose another name, or replace it.",
		[]error{fs.ErrExist}},
	{session.CodeFileNotFound, "There is no such file or directory.", "Check the path; it may have been moved.",
		[]error{fs.ErrNotExist}},
	{session.CodeFileForbidden, "The file system is read-only.", "Choose another place.", []error{syscall.EROFS}},
	{session.CodeFileForbidden, "Permission denied.", "Check its permissions, or choose another place.",
		[]error{fs.ErrPermission}},
	{session.CodeDiskFull, "The disk is full.", "Free space, or choose a place on another disk.",
		[]error{syscall.ENOSPC, syscall.EDQUOT}},
	{session.CodeFileConflict, "A file was found where a directory is needed, or the reverse.",
		"Look whether it is a file or a directory.", []error{syscall.EISDIR, syscall.ENOTDIR, syscall.ELOOP}},
	{session.CodeFileConflict, "It is in use.", "End what uses it; a mount stays as long as its session.",
		[]error{syscall.EBUSY, syscall.EXDEV}},
	{session.CodeFileInvalid, "Invalid name.", "Choose a shorter one.", []error{syscall.ENAMETOOLONG, syscall.EINVAL}},
}

// Errno returns the error number in err's chain, which has the shortest text; err itself if there is none.
func Errno(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}
