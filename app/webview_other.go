//go:build desktop && !linux

package app

// installWebViewHooks has nothing to do: the web views of these systems handle new windows and downloads themselves.
func installWebViewHooks() {}

// zoomWebViews has nothing to do: the setting is that of Linux desktops.
func zoomWebViews(int) {}
