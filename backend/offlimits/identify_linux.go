package offlimits

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// identify opens a directory, so that its path and inode belong to the same one.
func identify(path string) (Found, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Found{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return Found{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return Found{Path: real, Device: stat.Dev, Inode: stat.Ino}, err
}
