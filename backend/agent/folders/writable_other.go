//go:build !unix

package folders

import "os"

// writable reports whether a directory looks as if it could be written into.
func writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o200 != 0
}
