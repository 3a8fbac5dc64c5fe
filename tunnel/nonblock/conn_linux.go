//go:build !race

package nonblock

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// socket is what connections of TCP and of Unix sockets have.
type socket interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

type conn struct {
	socket
	in, out direction
}

// Conn returns a connection that owns c, or c itself where it is no plain socket, not on Linux, and under the race
// detector, which learns from the net package's calls what happens before what.
func Conn(c net.Conn) net.Conn {
	s, ok := c.(socket)
	if !ok {
		return c
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return c
	}
	own := &conn{socket: s}
	own.in.begin(raw.Read, syscall.SYS_READ)
	own.out.begin(raw.Write, syscall.SYS_WRITE)
	return own
}

func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.in.do(p)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

func (c *conn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = c.out.do(p[n:])
		n += more
	}
	return n, err
}

// direction does one call at a time.
type direction struct {
	wait func(func(fd uintptr) bool) error // calls a function whenever the socket is ready, until it reports true
	call uintptr                           // number of the system call
	try  func(fd uintptr) bool

	mu     sync.Mutex // guards everything below
	p      []byte
	n      int
	failed syscall.Errno
}

func (d *direction) begin(wait func(func(fd uintptr) bool) error, call uintptr) {
	d.wait, d.call, d.try = wait, call, d.once
}

func (d *direction) do(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.p = p
	err := d.wait(d.try)
	d.p = nil
	switch {
	case err != nil:
		return 0, err
	case d.failed != 0:
		return 0, os.NewSyscallError("socket", d.failed)
	}
	return d.n, nil
}

// once reports whether the call was made, with success or not.
func (d *direction) once(fd uintptr) bool {
	for {
		n, _, err := syscall.RawSyscall(d.call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(d.p))), uintptr(len(d.p)))
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		}
		d.n, d.failed = int(n), err
		return true
	}
}
