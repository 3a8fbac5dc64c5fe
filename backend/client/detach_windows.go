package client

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached gives a process no console and a group of its own, so that neither
// the end of the console nor Ctrl-C in it reaches it.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
