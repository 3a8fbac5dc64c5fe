//go:build linux || darwin

package files

import (
	"os"
	"syscall"
	"time"
)

// futimes is by descriptor: a path may lead elsewhere by now.
func futimes(file *os.File, at time.Time) error {
	stamp := syscall.NsecToTimeval(at.UnixNano())
	return syscall.Futimes(int(file.Fd()), []syscall.Timeval{stamp, stamp})
}
