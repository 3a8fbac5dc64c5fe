package node

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unusedLayer is how long a layer stays on a node after its last use.
const unusedLayer = 7 * 24 * time.Hour

// local is the folder of a node that the runs of one person share.
type local struct{ dir string }

func (l *local) layers() string { return filepath.Join(l.dir, "layers") }
func (l *local) runs() string   { return filepath.Join(l.dir, "runs") }
func (l *local) trash() string  { return filepath.Join(l.dir, "trash") }

// openLocal opens the folder, which must be the person's alone: anybody can make one in /tmp.
func openLocal(dir string) (*local, error) {
	if dir == "" {
		dir = "/tmp/slipway-" + strconv.Itoa(os.Getuid())
	}
	l := &local{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Lstat(dir, &stat); err != nil {
		return nil, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || int(stat.Uid) != os.Getuid() {
		return nil, fmt.Errorf("the folder %s on this node belongs to somebody else", dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	for _, part := range []string{l.layers(), l.runs(), l.trash()} {
		if err := os.MkdirAll(part, 0o700); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// open makes the folder of a run and locks it for as long as the lock is open. It removes what ended runs left, and
// layers that have not been used for long.
func (l *local) open(run string) (dir string, lock *os.File, err error) {
	all, err := lockFile(filepath.Join(l.dir, "lock"), unix.LOCK_EX)
	if err != nil {
		return "", nil, err
	}
	defer all.Close()
	dir = filepath.Join(l.runs(), run)
	if lock, err = lockFile(dir+".lock", unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return "", nil, fmt.Errorf("%w: %w", errHere, err)
	}
	l.sweep(l.runs(), func(fs.FileInfo) bool { return true })
	l.sweep(l.layers(), func(lock fs.FileInfo) bool { return time.Since(lock.ModTime()) > unusedLayer })
	err = l.discard(dir) // of an earlier start
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	go l.empty()
	return dir, lock, nil
}

// sweep discards the folders whose lock nobody has. Whoever makes one holds the lock of all.
func (l *local) sweep(in string, old func(lock fs.FileInfo) bool) {
	locks, err := filepath.Glob(filepath.Join(in, "*.lock"))
	if err != nil {
		return
	}
	for _, path := range locks {
		info, err := os.Lstat(path)
		if err != nil || !old(info) {
			continue
		}
		lock, err := lockFile(path, unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			continue
		}
		if l.discard(strings.TrimSuffix(path, ".lock")) == nil {
			_ = os.Remove(path)
		}
		_ = lock.Close()
	}
}

// discard moves a folder, if there is one, to those that are removed.
func (l *local) discard(dir string) error {
	err := os.Rename(dir, filepath.Join(l.trash(), filepath.Base(dir)+"-"+rand.Text()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// empty removes what was discarded, also by others.
func (l *local) empty() {
	entries, err := os.ReadDir(l.trash())
	if err != nil {
		return
	}
	for _, entry := range entries {
		_ = removeAll(filepath.Join(l.trash(), entry.Name()))
	}
}

// lockFile opens and locks a file, which others may remove while it waits.
func lockFile(path string, how int) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(file, how); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		locked, err := file.Stat()
		if there, missing := os.Lstat(path); err == nil && missing == nil && os.SameFile(locked, there) {
			return file, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

func flock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
