package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// reachTimeout is how long a connection into the container's network may take.
	reachTimeout = 20 * time.Second
	// maxListeners is how many ports one caller may have forwarded to it.
	maxListeners = 32
	// lowestPort is the first that does not need a privilege.
	lowestPort = 1024
)

// Network is a container in whose network ports can be reached and listened on. Not every [Processes] has one; its own
// loopback is reached either way.
type Network interface {
	// DialHost connects to a host as programs in the container would.
	DialHost(ctx context.Context, host string, port int) (net.Conn, error)
	// ListenPort listens on the container's loopback; port 0 is any.
	ListenPort(ctx context.Context, port int) (net.Listener, error)
}

// direct connects a caller to a port that the container reaches. See RFC 4254, section 7.2.
func (s *sshServer) direct(ctx context.Context, fresh ssh.NewChannel) {
	var v struct {
		Host       string
		Port       uint32
		Origin     string
		OriginPort uint32
	}
	if ssh.Unmarshal(fresh.ExtraData(), &v) != nil || v.Port < 1 || v.Port > 65535 {
		_ = fresh.Reject(ssh.ConnectionFailed, "no such port")
		return
	}
	limited, cancel := context.WithTimeout(ctx, reachTimeout)
	conn, err := s.reach(limited, v.Host, int(v.Port))
	cancel()
	if err != nil {
		_ = fresh.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := fresh.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	join(s.use.watch(channel), conn)
}

func (s *sshServer) reach(ctx context.Context, host string, port int) (net.Conn, error) {
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		return s.processes.DialPort(ctx, port)
	}
	network, ok := s.processes.(Network)
	if !ok {
		return nil, errors.New("this session has no network; only its own ports can be reached")
	}
	return network.DialHost(ctx, host, port)
}

// halfCloser is a connection of which one direction can be ended.
type halfCloser interface{ CloseWrite() error }

// join carries bytes both ways until both directions have ended, and closes both.
func join(channel ssh.Channel, conn net.Conn) {
	var ways sync.WaitGroup
	ways.Go(func() {
		_, err := io.Copy(conn, channel)
		if half, ok := conn.(halfCloser); ok && err == nil {
			_ = half.CloseWrite()
			return
		}
		_ = conn.Close()
	})
	ways.Go(func() {
		_, err := io.Copy(channel, conn)
		if err == nil {
			_ = channel.CloseWrite()
			return
		}
		_ = channel.Close()
	})
	ways.Wait()
	_ = channel.Close()
	_ = conn.Close()
}

// portForwards holds the ports of the container's loopback that a caller has forwarded to itself. See RFC 4254, section
// 7.1.
type portForwards struct {
	ctx    context.Context //nolint:containedctx // the life of the one connection
	server *sshServer
	caller ssh.Conn

	mu     sync.Mutex // guards what follows
	closed bool
	ports  map[string]net.Listener
	group  sync.WaitGroup
}

// forwardRequest is what a caller asks to be forwarded.
type forwardRequest struct {
	Host string
	Port uint32
}

// obey answers global requests until the connection ends. Those that ask for a sign of life are answered as OpenSSH
// does: with a refusal, which is one.
func (f *portForwards) obey(requests <-chan *ssh.Request) {
	for request := range requests {
		var v forwardRequest
		switch {
		case request.Type == "tcpip-forward" && f.server.forwards && ssh.Unmarshal(request.Payload, &v) == nil:
			port, err := f.listen(v)
			var answer []byte
			if err == nil && v.Port == 0 {
				answer = ssh.Marshal(struct{ Port uint32 }{uint32(port)})
			}
			f.reply(request, err == nil, answer)
		case request.Type == "cancel-tcpip-forward" && ssh.Unmarshal(request.Payload, &v) == nil:
			f.reply(request, f.cancel(v), nil)
		default:
			f.reply(request, false, nil)
		}
	}
}

func (f *portForwards) reply(request *ssh.Request, ok bool, answer []byte) {
	if request.WantReply {
		_ = request.Reply(ok, answer)
	}
}

// listen takes a port of the container's loopback, whatever address was asked for: nothing of the person's own computer
// is opened to a network.
func (f *portForwards) listen(v forwardRequest) (port int, err error) {
	network, ok := f.server.processes.(Network)
	if !ok || v.Port > 65535 || v.Port != 0 && v.Port < lowestPort {
		return 0, errors.New("this port cannot be listened on")
	}
	listener, err := network.ListenPort(f.ctx, int(v.Port))
	if err != nil {
		return 0, err
	}
	_, text, _ := strings.Cut(listener.Addr().String(), ":")
	if port, err = strconv.Atoi(text); err != nil {
		_ = listener.Close()
		return 0, err
	}
	v.Port = uint32(port)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.ports) >= maxListeners || f.ports[v.key()] != nil {
		_ = listener.Close()
		return 0, errors.New("too many ports are forwarded")
	}
	if f.ports == nil {
		f.ports = map[string]net.Listener{}
	}
	f.ports[v.key()] = listener
	f.group.Go(func() { f.accept(listener, v) })
	return port, nil
}

func (v forwardRequest) key() string { return net.JoinHostPort(v.Host, strconv.Itoa(int(v.Port))) }

func (f *portForwards) cancel(v forwardRequest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	listener := f.ports[v.key()]
	if listener == nil {
		return false
	}
	delete(f.ports, v.key())
	_ = listener.Close()
	return true
}

// accept hands what connects to a port on to the caller.
func (f *portForwards) accept(listener net.Listener, v forwardRequest) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f.group.Go(func() {
			stop := context.AfterFunc(f.ctx, func() { _ = conn.Close() })
			defer stop()
			origin, port := "127.0.0.1", uint32(0)
			if from, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
				port = uint32(from.Port)
			}
			channel, requests, err := f.caller.OpenChannel("forwarded-tcpip", ssh.Marshal(struct {
				Host       string
				Port       uint32
				Origin     string
				OriginPort uint32
			}{v.Host, v.Port, origin, port}))
			if err != nil {
				_ = conn.Close()
				return
			}
			go ssh.DiscardRequests(requests)
			join(f.server.use.watch(channel), conn)
		})
	}
}

// close gives every port back and waits for what goes through them.
func (f *portForwards) close() {
	f.mu.Lock()
	f.closed = true
	for _, listener := range f.ports {
		_ = listener.Close()
	}
	f.mu.Unlock()
	f.group.Wait()
}
