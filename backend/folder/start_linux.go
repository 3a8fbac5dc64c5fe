package folder

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"slipway/backend/session"
)

// isStartFile reports whether a file was copied from an image into a new home and not changed since.
func isStartFile(root *os.Root, name string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() {
		return false
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	value := make([]byte, 32)
	n, err := syscall.Getxattr(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), session.StartFileMark, value)
	return err == nil && string(value[:n]) == strconv.FormatInt(info.ModTime().UnixNano(), 10)
}
