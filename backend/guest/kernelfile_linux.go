package guest

import (
	"io"
	"os"
)

// How much is read of what the kernel tells, in bytes.
const (
	maxKernelText  = 64 << 10
	maxKernelTable = 16 << 20
)

// kernelFile reads the beginning of a file of /proc or /sys. Neither is the image's: the container has them mounted,
// and the guest looks at its start.
func kernelFile(path string, most int64) ([]byte, error) {
	file, err := openKernel(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

func openKernel(path string) (*os.File, error) { return os.Open(path) }
