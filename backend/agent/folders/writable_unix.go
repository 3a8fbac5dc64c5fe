//go:build unix

package folders

import "syscall"

// writeAccess is W_OK of access(2).
const writeAccess = 2

// writable reports whether this program's user may write into a directory.
func writable(path string) bool { return syscall.Access(path, writeAccess) == nil }
