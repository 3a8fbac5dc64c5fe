//go:build unix

package place

import (
	"io/fs"
	"os"
	"syscall"
)

// Detached gives a process its own session, so that neither the end of the terminal nor Ctrl-C ends it.
func Detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// ownedByUs reports whether a file belongs to the user of this process.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
