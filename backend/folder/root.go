package folder

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// rooted is a folder as a file system. Its paths are absolute, and nothing that they name lies outside of the folder.
type rooted struct {
	root     *os.Root
	readOnly bool
	give     bool // what is made belongs to uid and gid
	uid, gid int
}

// inside is a path as the root takes it.
func inside(path string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return "."
	}
	return path
}

// told tells a path that leads out of the folder as one that is forbidden. What [os.Root] says of it has no name.
func told(err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		err = link.Err
	}
	var number syscall.Errno
	switch {
	case err == nil || errors.As(err, &number):
		return err
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission),
		errors.Is(err, fs.ErrClosed), errors.Is(err, fs.ErrInvalid):
		return err
	}
	return errors.Join(fs.ErrPermission, err)
}

// change makes a change, unless the folder is only to be read.
func (r *rooted) change(make func() error) error {
	if r.readOnly {
		return syscall.EROFS
	}
	return told(make())
}

// OpenFile never waits for the other end of a pipe.
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

func (r *rooted) Remove(path string) error {
	return r.change(func() error { return r.root.Remove(inside(path)) })
}

func (r *rooted) RemoveAll(path string) error {
	return r.change(func() error { return r.root.RemoveAll(inside(path)) })
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) }
