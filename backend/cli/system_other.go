//go:build !linux && !darwin

package cli

import (
	"os"
	"syscall"
)

// notifyResize does nothing: this system has no signal for it.
func notifyResize(chan<- os.Signal) {}

// forwarded are the signals that exec passes on.
func forwarded() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// signalNumber is the number that a signal has on Linux, where the command runs.
func signalNumber(sig os.Signal) int {
	if sig == os.Interrupt {
		return 2
	}
	return 15
}

func ignoreBackgroundRead() {}

// hide does nothing: whoever reads a secret hides it.
func hide(int) error { return nil }
