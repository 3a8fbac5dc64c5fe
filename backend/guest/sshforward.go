package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	reachTimeout = 20 * time.Second // of a connection into the container's network
	maxListeners = 32               // of one caller
	lowestPort   = 1024             // that needs no privilege
)

// Network is implemented by [Processes] with a network besides the loopback.
type Network interface {
	// DialHost connects to a host as programs in the container would.
	DialHost(ctx context.Context, host string, port int) (net.Conn, error)
	// ListenPort listens on the container's loopback; 0 means any port.
	ListenPort(ctx context.Context, port int) (net.Listener, error)
}

// direct connects a caller to a port that the container can reach. See RFC 4254, section 7.2.
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
	join(usedChannel{channel, s.use, false}, conn)
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

// join copies between channel and conn until both directions have ended, and closes both.
func join(channel ssh.Channel, conn net.Conn) {
	var ways sync.WaitGroup
	ways.Go(func() {
		_, err := io.Copy(conn, channel)
		if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
		} else {
			_ = conn.Close()
		}
	})
	ways.Go(func() {
		if _, err := io.Copy(channel, conn); err == nil {
			_ = channel.CloseWrite()
		} else {
			_ = channel.Close()
		}
	})
	ways.Wait()
	_ = channel.Close()
	_ = conn.Close()
}

// portForwards has the ports of the container's loopback that are forwarded to a caller. See RFC 4254, section 7.1.
type portForwards struct {
	ctx    context.Context //nolint:containedctx // of the connection
	server *sshServer
	caller ssh.Conn

	mu     sync.Mutex // guards the fields below
	closed bool
	ports  map[forwardRequest]net.Listener
	group  sync.WaitGroup
}

type forwardRequest struct {
	Host string
	Port uint32
}

// serve answers global requests until the connection ends. A keep-alive is refused, as OpenSSH does.
func (f *portForwards) serve(requests <-chan *ssh.Request) {
	for request := range requests {
		var v forwardRequest
		var ok bool
		var answer []byte
		switch {
		case request.Type == "tcpip-forward" && f.server.forwards && ssh.Unmarshal(request.Payload, &v) == nil:
			port, err := f.listen(v)
			if ok = err == nil; ok && v.Port == 0 {
				answer = ssh.Marshal(struct{ Port uint32 }{port})
			}
		case request.Type == "cancel-tcpip-forward" && ssh.Unmarshal(request.Payload, &v) == nil:
			ok = f.cancel(v)
		}
		if request.WantReply {
			_ = request.Reply(ok, answer)
		}
	}
}

// listen listens on the loopback only, whatever the requested address, so that no port is exposed to a network.
func (f *portForwards) listen(v forwardRequest) (port uint32, err error) {
	network, ok := f.server.processes.(Network)
	if !ok || v.Port > 65535 || v.Port != 0 && v.Port < lowestPort {
		return 0, errors.New("this port cannot be listened on")
	}
	listener, err := network.ListenPort(f.ctx, int(v.Port))
	if err != nil {
		return 0, err
	}
	if at, ok := listener.Addr().(*net.TCPAddr); ok {
		v.Port = uint32(at.Port)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.ports) >= maxListeners || f.ports[v] != nil {
		_ = listener.Close()
		return 0, errors.New("too many ports are forwarded")
	}
	f.ports[v] = listener
	f.group.Go(func() { f.accept(listener, v) })
	return v.Port, nil
}

func (f *portForwards) cancel(v forwardRequest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	listener := f.ports[v]
	if listener == nil {
		return false
	}
	delete(f.ports, v)
	_ = listener.Close()
	return true
}

func (f *portForwards) accept(listener net.Listener, v forwardRequest) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f.group.Go(func() {
			defer context.AfterFunc(f.ctx, func() { _ = conn.Close() })()
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
			join(usedChannel{channel, f.server.use, false}, conn)
		})
	}
}

// close closes every port and waits for the connections to them.
func (f *portForwards) close() {
	f.mu.Lock()
	f.closed = true
	for _, listener := range f.ports {
		_ = listener.Close()
	}
	f.mu.Unlock()
	f.group.Wait()
}
