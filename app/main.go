// Package app is the desktop app: the windows, the menu and what else only a native program can do. Only this package
// imports Wails.
//
// The window is a client of the control plane like the browser and the command line. It finds a running control plane
// or starts one in the background (slipway serve), loads a first page that redirects to a one-time login address on
// loopback, and then shows the same page as a browser. Nothing is bound to that page; native features arrive as Window
// events on the stream /api/v1/events?shell=1. So a crash of the window never affects a session.
//
// The window of an app, such as JupyterLab, is this program again, started as "window", with its address on stdin. It
// ends when stdin does.
//
// Without the build tag desktop the package has no window and runs the command line.
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
