//go:build unix

package folder

import (
	"io/fs"
	"syscall"
)

// identity returns what identifies a file under all of its names.
func identity(info fs.FileInfo) (device, inode uint64) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Dev), uint64(stat.Ino) //nolint:unconvert // their types differ between systems
	}
	return 0, 0
}

func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // see above
	}
	return 1
}
