package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/engine"
)

const (
	// clusterPort is where kernels take ssh unless told otherwise: below 1024 the guest would need one more capability.
	clusterPort = 2222
	redialPause = 100 * time.Millisecond
	// handshakeTimeout is how long a caller may take to prove who it is.
	handshakeTimeout = 20 * time.Second
	// maxClusterConns is how many connections a kernel takes at a time.
	maxClusterConns = 128
)

// clusterServer answers ssh from the kernels of the same session: whoever has the session's user key gets shells and
// commands of the work user here.
type clusterServer struct{ sshServer }

func newClusterServer(cluster engine.Cluster, processes Processes) (*clusterServer, error) {
	host, err := ssh.ParsePrivateKey([]byte(cluster.HostKey))
	if err != nil {
		return nil, fmt.Errorf("read host key: %w", err)
	}
	user, err := ssh.ParsePrivateKey([]byte(cluster.UserKey))
	if err != nil {
		return nil, fmt.Errorf("read user key: %w", err)
	}
	return &clusterServer{sshServer{processes: processes, config: serverConfig(host, user.PublicKey()),
		login: handshakeTimeout}}, nil
}

// serve answers on listener until ctx ends and then closes it.
func (s *clusterServer) serve(ctx context.Context, listener net.Listener) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	turns := make(chan struct{}, maxClusterConns)
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // as when there are too many open files
			select {
			case <-time.After(redialPause):
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case turns <- struct{}{}:
			conns.Go(func() {
				s.answer(ctx, conn)
				<-turns
			})
		default:
			_ = conn.Close()
		}
	}
}

// listenCluster listens on this kernel's own address in the private network, and nowhere else.
func listenCluster(ctx context.Context, cluster engine.Cluster) (net.Listener, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, cluster.Self)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(addresses, func(a string) bool {
		ip := net.ParseIP(a)
		return ip != nil && !ip.IsLoopback()
	})
	if at < 0 {
		return nil, fmt.Errorf("%s has no address in a network", cluster.Self)
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", net.JoinHostPort(addresses[at], strconv.Itoa(portOf(cluster))))
}

func portOf(c engine.Cluster) int { return cmp.Or(c.Port, clusterPort) }
