//go:build unix

package place

import "syscall"

// Detached makes a process the leader of a session of its own, so that neither
// the end of the terminal nor Ctrl-C in it reaches it.
func Detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
