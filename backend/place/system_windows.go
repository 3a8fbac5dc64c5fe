package place

import (
	"io/fs"
	"syscall"
)

// detachedProcess is DETACHED_PROCESS of the Windows API, which syscall lacks.
const detachedProcess = 0x8

// Detached gives a process no console and a group of its own, so that neither the end of the console nor Ctrl-C in it
// reaches it.
func Detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}

// ownedByUs reports true: the folders of a home have no other owner here.
func ownedByUs(fs.FileInfo) bool { return true }
