// Package nonblock makes the sockets of a relay cheaper to read and write.
//
// The Go runtime watches each system call that the net package makes: it wakes a thread, which then looks every 20 µs
// for calls that block, and goes on for several ms. A process that relays many small pieces and is idle in between
// spends a quarter of its CPU time on that. Reads and writes of a socket that does not block need no such watch. The
// waits between them are those of the net package, and so are deadlines and errors.
package nonblock

import "net"

// Listen returns a listener whose connections are those of another, wrapped by [Conn].
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Conn(c), nil
}
