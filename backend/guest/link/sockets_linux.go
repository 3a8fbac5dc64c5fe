package link

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockets is the agent's end of a link, with the sockets that the guest handed over on it and that are not used yet.
//
// Connecting and closing is done for each request to a model. An ordinary system call of a process that was idle wakes
// the thread with which Go watches for calls that block, which costs more than the call. So these make raw ones, which
// do not block, and a socket is made ready for them when it arrives.
type sockets struct {
	*net.UnixConn
	rights []byte // only for Read, of which there is one at a time

	mu        sync.Mutex // guards the rest
	spare     []*net.TCPConn
	came      int // so far
	connected int
	ended     []*net.TCPConn // shut down, to be closed together
	closed    bool
}

// receive prepares a connection for sockets, and returns nil if it cannot have any.
func receive(conn net.Conn) (net.Conn, *sockets) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return conn, nil
	}
	const size = 4 // bytes of a descriptor
	s := &sockets{UnixConn: unixConn, rights: make([]byte, unix.CmsgSpace(socketBatch*size))}
	return s, s
}

// Read takes the sockets that arrive with the bytes.
func (s *sockets) Read(p []byte) (int, error) {
	// Those beyond the length of rights are closed by the kernel.
	n, length, _, _, err := s.ReadMsgUnix(p, s.rights)
	if length == 0 {
		return n, err
	}
	messages, failed := unix.ParseSocketControlMessage(s.rights[:length])
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		failed = errors.Join(failed, err)
		for _, descriptor := range descriptors {
			failed = errors.Join(failed, s.add(descriptor))
		}
	}
	if failed != nil {
		return 0, errors.Join(failed, s.Close())
	}
	return n, err
}

// add keeps a socket, which must be as the guest makes them. Otherwise it closes it.
func (s *sockets) add(descriptor int) error {
	file := os.NewFile(uintptr(descriptor), "a socket of a session")
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.New("a socket that was not asked for")
	if !s.closed && len(s.spare) < mostSpare {
		err = checkSocket(descriptor)
	}
	var conn net.Conn
	if err == nil {
		conn, err = net.FileConn(file) // a duplicate, although it leads nowhere yet
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	s.spare = append(s.spare, conn.(*net.TCPConn))
	s.came++
	return nil
}

// checkSocket fails unless a descriptor is a socket of TCP over IPv4.
func checkSocket(descriptor int) error {
	for option, want := range map[int]int{unix.SO_DOMAIN: unix.AF_INET, unix.SO_TYPE: unix.SOCK_STREAM,
		unix.SO_PROTOCOL: unix.IPPROTO_TCP, unix.SO_ACCEPTCONN: 0} {
		if got, err := unix.GetsockoptInt(descriptor, unix.SOL_SOCKET, option); err != nil || got != want {
			return errors.Join(errors.New("what was handed over is no socket of TCP"), err)
		}
	}
	return unix.SetNonblock(descriptor, true)
}

// take returns a socket, if there is one and may be another connection, and how many are left.
func (s *sockets) take() (socket *net.TCPConn, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left = len(s.spare)
	if s.closed || left == 0 || s.connected == mostConnected {
		return nil, left
	}
	left--
	socket = s.spare[left]
	s.spare = s.spare[:left]
	s.connected++
	return socket, left
}

// left returns how many sockets are left, and how many have come so far.
func (s *sockets) left() (left, came int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spare), s.came
}

// connect connects a socket, which it owns, to a port on the loopback of its network.
func (s *sockets) connect(ctx context.Context, socket *net.TCPConn, port int) (net.Conn, error) {
	if err := connect(ctx, socket, port); err != nil {
		s.end(socket)
		return nil, err
	}
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	return &connected{TCPConn: socket, at: at, end: sync.OnceFunc(func() { s.end(socket) })}, nil
}

