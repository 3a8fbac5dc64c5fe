//go:build unix

package procs

import "syscall"

// terminate asks a process to end and lets it tidy up.
const terminate = syscall.SIGTERM
