//go:build !linux

package folder

import (
	"io/fs"
	"os"
)

func isStartFile(*os.Root, string, fs.FileInfo) bool { return false }
