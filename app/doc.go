// Package app is the desktop shell: the window, its menu, app windows and what only a native program can do. It is the
// only importer of Wails.
//
// The window is a client of the control plane like the browser and the command line. It finds a running one or starts
// it detached (slipway serve), loads a stub page that goes to a one-time login address on loopback, and from then on
// shows the very page a browser would. Nothing is bound to that page; native features arrive as Window events on the
// stream /api/v1/events?shell=1. A crash of the window therefore never touches a session.
//
// A window of an app, such as JupyterLab, is this same program executed again as "window --url …" with nothing bound
// and a life tied to its parent by stdin.
//
// Without the build tag desktop the package has no window and is the command line alone.
package app
