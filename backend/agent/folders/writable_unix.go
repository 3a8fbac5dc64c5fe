//go:build unix

package folders

import "syscall"

const writeAccess = 2 // W_OK of access(2)

// writable reports whether this program's user may write into a directory.
func writable(path string) bool { return syscall.Access(path, writeAccess) == nil }