func connect(ctx context.Context, socket *net.TCPConn, port int) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	to := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&to.Port))[:], uint16(port))
	begun := unix.EBADF
	if err := raw.Control(func(fd uintptr) {
		_, _, begun = unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&to)), unsafe.Sizeof(to))
	}); err != nil {
		return err
	}
	if begun != 0 && begun != unix.EINPROGRESS {
		return begun
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	var failure error
	if err := raw.Write(func(fd uintptr) bool { return settled(fd, to, &failure) }); err != nil {
		return err
	}
	return failure
}

// settled reports whether an attempt to connect has ended, and how.
func settled(fd uintptr, to unix.RawSockaddrInet4, failure *error) bool {
	var at unix.RawSockaddrInet4
	length := uint32(unsafe.Sizeof(at))
	_, _, no := unix.RawSyscall(unix.SYS_GETPEERNAME, fd, uintptr(unsafe.Pointer(&at)),
		uintptr(unsafe.Pointer(&length)))
	switch {
	case no == 0 && (at.Family != to.Family || at.Port != to.Port || at.Addr != to.Addr):
		*failure = errors.New("the socket leads elsewhere") // it was connected before
	case no != 0 && no != unix.ENOTCONN:
		*failure = no
	case no == unix.ENOTCONN:
		code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case err != nil:
			*failure = err
		case code != 0:
			*failure = unix.Errno(code)
		default:
			return false
		}
	}
	return true
}

// endPause is how long sockets that were shut down wait to be closed together.
const endPause = 100 * time.Millisecond

// end ends a connection at once, and has its socket closed soon.
func (s *sockets) end(socket *net.TCPConn) {
	_ = socket.SetDeadline(time.Unix(1, 0)) // who reads or writes is done
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _, _ = unix.RawSyscall(unix.SYS_SHUTDOWN, fd, unix.SHUT_RDWR, 0) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected--
	if s.ended = append(s.ended, socket); len(s.ended) == 1 {
		time.AfterFunc(endPause, s.bury)
	}
}

func (s *sockets) bury() {
	s.mu.Lock()
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	closeAll(ended)
}

// Close closes the link and the sockets that nobody has used. Connections stay.
func (s *sockets) Close() error {
	s.mu.Lock()
	s.closed = true
	closeAll(s.spare)
	s.spare = nil
	s.mu.Unlock()
	return s.UnixConn.Close()
}

func closeAll(sockets []*net.TCPConn) {
	for _, socket := range sockets {
		_ = socket.Close()
	}
}

// connected is a connection whose socket was handed over.
type connected struct {
	*net.TCPConn
	at  net.Addr
	end func()
}

func (c *connected) RemoteAddr() net.Addr { return c.at }

func (c *connected) Close() error {
	c.end()
	return nil
}

// Giver is the guest's end of a link, on which it hands sockets over.
type Giver struct {
	*net.UnixConn

	mu     sync.Mutex // guards the rest
	next   []int      // sent with the next bytes
	closed bool
}

// NewGiver returns nil if no socket can be handed over on a connection.
func NewGiver(conn net.Conn) *Giver {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	return &Giver{UnixConn: unixConn}
}

// Give hands over up to so many new sockets of this process's network, with the next bytes that are written.
func (g *Giver) Give(count int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for handed := 0; !g.closed && handed < count && len(g.next) < socketBatch; handed++ {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
		if err != nil {
			return
		}
		g.next = append(g.next, socket)
	}
}

func (g *Giver) Write(p []byte) (int, error) {
	g.mu.Lock()
	next := g.next
	g.next = nil
	g.mu.Unlock()
	if len(next) == 0 {
		return g.UnixConn.Write(p)
	}
	defer forget(next)
	n, _, err := g.WriteMsgUnix(p, unix.UnixRights(next...), nil)
	if err != nil || n == len(p) {
		return n, err
	}
	rest, err := g.UnixConn.Write(p[n:])
	return n + rest, err
}

// Close closes the link and what was not sent.
func (g *Giver) Close() error {
	g.mu.Lock()
	g.closed = true
	forget(g.next)
	g.next = nil
	g.mu.Unlock()
	return g.UnixConn.Close()
}

func forget(descriptors []int) {
	for _, descriptor := range descriptors {
		_ = unix.Close(descriptor)
	}
}
