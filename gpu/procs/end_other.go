//go:build !unix

package procs

import "syscall"

// terminate ends a process: there is no asking here.
const terminate = syscall.SIGKILL
