// Package hostfs is the file system of the machine that an agent manages: that of this computer or, for a simulated
// machine, a directory in its place. Every path of a machine that people name is opened here.
package hostfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// FS is the file system of a machine. The zero value is that of this computer.
type FS struct {
	Root string // the directory that a simulated machine has as /, out of which no path or link leads
	Home string // of the person on a simulated machine
}

// Simulated reports whether this is not the file system of this computer.
func (f FS) Simulated() bool { return f.Root != "" }

// Clean cleans an absolute path. It reports false for others.
func (f FS) Clean(p string) (string, bool) {
	if f.Simulated() {
		return path.Clean(p), path.IsAbs(p)
	}
	return filepath.Clean(p), filepath.IsAbs(p)
}

// Join joins paths of the machine.
func (f FS) Join(elem ...string) string {
	if f.Simulated() {
		return path.Join(elem...)
	}
	return filepath.Join(elem...)
}

// HomeDir returns the home directory of the person, or / if it is unknown.
func (f FS) HomeDir() string {
	if f.Simulated() {
		return f.Home
	}
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	return "/"
}

// Host returns where this computer has a path of the machine.
func (f FS) Host(p string) string {
	if f.Simulated() {
		return filepath.Join(f.Root, filepath.FromSlash(inside(p)))
	}
	return p
}

// inside returns a path relative to the root.
func inside(p string) string {
	return path.Join(".", strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(p)), "/"))
}

// open calls own for a path of this computer, or do for one below the root of a simulated machine.
func open[T any](f FS, p string, own func(string) (T, error), do func(*os.Root, string) (T, error)) (T, error) {
	if !f.Simulated() {
		return own(p)
	}
	var none T
	root, err := os.OpenRoot(f.Root)
	if err != nil {
		return none, told(p, err)
	}
	defer root.Close()
	result, err := do(root, inside(p))
	return result, told(p, err)
}

// told returns an error with the path of the simulated machine.
func told(p string, err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: inner.Op, Path: p, Err: inner.Err}
	}
	return err
}

// These are the functions of package os.

func (f FS) Stat(p string) (fs.FileInfo, error)  { return open(f, p, os.Stat, (*os.Root).Stat) }
func (f FS) Lstat(p string) (fs.FileInfo, error) { return open(f, p, os.Lstat, (*os.Root).Lstat) }
func (f FS) OpenRoot(p string) (*os.Root, error) { return open(f, p, os.OpenRoot, (*os.Root).OpenRoot) }
func (f FS) ReadDir(p string) ([]fs.DirEntry, error) {
	return open(f, p, os.ReadDir,
		func(r *os.Root, rel string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS(), rel) })
}

// Writable reports whether the person may write into a directory.
func (f FS) Writable(p string) bool {
	if !f.Simulated() {
		return writable(p)
	}
	info, err := f.Stat(p)
	return err == nil && info.Mode().Perm()&0o200 != 0
}

// Resolve returns a path without links.
func (f FS) Resolve(p string) (string, error) {
	if !f.Simulated() {
		return filepath.EvalSymlinks(p)
	}
	if _, err := f.Stat(p); err != nil { // as of a link that leads out
		return "", err
	}
	root, err := filepath.EvalSymlinks(f.Root)
	if err != nil {
		return "", told(p, err)
	}
	real, err := filepath.EvalSymlinks(f.Host(p))
	if err != nil {
		return "", told(p, err)
	}
	rel, err := filepath.Rel(root, real)
	if err != nil || !filepath.IsLocal(rel) { // a link was replaced meanwhile
		return "", &fs.PathError{Op: "resolve", Path: p, Err: fs.ErrPermission}
	}
	return path.Join("/", filepath.ToSlash(rel)), nil
}
