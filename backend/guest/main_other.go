//go:build !linux

package guest

import (
	"fmt"
	"os"
)

// Main says that containers are Linux.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "slipway-guest runs inside Linux containers only")
	return 2
}
