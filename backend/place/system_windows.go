package place

import (
	"io/fs"
	"syscall"
)

// detachedProcess is DETACHED_PROCESS of the Windows API, which syscall lacks.
const detachedProcess = 0x8

// Detached gives a process its own group and no console, so that neither the end of the console nor Ctrl-C ends it.
func Detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}

// ownedByUs reports true: on Windows a home has no folders of other users.
func ownedByUs(fs.FileInfo) bool { return true }
