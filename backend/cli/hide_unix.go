//go:build linux || darwin

package cli

import "golang.org/x/sys/unix"

// hide has a terminal show nothing of what is typed until its state is restored.
func hide(fd int) error {
	state, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	state.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setTermios, state)
}
