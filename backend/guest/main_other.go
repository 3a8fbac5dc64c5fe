//go:build !linux

package guest

import (
	"fmt"
	"os"
)

// Main fails, because containers are Linux.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "slipway-guest runs inside Linux containers only")
	return 2
}
