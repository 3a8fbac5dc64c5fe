//go:build unix

package hostlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// open opens or creates the file of a lock for reading, which is enough for a lock. It follows no link, does not block
// and accepts only a regular file, because every user can write to the folder.
func open(path string) (*os.File, error) {
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	for range 2 {
		// O_CREAT only if it is missing: the kernel may refuse it for another user's file (protected_regular).
		file, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
		if errors.Is(err, fs.ErrNotExist) {
			file, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL|flags, 0o444)
			if errors.Is(err, fs.ErrExist) {
				continue // created by another program meanwhile
			}
			if err == nil {
				err = file.Chmod(0o444) // whatever the umask
			}
		}
		if err != nil {
			return nil, fmt.Errorf("hostlock: %w", err)
		}
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(fmt.Errorf("hostlock: %s is not a regular file", path), err, file.Close())
		}
		return file, nil
	}
	return nil, fmt.Errorf("hostlock: %s comes and goes", path)
}

func try(file *os.File) (bool, error) {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
