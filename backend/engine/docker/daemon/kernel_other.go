//go:build !linux

package daemon

// kernelRelease is empty: containers need Linux, so no daemon shares this
// machine's kernel.
func kernelRelease() string { return "" }
