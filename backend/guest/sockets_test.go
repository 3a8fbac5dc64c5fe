//go:build linux

package guest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/guest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/tunnel"
)

// unixPair returns the ends of a connection as the engine makes it.
func unixPair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	var ends [2]net.Conn
	for i, fd := range pair {
		file := os.NewFile(uintptr(fd), "link")
		ends[i], err = net.FileConn(file)
		must(t, errors.Join(err, file.Close()))
	}
	return ends[0], ends[1]
}

// shouter is a server that repeats lines.
func shouter(t *testing.T) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				// Without splice(2), whose pipes stay open.
				_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn})
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Wait()
	})
	return listener.Addr().(*net.TCPAddr).Port
}

// repeats fails unless the other end repeats a line.
func repeats(t *testing.T, conn net.Conn) {
	t.Helper()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err := fmt.Fprintln(conn, "a line")
	must(t, err)
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "a line\n" || err != nil {
		t.Errorf("the answer is %q, %v", line, err)
	}
}

// descriptors returns how many files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// closesAll fails if more files are open after a test than before it.
func closesAll(t *testing.T) {
	t.Helper()
	before := descriptors(t)
	t.Cleanup(func() {
		for end := time.Now().Add(patience); descriptors(t) > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d files are open, %d were", descriptors(t), before)
			}
		}
	})
}

// handing links a client to a guest that can hand sockets over.
func handing(t *testing.T, p *paper) *link.Client {
	t.Helper()
	ours, theirs := unixPair(t)
	g := guest.New(guest.Config{Processes: p})
	g.Ready()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = g.Serve(context.Background(), theirs)
	}()
	client, err := link.Connect(t.Context(), ours)
	must(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		<-served
	})
	return client
}

func TestSocketsAreHandedOver(t *testing.T) {
	closesAll(t)
	port := shouter(t)
	client := handing(t, &paper{})
	var conns []net.Conn
	for range 300 { // more than a link has streams
		conn, err := client.Dial(t.Context(), port)
		must(t, err)
		defer conn.Close()
		conns = append(conns, conn)
	}
	must(t, client.Close())
	for _, conn := range conns {
		repeats(t, conn) // without the link
	}
}

func TestManyConnectAtOnce(t *testing.T) {
	closesAll(t)
	port := shouter(t)
	client := handing(t, &paper{})
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			conn, err := client.Dial(t.Context(), port)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			repeats(t, conn)
		})
	}
	all.Wait()
}

// unused returns a port on which nothing listens.
func unused(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// echoes returns a connection that repeats what is written to it.
func echoes(int) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

// A server may listen on IPv6 alone, and an engine may have no such sockets.
func TestTheGuestDialsWhatASocketDoesNotReach(t *testing.T) {
	closesAll(t)
	port := unused(t)
	for _, client := range []*link.Client{handing(t, &paper{dial: echoes}),
		join(t, guest.New(guest.Config{Processes: &paper{dial: echoes}}))} {
		conn, err := client.Dial(t.Context(), port)
		must(t, err)
		repeats(t, conn)
		must(t, conn.Close())
	}
	if _, err := handing(t, &paper{}).Dial(t.Context(), port); session.CodeOf(err) != session.CodeAppTimeout {
		t.Errorf("a port on which nothing listens: %v", err)
	}
}

// smuggler is a connection that sends descriptors with the next bytes.
type smuggler struct {
	*net.UnixConn

	mu   sync.Mutex // guards next
	next []int
}

func (s *smuggler) load(descriptors []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = descriptors
}

func (s *smuggler) Write(p []byte) (int, error) {
	s.mu.Lock()
	next := s.next
	s.next = nil
	s.mu.Unlock()
	if len(next) == 0 {
		return s.UnixConn.Write(p)
	}
	n, _, err := s.WriteMsgUnix(p, unix.UnixRights(next...), nil)
	return n, err
}

// pretend links a client to a guest whose answers, besides hello, are up to the test.
func pretend(t *testing.T, answer func(s *smuggler, stream net.Conn, req link.Request)) *link.Client {
	t.Helper()
	ours, theirs := unixPair(t)
	s := &smuggler{UnixConn: theirs.(*net.UnixConn)}
	mux, err := tunnel.NewMux(s, tunnel.Accepter)
	must(t, err)
	var streams sync.WaitGroup
	streams.Go(func() {
		for {
			stream, err := mux.Accept()
			if err != nil {
				return
			}
			var req link.Request
			switch err := link.ReadMessage(stream, &req); {
			case err != nil:
			case req.Op == link.OpHello:
				_ = link.ReplyOK(stream, link.Hello{Version: link.Version})
			default:
				streams.Go(func() { answer(s, stream, req) })
			}
		}
	})
	client, err := link.Connect(t.Context(), ours)
	must(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = mux.Close()
		streams.Wait()
	})
	return client
}

