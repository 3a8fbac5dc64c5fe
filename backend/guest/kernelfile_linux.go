package guest

import (
	"io"
	"os"
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
