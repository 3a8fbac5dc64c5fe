//go:build linux || darwin

package files

import (
	"os"
	"syscall"
	"time"
)

// futimes uses the descriptor, because the path may have been replaced.
func futimes(file *os.File, at time.Time) error {
	stamp := syscall.NsecToTimeval(at.UnixNano())
	return syscall.Futimes(int(file.Fd()), []syscall.Timeval{stamp, stamp})
}
