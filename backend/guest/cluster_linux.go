package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/engine"
	"slipway/backend/session"
)

const (
	redialPause = 100 * time.Millisecond
	// handshakeTimeout is how long a caller may take to authenticate.
	handshakeTimeout = 20 * time.Second
	maxClusterConns  = 128
	// sshLinkDir gets a link to the guest as ssh, if the image has no ssh.
	sshLinkDir = "/usr/local/bin"
	guestPath  = "/.slipway/guest"
)

// joinCluster serves ssh to the other kernels of the session until ctx ends, and configures ssh to them.
func (c *container) joinCluster(ctx context.Context, cluster engine.Cluster) error {
	err := c.serveCluster(ctx, cluster)
	if err == nil {
		err = errors.Join(c.writeSSH(cluster), c.linkSSH())
	}
	if err == nil {
		return nil
	}
	return session.WrapError(err, session.CodeNoSSH,
		fmt.Sprintf("The kernels of this session may not reach %s by ssh: %v.", cluster.Self, err),
		"Start the session again. If it happens again, check its log.")
}

// serveCluster serves ssh to the other kernels: whoever has the session's user key gets commands of the work user.
func (c *container) serveCluster(ctx context.Context, cluster engine.Cluster) error {
	host, err := ssh.ParsePrivateKey([]byte(cluster.HostKey))
	if err != nil {
		return fmt.Errorf("read host key: %w", err)
	}
	user, err := ssh.ParsePrivateKey([]byte(cluster.UserKey))
	if err != nil {
		return fmt.Errorf("read user key: %w", err)
	}
	listener, err := listenCluster(ctx, cluster)
	if err != nil {
		return err
	}
	server := &sshServer{processes: c, config: serverConfig(host, user.PublicKey()), login: handshakeTimeout,
		use: new(sshUse)}
	go server.serve(ctx, listener)
	return nil
}

// listenCluster listens on this kernel's own address in the private network only.
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

// serve answers on listener until ctx ends and then closes it.
func (s *sshServer) serve(ctx context.Context, listener net.Listener) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	turns := make(chan struct{}, maxClusterConns)
	var conns sync.WaitGroup
	defer conns.Wait()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example too many open files
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

// writeSSH writes ~/.ssh as the work user.
func (c *container) writeSSH(cluster engine.Cluster) error {
	settings, err := json.Marshal(cluster)
	if err != nil {
		return err
	}
	process, err := c.Start(Command{Argv: []string{selfPath, "ssh-setup"}, Stdin: true})
	if err != nil {
		return err
	}
	in := process.Stdin()
	_, err = in.Write(settings)
	if err := errors.Join(err, in.Close()); err != nil {
		process.Kill()
		return err
	}
	go func() { _, _ = io.Copy(io.Discard, process.Stdout()) }()
	said, _ := io.ReadAll(io.LimitReader(process.Stderr(), 4<<10)) // the exit code counts
	if code := process.Wait(); code != 0 {
		return fmt.Errorf("write ~/.ssh: %s", bytes.TrimSpace(said))
	}
	return nil
}

// linkSSH links the guest as ssh if the image has no ssh.
func (c *container) linkSSH() error {
	if lookPath("ssh", c.env.get("PATH")) != "" {
		return nil
	}
	dir, err := c.held.tree.image(sshLinkDir, true)
	if err != nil {
		return err
	}
	defer dir.close()
	if err := dir.link("ssh", guestPath); !errors.Is(err, fs.ErrExist) { // one that exists is not a program
		return err
	}
	return nil
}
