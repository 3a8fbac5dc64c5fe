//go:build !unix

package folder

import "io/fs"

// identity is not known here.
func identity(fs.FileInfo) (device, inode uint64) { return 0, 0 }

// names is how many names a file has, as far as can be told here.
func names(fs.FileInfo) uint64 { return 1 }
