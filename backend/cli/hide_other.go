//go:build !linux && !darwin

package cli

// hide does nothing: whoever reads a secret hides it.
func hide(int) error { return nil }
