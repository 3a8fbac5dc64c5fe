//go:build !linux

package daemon

import "os"

// descriptorPath is not to be had here.
func descriptorPath(*os.File, string) (string, bool) { return "", false }
