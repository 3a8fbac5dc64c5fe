//go:build unix

package sshstdio

import (
	"net"
	"os"
	"syscall"
)

// ends are the child's ends of a socket pair.
type ends struct{ in, out *os.File }

// close closes this process's copies.
func (e ends) close() { _ = e.in.Close() } // in and out are one

// socketPair makes a connection that has deadlines, unlike a pipe to a child.
func socketPair() (net.Conn, ends, error) {
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, ends{}, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ssh"), os.NewFile(uintptr(pair[1]), "ssh")
	conn, err := net.FileConn(ours) // duplicates it
	_ = ours.Close()
	if err != nil {
		_ = theirs.Close()
		return nil, ends{}, err
	}
	return conn, ends{theirs, theirs}, nil
}
