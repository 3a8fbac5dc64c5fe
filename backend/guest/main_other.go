//go:build !linux

package guest

import (
	"fmt"
	"os"
)

// Main fails, because containers are Linux.
func Main([]string, map[string]func([]string) int) int {
	fmt.Fprintln(os.Stderr, "slipway-guest runs inside Linux containers only")
	return 2
}
