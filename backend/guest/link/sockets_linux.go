package link

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sockets is the agent's end of a link, with the sockets that the guest handed over on it and that are not used yet.
type sockets struct {
	*net.UnixConn
	rights []byte // only for Read, of which there is one at a time

	mu        sync.Mutex // guards the rest
	spare     []int
	came      int // so far
	connected int
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
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.New("a socket that was not asked for")
	if !s.closed && len(s.spare) < mostSpare {
		err = checkSocket(descriptor)
	}
	if err != nil {
		return errors.Join(err, unix.Close(descriptor))
	}
	s.spare = append(s.spare, descriptor)
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
func (s *sockets) take() (socket, left int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left = len(s.spare)
	if s.closed || left == 0 || s.connected == mostConnected {
		return 0, left, false
	}
	left--
	socket = s.spare[left]
	s.spare = s.spare[:left]
	s.connected++
	return socket, left, true
}

// left returns how many sockets are left, and how many have come so far.
func (s *sockets) left() (left, came int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spare), s.came
}

func (s *sockets) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connected--
}

// connect connects a socket, which it owns, to a port on the loopback of its network.
func (s *sockets) connect(ctx context.Context, socket, port int) (net.Conn, error) {
	file := os.NewFile(uintptr(socket), "a socket of a session")
	conn, err := connect(ctx, file, port)
	if err := errors.Join(err, file.Close()); err != nil {
		s.release()
		return nil, err
	}
	return &connected{TCPConn: conn, closed: sync.OnceFunc(s.release)}, nil
}

// connect returns a connection with a duplicate of the descriptor.
func connect(ctx context.Context, file *os.File, port int) (*net.TCPConn, error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	begun := errors.New("it was closed")
	if err := raw.Control(func(fd uintptr) { begun = unix.Connect(int(fd), to) }); err != nil {
		return nil, err
	}
	if errors.Is(begun, unix.EINPROGRESS) {
		stop := context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) })
		defer stop()
		begun = nil
		if err := raw.Write(func(fd uintptr) bool { return settled(int(fd), &begun) }); err != nil {
			return nil, err
		}
	}
	if begun != nil {
		return nil, begun
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if ok {
		var at *net.TCPAddr
		at, ok = tcp.RemoteAddr().(*net.TCPAddr)
		ok = ok && at.Port == port && at.IP.Equal(net.IPv4(127, 0, 0, 1)) // not connected elsewhere before
	}
	if !ok {
		return nil, errors.Join(errors.New("the socket leads elsewhere"), conn.Close())
	}
	return tcp, nil
}

// settled reports whether an attempt to connect has ended, and how.
func settled(socket int, failure *error) bool {
	waiting := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}
	if n, err := unix.Poll(waiting, 0); n == 0 && err == nil || errors.Is(err, unix.EINTR) {
		return false
	}
	code, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if *failure = err; err == nil && code != 0 {
		*failure = unix.Errno(code)
	}
	return true
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

// connected is a connection whose socket was handed over.
type connected struct {
	*net.TCPConn
	closed func()
}

func (c *connected) Close() error {
	c.closed()
	return c.TCPConn.Close()
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
	defer closeAll(next)
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
	closeAll(g.next)
	g.next = nil
	g.mu.Unlock()
	return g.UnixConn.Close()
}

func closeAll(descriptors []int) {
	for _, descriptor := range descriptors {
		_ = unix.Close(descriptor)
	}
}
