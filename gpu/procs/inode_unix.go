//go:build unix

package procs

import (
	"io/fs"
	"strconv"
	"syscall"
)

func fileNumber(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(stat.Ino, 10)
	}
	return ""
}
