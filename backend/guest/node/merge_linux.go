package node

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// merge copies layers, lowest first, to an empty folder, where they are as an overlay shows them.
func merge(layers []string, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, layer := range layers {
		m := &merger{from: layer, to: root, copied: map[uint64]string{}}
		if err := filepath.WalkDir(layer, m.add); err != nil {
			return err
		}
		for i := len(m.dirs) - 1; i >= 0; i-- { // after what adding to them changes
			if err := m.finish(m.dirs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// merger merges one layer.
type merger struct {
	from   string
	to     *os.Root
	dirs   []string
	copied map[uint64]string // files with several names, by their number in the layer
}

func (m *merger) add(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, err := filepath.Rel(m.from, path)
	if err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return err
	}
	there, err := m.to.Lstat(name)
	if hides := !entry.IsDir() || isOpaque(path) || err == nil && !there.IsDir(); hides && name != "." {
		if err := m.to.RemoveAll(name); err != nil {
			return err
		}
	}
	switch {
	case entry.IsDir():
		m.dirs = append(m.dirs, name)
		if err := m.to.Mkdir(name, 0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case entry.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return m.to.Symlink(target, name)
	case entry.Type().IsRegular() && stat.Nlink > 1 && m.copied[stat.Ino] != "":
		return m.to.Link(m.copied[stat.Ino], name)
	case entry.Type().IsRegular():
		m.copied[stat.Ino] = name
		return errors.Join(m.copy(path, name), m.finish(name))
	}
	return nil // a whiteout, which has done its work, or a pipe
}

// isOpaque reports whether a directory hides those below it.
func isOpaque(path string) bool {
	value := make([]byte, 1)
	n, err := unix.Lgetxattr(path, opaque, value)
	return err == nil && n == 1 && value[0] == 'y'
}

func (m *merger) copy(path, name string) error {
	to, err := m.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	from, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) { // nor can its owner read it in the container
		return to.Close()
	}
	if err == nil {
		_, err = io.Copy(to, from) // by the kernel, and without copying where the file system can
		err = errors.Join(err, from.Close())
	}
	return errors.Join(err, to.Close())
}

// finish gives a file or a directory its mode and time.
func (m *merger) finish(name string) error {
	info, err := os.Lstat(filepath.Join(m.from, name))
	if err != nil {
		return err
	}
	return errors.Join(m.to.Chmod(name, info.Mode()), m.to.Chtimes(name, info.ModTime(), info.ModTime()))
}
