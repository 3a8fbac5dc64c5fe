package askpass

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// Detach gives a program no console: none opens for it, Ctrl-C does not end it, and it asks our askpass program only.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP}
}

// Terminate ends a detached program.
func Terminate(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }
