package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

const (
	// clusterPort is where kernels take ssh unless told otherwise: below 1024
	// the guest would need one more capability.
	clusterPort = 2222
	redialPause = 100 * time.Millisecond
	// handshakeTimeout is how long a caller may take to prove who it is.
	handshakeTimeout = 20 * time.Second
	// maxClusterConns is how many connections a kernel takes at a time.
	maxClusterConns = 128
	// hangupPause is how long output may still come after a program on a
	// terminal has ended, from what it left behind there.
	hangupPause = 500 * time.Millisecond
)

// clusterServer answers ssh from the kernels of the same session: whoever has
// the session's user key gets shells and commands of the work user here.
type clusterServer struct {
	processes Processes
	shell     shell
	config    *ssh.ServerConfig
}

func newClusterServer(cluster Cluster, processes Processes, shell shell) (*clusterServer, error) {
	host, err := ssh.ParsePrivateKey([]byte(cluster.HostKey))
	if err != nil {
		return nil, fmt.Errorf("read host key: %w", err)
	}
	user, err := ssh.ParsePrivateKey([]byte(cluster.UserKey))
	if err != nil {
		return nil, fmt.Errorf("read user key: %w", err)
	}
	allowed := user.PublicKey().Marshal()
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-Slipway",
		PublicKeyCallback: func(caller ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if caller.User() != User || !bytes.Equal(key.Marshal(), allowed) {
				return nil, errors.New("not of this session")
			}
			return nil, nil
		},
	}
	config.AddHostKey(host)
	return &clusterServer{processes: processes, shell: shell, config: config}, nil
}

// serve answers on listener until ctx ends and then closes it.
func (s *clusterServer) serve(ctx context.Context, listener net.Listener) {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
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

// answer serves one connection, which it closes.
func (s *clusterServer) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	caller, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // the caller knows
	}
	_ = conn.SetDeadline(time.Time{})
	go ssh.DiscardRequests(requests)
	var sessions sync.WaitGroup
	for fresh := range channels {
		if fresh.ChannelType() != "session" {
			_ = fresh.Reject(ssh.UnknownChannelType, "only sessions are served")
			continue
		}
		channel, requests, err := fresh.Accept()
		if err != nil {
			break
		}
		sessions.Go(func() { (&clusterSession{server: s, channel: channel}).run(requests) })
	}
	_ = caller.Close()
	sessions.Wait()
}

// clusterSession is one shell or command of a caller.
type clusterSession struct {
	server  *clusterServer
	channel ssh.Channel
	env     []session.EnvVar
	tty     *ttyRequest

	program running       // nil until it was started; only run's goroutine sets it
	done    chan struct{} // closed when the program's end was told
}

// running is a started program as far as requests concern it.
type running interface {
	signal(number int)
	resize(cols, rows int)
	kill()
}

type ttyRequest struct{ cols, rows int }

// run obeys requests until the caller has left and the program has ended.
func (c *clusterSession) run(requests <-chan *ssh.Request) {
	for request := range requests {
		ok := c.obey(request)
		if request.WantReply {
			_ = request.Reply(ok, nil)
		}
	}
	if c.program != nil {
		c.program.kill()
		<-c.done
	}
	_ = c.channel.Close()
}

// obey does what a request asks. See RFC 4254, section 6.
func (c *clusterSession) obey(request *ssh.Request) bool {
	switch request.Type {
	case "env":
		var v struct{ Name, Value string }
		if ssh.Unmarshal(request.Payload, &v) != nil || len(c.env) > 256 {
			return false
		}
		c.env = append(c.env, session.EnvVar{Name: v.Name, Value: v.Value})
		return true
	case "pty-req":
		var v struct {
			Term                      string
			Cols, Rows, Width, Height uint32
			Modes                     string
		}
		if ssh.Unmarshal(request.Payload, &v) != nil {
			return false
		}
		c.tty = &ttyRequest{cols: side(v.Cols, defaultCols), rows: side(v.Rows, defaultRows)}
		return true
	case "window-change":
		if len(request.Payload) < 8 || c.program == nil {
			return false
		}
		cols, rows := binary.BigEndian.Uint32(request.Payload), binary.BigEndian.Uint32(request.Payload[4:])
		c.program.resize(side(cols, defaultCols), side(rows, defaultRows))
		return true
	case "signal":
		var v struct{ Name string }
		number := 0
		if ssh.Unmarshal(request.Payload, &v) == nil {
			number = signals[v.Name]
		}
		if number == 0 || c.program == nil {
			return false
		}
		c.program.signal(number)
		return true
	case "shell", "exec", "subsystem":
		return c.begin(request)
	}
	return false
}

// signals are the signals of RFC 4254 by their numbers on Linux.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}

