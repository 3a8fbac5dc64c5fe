package guest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

const (
	// loginTimeout is how long a caller may take to authenticate.
	loginTimeout = 2 * time.Minute
	// maxSSH is the maximum number of connections to the person's ssh server.
	maxSSH = 64
	// maxChannels is the maximum number of channels of one connection.
	maxChannels = 512
)

// sshServer serves ssh: shells, commands and files of the work user, and ports of the container if it forwards.
type sshServer struct {
	processes Processes
	config    *ssh.ServerConfig
	login     time.Duration          // time limit of the authentication
	variables func(name string) bool // which environment variables a caller may set; nil: all
	forwards  bool                   // ports of the container
	use       *sshUse
}

// serverConfig admits the work user with the private key of allowed.
func serverConfig(host ssh.Signer, allowed ssh.PublicKey) *ssh.ServerConfig {
	wanted := allowed.Marshal()
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-Slipway",
		PublicKeyCallback: func(caller ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if caller.User() != User || !bytes.Equal(key.Marshal(), wanted) {
				return nil, errors.New("not of this session")
			}
			return nil, nil
		},
	}
	config.AddHostKey(host)
	return config
}

// answer serves one connection until ctx ends or the caller disconnects, and closes it.
func (s *sshServer) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(s.login))
	caller, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // the caller received the reason
	}
	_ = conn.SetDeadline(time.Time{})
	forwards := &portForwards{ctx: ctx, server: s, caller: caller, ports: map[forwardRequest]net.Listener{}}
	go forwards.serve(requests)
	turns := make(chan struct{}, maxChannels)
	var open sync.WaitGroup
	for fresh := range channels {
		select {
		case turns <- struct{}{}:
			open.Go(func() {
				defer func() { <-turns }()
				s.channel(ctx, fresh)
			})
		default:
			_ = fresh.Reject(ssh.ResourceShortage, "too many channels are open")
		}
	}
	_ = caller.Close()
	cancel()
	open.Wait()
	forwards.close()
}

func (s *sshServer) channel(ctx context.Context, fresh ssh.NewChannel) {
	switch kind := fresh.ChannelType(); {
	case kind == "session":
		channel, requests, err := fresh.Accept()
		if err != nil {
			return
		}
		(&sshSession{server: s, channel: usedChannel{channel, s.use, false}}).run(requests)
	case kind == "direct-tcpip" && s.forwards:
		s.direct(ctx, fresh)
	case strings.HasPrefix(kind, "direct-streamlocal"):
		_ = fresh.Reject(ssh.Prohibited, "Unix sockets are not forwarded; use a port")
	default:
		_ = fresh.Reject(ssh.UnknownChannelType, "not supported")
	}
}

// newHostKey creates the host key of the person's ssh server. It stays in memory and lives as long as the container.
func newHostKey() (ssh.Signer, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	return ssh.NewSignerFromKey(private)
}

func (g *Guest) sshHostKey() (session.SSHHost, error) {
	host, err := g.hostKey()
	if err != nil {
		return session.SSHHost{}, err
	}
	return session.SSHHost{Key: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(host.PublicKey())))}, nil
}

func (g *Guest) serveSSH(ctx context.Context, stream net.Conn, req session.SSHRequest) error {
	allowed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(req.Key))
	if err != nil {
		return session.WrapError(err, session.CodeSSHInvalid, "Invalid SSH public key.",
			"Use a line as in authorized_keys.")
	}
	host, err := g.hostKey()
	if err != nil {
		return err
	}
	select {
	case g.sshTurns <- struct{}{}:
		defer func() { <-g.sshTurns }()
	default:
		return session.NewError(session.CodeUseTooMany,
			fmt.Sprintf("The session already has %d SSH connections, the maximum.", maxSSH), "Close some of them.")
	}
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		return nil
	}
	server := &sshServer{
		processes: g.cfg.Processes, config: serverConfig(host, allowed), login: loginTimeout,
		variables: harmless, forwards: true, use: &g.use,
	}
	// The deadline of the request was for the opening.
	server.answer(context.WithoutCancel(ctx), stream)
	return nil
}

// harmless reports whether a caller may set a variable, because it only changes how output looks.
func harmless(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "COLORTERM", "NO_COLOR", "TERM_PROGRAM", "TERM_PROGRAM_VERSION":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// sshUse records the use of an ssh server. Keep-alives do not count, which cannot be recognized outside the encryption.
type sshUse struct {
	mu    sync.Mutex // guards the fields below
	last  time.Time  // of any data
	input time.Time  // of input to a terminal

	works registry[*sshWork]
}

// sshWork returns what a program of a caller does now; empty: nothing.
type sshWork struct{ program func() string }

func (u *sshUse) seen(input bool) {
	now := time.Now().UTC()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = now
	if input {
		u.input = now
	}
}

// add records a program until the returned function is called.
func (u *sshUse) add(program func() string) (left func()) {
	w := &sshWork{program}
	u.works.add(w)
	return func() { u.works.remove(w) }
}

func (u *sshUse) describe() session.SSHUse {
	u.mu.Lock()
	use := session.SSHUse{Last: u.last, Input: u.input}
	u.mu.Unlock()
	for _, w := range u.works.all() {
		if program := w.program(); program != "" {
			use.Program = program
		}
	}
	return use
}

type usedChannel struct {
	ssh.Channel
	use   *sshUse
	typed bool // what is read is typed into a terminal
}

func (c usedChannel) Read(p []byte) (int, error) {
	n, err := c.Channel.Read(p)
	if n > 0 {
		c.use.seen(c.typed)
	}
	return n, err
}

func (c usedChannel) Write(p []byte) (int, error) {
	n, err := c.Channel.Write(p)
	if n > 0 {
		c.use.seen(false)
	}
	return n, err
}

// shorten returns at most 60 characters of a command.
func shorten(words []string) string {
	const longest = 60
	text := []rune(strings.ToValidUTF8(strings.Join(words, " "), "?"))
	if len(text) > longest {
		text = append(text[:longest-1], '…')
	}
	return string(text)
}
