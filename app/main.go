package app

import (
	"os"

	"slipway/backend"
)

// Main runs the program with its embedded user interface and returns the exit code of the process.
func Main(pages backend.Pages) int {
	if code, handled := runWindowed(os.Args[1:]); handled {
		return code
	}
	return backend.Main(os.Args[1:], pages)
}
