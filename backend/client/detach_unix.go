//go:build unix

package client

import "syscall"

// detached makes a process the leader of a session of its own, so that neither
// the end of the terminal nor Ctrl-C in it reaches it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
