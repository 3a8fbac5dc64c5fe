//go:build unix

package hostfs

import "syscall"

// writable reports whether this program's user may write into a directory.
func writable(path string) bool { return syscall.Access(path, 2) == nil } // 2 is W_OK of access(2)
