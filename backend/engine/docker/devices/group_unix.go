//go:build unix

package devices

import (
	"io/fs"
	"syscall"
)

// groupOf is the number of the group that owns a file, 0 if it is unknown.
func groupOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Gid)
	}
	return 0
}
