//go:build !unix

package hostfs

import "os"

// writable reports whether a directory looks writable.
func writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o200 != 0
}
