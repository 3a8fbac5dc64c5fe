//go:build !linux || !cgo

package nvml

import "os"

// Built says whether this program can be the child: it was built with C linkage on Linux.
const Built = false

// openDriver returns a driver that explains why it cannot read.
func openDriver(string, *os.File) driver { return noDriver{} }

type noDriver struct{}

func (noDriver) inventory([]omission) ([]deviceFacts, []loss, *fault) {
	return nil, nil, &fault{Code: codeNoCgo}
}

func (noDriver) sample(request) (*reading, []loss, *fault) {
	return nil, nil, &fault{Code: codeNoCgo}
}
