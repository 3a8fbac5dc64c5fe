//go:build unix

package askpass

import (
	"os/exec"
	"syscall"
)

// Detach puts a program into a session of its own: it neither gets a terminal's signals nor asks there.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Terminate ends a detached program and what it started, such as ssh to reach jump hosts.
func Terminate(cmd *exec.Cmd, now bool) {
	signal := syscall.SIGTERM
	if now {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-cmd.Process.Pid, signal) // the process has not been waited for, or the group is empty
}
