package cli

import "golang.org/x/sys/unix"

// getTermios and setTermios read and write the state of a terminal.
const getTermios, setTermios = unix.TCGETS, unix.TCSETS
