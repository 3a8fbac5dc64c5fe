//go:build unix

package hostlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// open opens the file of a lock for reading, which is all that a lock needs, and makes it where it is not there. It
// follows no link, waits for nobody, and takes no other kind of file: whoever can write to the folder may have put
// anything there.
func open(path string) (*os.File, error) {
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	for range 2 {
		// Not both at once: systems that protect such folders forbid O_CREAT on what another user made.
		file, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
		if errors.Is(err, fs.ErrNotExist) {
			file, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL|flags, 0o444)
			if errors.Is(err, fs.ErrExist) {
				continue // made by another meanwhile
			}
			if err == nil {
				err = file.Chmod(0o444) // whatever the umask
			}
		}
		if err != nil {
			return nil, fmt.Errorf("hostlock: %w", err)
		}
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(fmt.Errorf("hostlock: %s is no plain file", path), err, file.Close())
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
