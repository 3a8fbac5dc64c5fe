package app

import (
	"io/fs"
	"os"

	"slipway/backend"
)

// Main runs the program with its embedded user interface and returns the exit
// code of the process.
func Main(assets fs.FS) int {
	if code, handled := runWindowed(os.Args[1:]); handled {
		return code
	}
	return backend.Main(os.Args[1:], assets)
}
