package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// folder is a directory whose paths never leave it, along whatever links: as for a process that has it as its root. It
// is open without access to its content.
type folder struct{ file *os.File }

func openFolder(at string) (*folder, error) {
	file, err := os.OpenFile(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &folder{file}, nil
}

func (f *folder) close() { _ = f.file.Close() }

func (f *folder) fd() int { return int(f.file.Fd()) }

// held returns a path that leads to an open file.
func held(file *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(file.Fd())) }

// open opens a path without access to its content, along links unless flags have O_NOFOLLOW.
func (f *folder) open(at string, flags uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(f.fd(), inside(at), &how)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN: // something was renamed meanwhile
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: at, Err: err}
		default:
			return os.NewFile(uintptr(fd), at), nil
		}
	}
}

// inside is a path relative to the folder.
func inside(at string) string {
	if at = strings.TrimPrefix(path.Clean("/"+at), "/"); at == "" {
		return "."
	}
	return at
}

// directory opens a directory and makes those that are missing, with mode.
func (f *folder) directory(at string, mode uint32) (*os.File, error) {
	dir, err := f.open(at, unix.O_DIRECTORY)
	if !errors.Is(err, fs.ErrNotExist) || inside(at) == "." {
		return dir, err
	}
	parent, err := f.directory(path.Dir("/"+inside(at)), 0o755)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := makeDirectory(parent, path.Base(at), mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make %s: %w", at, err)
	}
	return f.open(at, unix.O_DIRECTORY)
}

// makeDirectory makes a directory with exactly that mode.
func makeDirectory(parent *os.File, name string, mode uint32) error {
	if err := unix.Mkdirat(int(parent.Fd()), name, mode&0o777); err != nil {
		return err
	}
	if mode&^0o777 == 0 {
		return nil
	}
	return unix.Fchmodat(int(parent.Fd()), name, mode, 0)
}

// place opens what is at a path and makes an empty file if it is missing.
func (f *folder) place(at string) (*os.File, error) {
	place, err := f.open(at, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return place, err
	}
	if err := f.write(at, nil, 0o644); err != nil {
		return nil, err
	}
	return f.open(at, unix.O_NOFOLLOW)
}

// write replaces what is at a path, unless it is a directory, by a file.
func (f *folder) write(at string, content []byte, mode uint32) error {
	parent, err := f.directory(path.Dir("/"+inside(at)), 0o755)
	if err != nil {
		return err
	}
	defer parent.Close()
	file, err := createAt(parent, path.Base(at), mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// createAt creates a file in a directory, in place of what has its name, unless that is a directory.
func createAt(parent *os.File, name string, mode uint32) (*os.File, error) {
	if err := unix.Unlinkat(int(parent.Fd()), name, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replace %s: %w", name, err)
	}
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(int(parent.Fd()), name, flags, mode&0o777)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// removeAll removes a directory with everything in it, also what its owner made inaccessible, and what an overlay did.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	root, failed := os.OpenRoot(path.Dir(dir))
	if failed != nil {
		return err
	}
	defer root.Close()
	unlock(root, path.Base(dir))
	return os.RemoveAll(dir)
}

// unlock makes a directory and those in it accessible to their owner.
func unlock(root *os.Root, at string) {
	_ = root.Chmod(at, 0o700)
	dir, err := root.Open(at)
	if err != nil {
		return
	}
	entries, _ := dir.ReadDir(-1) // what was read counts
	_ = dir.Close()
	for _, entry := range entries {
		if entry.IsDir() {
			unlock(root, path.Join(at, entry.Name()))
		}
	}
}
