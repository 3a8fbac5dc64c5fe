//go:build linux || darwin

package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// notifyResize tells c when the terminal has another size.
func notifyResize(c chan<- os.Signal) { signal.Notify(c, syscall.SIGWINCH) }

// forwarded are the signals that exec passes on.
func forwarded() []os.Signal {
	return []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1,
		syscall.SIGUSR2}
}

// signalNumber is the number that a signal has on Linux, where the command runs.
func signalNumber(sig os.Signal) int {
	switch sig {
	case syscall.SIGUSR1:
		return 10
	case syscall.SIGUSR2:
		return 12
	}
	if number, ok := sig.(syscall.Signal); ok {
		return int(number)
	}
	return int(syscall.SIGTERM)
}

// ignoreBackgroundRead has a read from the terminal fail while this process is in the background, which would else stop
// it.
func ignoreBackgroundRead() { signal.Ignore(syscall.SIGTTIN) }

// hide has a terminal show nothing of what is typed until its state is restored.
func hide(fd int) error {
	state, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	state.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setTermios, state)
}