// side is one side of a terminal that a caller may name without sense.
func side(asked uint32, fallback int) int {
	if asked == 0 || asked > maxSide {
		return fallback
	}
	return int(asked)
}

// sftpServers are where images have the program that serves files over ssh.
var sftpServers = []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/lib/ssh/sftp-server"}

// begin starts the program that a request names, once.
func (c *clusterSession) begin(request *ssh.Request) bool {
	if c.program != nil {
		return false
	}
	var v struct{ Text string }
	if request.Type != "shell" && ssh.Unmarshal(request.Payload, &v) != nil {
		return false
	}
	var argv []string
	switch {
	case request.Type == "subsystem":
		if v.Text != "sftp" {
			return false
		}
		for _, path := range c.server.processes.Which(sftpServers) {
			argv = []string{path}
		}
	case c.server.shell.path == "":
	case request.Type == "shell":
		argv = c.server.shell.interactive()
	default:
		argv = c.server.shell.run(v.Text)
	}
	if len(argv) == 0 {
		return false
	}
	c.done = make(chan struct{})
	var err error
	if c.tty != nil {
		err = c.beginTTY(argv)
	} else {
		err = c.beginPipes(argv)
	}
	if err != nil {
		c.refuse(err)
	}
	return true
}

// refuse ends a session whose program could not be started as a shell would.
func (c *clusterSession) refuse(err error) {
	_, _ = fmt.Fprintln(c.channel.Stderr(), "slipway:", err)
	c.tell(codeUnstarted)
	_ = c.channel.Close()
}

// codeUnstarted is a shell's exit code for a program that cannot be executed.
const codeUnstarted = 126

// tell sends the exit code. It fails only when the caller has left.
func (c *clusterSession) tell(code int) {
	_, _ = c.channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)))
}

// beginPipes starts a program without a terminal.
func (c *clusterSession) beginPipes(argv []string) error {
	process, err := c.server.processes.Start(Command{Argv: argv, Env: c.env, Stdin: true})
	if err != nil {
		return err
	}
	c.program = piped{process}
	go func() { // ends with the caller's input or with the channel
		in := process.Stdin()
		_, _ = io.Copy(in, c.channel)
		_ = in.Close()
	}()
	go func() {
		defer close(c.done)
		var outputs sync.WaitGroup
		outputs.Go(func() { _, _ = io.Copy(c.channel, process.Stdout()) })
		outputs.Go(func() { _, _ = io.Copy(c.channel.Stderr(), process.Stderr()) })
		outputs.Wait()
		c.end(process.Wait())
	}()
	return nil
}

// beginTTY starts a program on a terminal. Variables that the caller sends come
// with env(1) of the shell's own: the terminal has its own set.
func (c *clusterSession) beginTTY(argv []string) error {
	tty, err := c.server.processes.OpenTerminal(session.TerminalRequest{Command: argv, Cols: c.tty.cols, Rows: c.tty.rows})
	if err != nil {
		return err
	}
	c.program = onTTY{tty}
	go func() { _, _ = io.Copy(tty, c.channel) }() // ends with the channel
	go func() {
		defer close(c.done)
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(c.channel, tty)
		}()
		code := tty.Wait()
		select {
		case <-drained:
		case <-time.After(hangupPause):
		}
		_ = tty.Close()
		<-drained
		c.end(code)
	}()
	return nil
}

// end tells the caller of the program's end.
func (c *clusterSession) end(code int) {
	_ = c.channel.CloseWrite()
	c.tell(code)
	_ = c.channel.Close()
}

type piped struct{ terminal.Process }

func (p piped) signal(number int) { _ = p.Signal(number) } // it may have ended
func (p piped) resize(int, int)   {}
func (p piped) kill()             { p.Kill() }

type onTTY struct{ terminal.TTY }

func (p onTTY) signal(int)            {} // what is typed is a terminal's signals
func (p onTTY) resize(cols, rows int) { _ = p.Resize(cols, rows) }
func (p onTTY) kill()                 { _ = p.Close() }

// listenCluster listens on this kernel's own address in the private network, and
// nowhere else.
func listenCluster(ctx context.Context, cluster Cluster) (net.Listener, error) {
	addresses, err := net.DefaultResolver.LookupHost(ctx, cluster.Self)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(addresses, func(a string) bool { ip := net.ParseIP(a); return ip != nil && !ip.IsLoopback() })
	if at < 0 {
		return nil, fmt.Errorf("%s has no address in a network", cluster.Self)
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", net.JoinHostPort(addresses[at], strconv.Itoa(cluster.port())))
}

func (c Cluster) port() int {
	if c.Port == 0 {
		return clusterPort
	}
	return c.Port
}
