package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/engine"
	"slipway/backend/peer"
)

const (
	guestSocket = "agent.sock" // in the link folder
	relaySocket = "relay.sock"
	// maxCallers is how many callers may be proving themselves, so that strangers cannot use up the node.
	maxCallers = 64
	// acceptPause is how long nothing is accepted after a failure, such as too many open files.
	acceptPause = 100 * time.Millisecond
)

// links joins the guest to the caller that came last.
type links struct {
	secret []byte
	users  string // user namespace of the guest
	weak   bool   // the guest has no capabilities
	sample func() (engine.Stats, error)
	guest  chan net.Conn // holds the guest's connection until a caller wants it
	first  chan struct{} // closed when the guest has connected
	turns  chan struct{} // has a token for each caller that is proving itself

	mu      sync.Mutex // guards current
	current func()     // closes the link of the caller that came last
}

func newLinks(secret []byte, users string, sample func() (engine.Stats, error)) *links {
	return &links{secret: secret, users: users, sample: sample, guest: make(chan net.Conn, 1),
		first: make(chan struct{}), turns: make(chan struct{}, maxCallers), current: func() {}}
}

// takeGuests accepts the guest's connections until the listener is closed. The latest counts.
func (l *links) takeGuests(listener net.Listener) {
	started := sync.OnceFunc(func() { close(l.first) })
	accept(listener, func(conn net.Conn) {
		if !l.isGuest(conn) {
			_ = conn.Close()
			return
		}
		started()
		select {
		case old := <-l.guest:
			_ = old.Close()
		default:
		}
		l.guest <- conn // nothing else fills it
	})
}

// isGuest reports whether the guest made a connection. The person's processes reach the socket as well. They lack the
// guest's capabilities, except in user namespaces of their own. A guest without capabilities cannot be told from the
// programs that it starts.
func (l *links) isGuest(conn net.Conn) bool {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	process, err := peer.Of(local)
	if err != nil {
		return false
	}
	defer process.Close() //nolint:errcheck // only read
	users, err := usersOf(process.PID)
	return err == nil && users == l.users && (l.weak || process.Capable(unix.CAP_SETPCAP))
}

// usersOf names the user namespace of a process.
func usersOf(pid int) (string, error) { return os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid)) }

// takeCallers accepts callers until the listener is closed.
func (l *links) takeCallers(listener net.Listener) {
	accept(listener, func(conn net.Conn) {
		select {
		case l.turns <- struct{}{}:
			go l.answer(conn)
		default:
			_ = conn.Close()
		}
	})
}

func accept(listener net.Listener, fn func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		default:
			fn(conn)
		}
	}
}

// answer serves one caller, if it knows the secret.
func (l *links) answer(conn net.Conn) {
	defer conn.Close()
	want, err := answerProof(conn, l.secret)
	<-l.turns
	switch {
	case err != nil:
	case want == wishLink:
		l.join(conn)
	case want == wishStats:
		if sample, err := l.sample(); err == nil {
			_ = conn.SetWriteDeadline(time.Now().Add(proofTimeout))
			_ = json.NewEncoder(conn).Encode(sample)
		}
	}
}

// join copies between a caller and the guest until either ends or another caller comes.
func (l *links) join(caller net.Conn) {
	closed := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(closed)
		_ = caller.Close()
	})
	defer end()
	l.mu.Lock()
	l.current()
	l.current = end
	l.mu.Unlock()
	select {
	case guest := <-l.guest:
		carry(caller, guest)
	case <-closed:
	}
}

// carry copies in both directions until either side ends, and closes both.
func carry(a, b io.ReadWriteCloser) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(a, b)
		_ = a.Close()
	})
	_, _ = io.Copy(b, a)
	_ = b.Close()
	back.Wait()
}

// relay SOCKET joins standard input and output to a socket until either ends. That they end together matters: srun that
// is killed leaves the relay on the node.
func relay(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "slipway-guest relay: name the socket")
		return 2
	}
	conn, err := dialSocket(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest relay:", err)
		return 1
	}
	return standardIO(conn)
}

// standardIO copies between standard input and output and a connection until either ends.
func standardIO(conn net.Conn) int {
	ended := make(chan struct{}, 2)
	copyAll := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go copyAll(conn, os.Stdin)
	go copyAll(os.Stdout, conn)
	<-ended
	return 0
}

// answer SOCKET takes the place of the agent where the engine is on another machine: it listens inside the container
// until the guest has dialled, writes [Answered], and joins the guest with standard input and output until either ends.
func answer(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "slipway-guest answer: name the socket")
		return 2
	}
	conn, err := awaitGuest(args[0])
	if err == nil {
		_, err = os.Stdout.Write([]byte{Answered})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest answer:", err)
		return 1
	}
	return standardIO(conn)
}

// awaitGuest listens at a socket in place of whoever did before, until the guest has dialled or the input has ended.
func awaitGuest(socket string) (net.Conn, error) {
	own, err := usersOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // another may listen there by then
	defer listener.Close()
	go func() {
		awaitHangup(os.Stdin)
		_ = listener.Close()
	}()
	links := &links{users: own}
	for {
		conn, err := listener.Accept()
		if err != nil || links.isGuest(conn) {
			return conn, err
		}
		_ = conn.Close()
	}
}

// awaitHangup waits until the other end of a pipe or socket is closed, and reads nothing.
func awaitHangup(file *os.File) {
	polled := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLRDHUP}}
	for {
		if _, err := unix.Poll(polled, -1); err != unix.EINTR {
			return
		}
	}
}
