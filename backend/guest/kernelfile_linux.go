package guest

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// The maximum size of the kernel's files, in bytes.
const (
	maxKernelText  = 64 << 10
	maxKernelTable = 16 << 20
)

// kernelFile reads the beginning of a file of /proc or /sys, which are not the image's: the guest checks at its start.
func kernelFile(path string, most int64) ([]byte, error) {
	file, err := openKernel(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

func openKernel(path string) (*os.File, error) { return os.Open(path) }

// ownSockets returns the inodes of the sockets that processes of this container have.
func ownSockets() map[string]bool {
	own := map[string]bool{}
	processes, _ := os.ReadDir("/proc") // without it there are none
	for _, process := range processes {
		if _, err := strconv.Atoi(process.Name()); err != nil {
			continue
		}
		dir := "/proc/" + process.Name() + "/fd"
		files, _ := os.ReadDir(dir) // it may have ended
		for _, file := range files {
			target, _ := os.Readlink(dir + "/" + file.Name())
			if inode, ok := strings.CutPrefix(target, "socket:["); ok {
				own[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return own
}