func TestADialEndsWithItsContext(t *testing.T) {
	closesAll(t)
	asked, may := make(chan struct{}), make(chan struct{})
	client := pretend(t, func(_ *smuggler, stream net.Conn, req link.Request) {
		if req.Op == link.OpSockets {
			close(asked)
			<-may
		}
		_ = link.ReplyError(stream, errors.New("it cannot"))
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	for range 3 {
		go func() {
			_, err := client.Dial(ctx, 80)
			failed <- err
		}()
	}
	<-asked
	cancel()
	for range 3 {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled dial: %v", err)
		}
	}
	close(may)
	if _, err := client.Dial(t.Context(), 80); session.CodeOf(err) != session.CodeGuestInternal {
		t.Errorf("a guest that cannot dial: %v", err)
	}
}

func TestTheEndOfALinkEndsDials(t *testing.T) {
	closesAll(t)
	client := pretend(t, func(s *smuggler, _ net.Conn, _ link.Request) { _ = s.Close() })
	if _, err := client.Dial(t.Context(), 80); session.CodeOf(err) != session.CodeSessionUnavailable {
		t.Errorf("the dial failed with %v", err)
	}
}

func TestAGuestOfAnEarlierVersionDials(t *testing.T) {
	closesAll(t)
	var calls atomic.Int64
	client := pretend(t, func(_ *smuggler, stream net.Conn, req link.Request) {
		defer stream.Close()
		if req.Op != link.OpDial {
			calls.Add(1)
			_ = link.ReplyError(stream, session.NewError(session.CodeGuestInvalid, "It does not know the call.", ""))
			return
		}
		_ = link.ReplyOK(stream, struct{}{})
		_, _ = io.Copy(stream, stream)
	})
	for range 3 {
		conn, err := client.Dial(t.Context(), 80)
		must(t, err)
		repeats(t, conn)
		must(t, conn.Close())
	}
	if calls.Load() != 1 {
		t.Errorf("it was asked for sockets %d times", calls.Load())
	}
}

// A guest that is not as it should be hands over what nobody can use.
func TestStrangeSocketsAreClosed(t *testing.T) {
	port := shouter(t)
	null, err := os.Open("/dev/null")
	must(t, err)
	defer null.Close()
	used, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(t, err)
	defer used.Close()
	repeats(t, used) // it is accepted
	file, err := used.(*net.TCPConn).File()
	must(t, err)
	defer file.Close()
	free := unused(t)
	copies := func(n int, of *os.File) (all []int) {
		for range n {
			all = append(all, int(of.Fd()))
		}
		return all
	}
	for name, c := range map[string]struct {
		send []int
		want session.Code
	}{
		"that are connected": {copies(3, file), session.CodeGuestInternal}, // the guest is asked to dial
		"that are none":      {copies(1, null), session.CodeSessionUnavailable},
		"that did not come":  {nil, session.CodeGuestInternal},
		"too many at once":   {copies(200, file), session.CodeGuestInternal},
	} {
		t.Run(name, func(t *testing.T) {
			closesAll(t)
			client := pretend(t, func(s *smuggler, stream net.Conn, req link.Request) {
				if req.Op != link.OpSockets {
					_ = link.ReplyError(stream, errors.New("it cannot"))
					return
				}
				s.load(c.send)
				_ = link.ReplyOK(stream, struct{}{})
			})
			if conn, err := client.Dial(t.Context(), free); session.CodeOf(err) != c.want {
				t.Errorf("the dial returned %v, %v", conn, err)
			}
		})
	}
}

func TestSocketsInMassesBreakTheLink(t *testing.T) {
	closesAll(t)
	client := pretend(t, func(s *smuggler, stream net.Conn, req link.Request) {
		err := link.ReplyOK(stream, struct{}{})
		for err == nil {
			socket, failed := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if failed != nil {
				return
			}
			s.load([]int{socket})
			err = link.WriteMessage(stream, link.Event{OOM: 1})
			_ = unix.Close(socket)
		}
	})
	err := client.Events(t.Context(), func(link.Event) error { return nil })
	if session.CodeOf(err) != session.CodeSessionUnavailable {
		t.Errorf("the events ended with %v", err)
	}
}
