//go:build !unix

package folder

import "io/fs"

func identity(fs.FileInfo) (device, inode uint64) { return 0, 0 }

func names(fs.FileInfo) uint64 { return 1 }
