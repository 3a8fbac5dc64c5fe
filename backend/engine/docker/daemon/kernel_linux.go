package daemon

import (
	"os"
	"strings"
)

// kernelRelease is what uname -r prints, "" if it cannot be read.
func kernelRelease() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(release))
}
