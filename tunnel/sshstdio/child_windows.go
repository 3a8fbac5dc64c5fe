package sshstdio

import (
	"errors"
	"io"
	"net"
	"os"
)

// ends are the child's ends of two pipes.
type ends struct{ in, out *os.File }

// close closes this process's copies.
func (e ends) close() {
	_ = e.in.Close()
	_ = e.out.Close()
}

// socketPair joins two pipes to a connection that has deadlines.
func socketPair() (net.Conn, ends, error) {
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, ends{}, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, ends{}, errors.Join(err, theirIn.Close(), ourOut.Close())
	}
	near, far := net.Pipe()
	go func() {
		_, _ = io.Copy(far, ourIn) // ends when ssh does
		_ = far.Close()
		_ = ourIn.Close()
	}()
	go func() {
		_, _ = io.Copy(ourOut, far) // ends when near is closed
		_ = ourOut.Close()
	}()
	return near, ends{theirIn, theirOut}, nil
}
