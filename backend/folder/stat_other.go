//go:build !unix

package folder

import "io/fs"

// identity is not known here.
func identity(fs.FileInfo) (device, inode uint64) { return 0, 0 }

// names is not known here.
func names(fs.FileInfo) uint64 { return 1 }
