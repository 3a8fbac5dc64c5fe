package folder

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// rooted is a folder as a file system, with absolute paths that do not lead out of it.
type rooted struct {
	root     *os.Root
	readOnly bool
	give     bool // new files belong to uid and gid
	uid, gid int
}

func inside(path string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return "."
	}
	return path
}

// told returns fs.ErrPermission for a path that leads out of the folder, for which [os.Root] exports no error.
func told(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = link.Err
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return err
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission),
		errors.Is(err, fs.ErrClosed), errors.Is(err, fs.ErrInvalid):
		return err
	}
	return errors.Join(fs.ErrPermission, err)
}

func (r *rooted) change(make func() error) error {
	if r.readOnly {
		return syscall.EROFS
	}
	return told(make())
}

// OpenFile does not block on a pipe.
func (r *rooted) OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC) != 0 && r.readOnly {
		return nil, syscall.EROFS
	}
	file, err := r.root.OpenFile(inside(path), flag|syscall.O_NONBLOCK, perm)
	if err != nil {
		return nil, told(err)
	}
	if flag&os.O_CREATE != 0 && r.give {
		if err := file.Chown(r.uid, r.gid); err != nil {
			return nil, errors.Join(told(err), file.Close())
		}
	}
	return file, nil
}

func (r *rooted) Stat(path string) (fs.FileInfo, error) {
	info, err := r.root.Stat(inside(path))
	return info, told(err)
}

func (r *rooted) Lstat(path string) (fs.FileInfo, error) {
	info, err := r.root.Lstat(inside(path))
	return info, told(err)
}

func (r *rooted) ReadDir(path string) ([]fs.DirEntry, error) {
	dir, err := r.root.Open(inside(path))
	if err != nil {
		return nil, told(err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	return entries, told(err)
}

func (r *rooted) Mkdir(path string) error {
	return r.change(func() error {
		err := r.root.Mkdir(inside(path), 0o755)
		if err == nil && r.give {
			err = r.root.Lchown(inside(path), r.uid, r.gid)
		}
		return err
	})
}

func (r *rooted) Rename(from, to string) error {
	return r.change(func() error { return r.root.Rename(inside(from), inside(to)) })
}

func (r *rooted) Link(from, to string) error {
	return r.change(func() error { return r.root.Link(inside(from), inside(to)) })
}

func (r *rooted) Readlink(path string) (string, error) {
	target, err := r.root.Readlink(inside(path))
	return target, told(err)
}

// Symlink stores any target, because nothing follows a link out of the root.
func (r *rooted) Symlink(target, path string) error {
	return r.change(func() error {
		err := r.root.Symlink(target, inside(path))
		if err == nil && r.give {
			err = r.root.Lchown(inside(path), r.uid, r.gid)
		}
		return err
	})
}

func (r *rooted) SetAttributes(path string, mode fs.FileMode, modified time.Time) error {
	return r.change(func() error {
		if err := r.root.Chmod(inside(path), mode); err != nil {
			return err
		}
		return r.root.Chtimes(inside(path), time.Time{}, modified)
	})
}

// content is a folder as a file system for reading.
type content struct{ rooted *rooted }

func (c content) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := c.rooted.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return file, nil
}

func (c content) Lstat(name string) (fs.FileInfo, error) { return c.rooted.Lstat(name) }

func (c content) ReadLink(name string) (string, error) { return c.rooted.Readlink(name) }

func (r *rooted) Remove(path string) error {
	return r.change(func() error { return r.root.Remove(inside(path)) })
}

func (r *rooted) RemoveAll(path string) error {
	return r.change(func() error { return r.root.RemoveAll(inside(path)) })
}
