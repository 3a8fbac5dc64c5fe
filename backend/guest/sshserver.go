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
	// loginTimeout is how long a caller may take to prove who it is.
	loginTimeout = 2 * time.Minute
	// maxSSH is how many connections to the person's ssh server there may be.
	maxSSH = 64
	// maxChannels is how many channels one connection may have open.
	maxChannels = 512
)

// sshServer answers ssh: shells, commands and files of the work user, and ports of the container where it forwards.
type sshServer struct {
	processes Processes
	config    *ssh.ServerConfig
	login     time.Duration          // for the proof of who calls
	variables func(name string) bool // which of the caller's are taken over; nil: all
	forwards  bool                   // ports of the container are reached through it
	use       *sshUse                // nil: nobody asks for it
}

// serverConfig lets in whoever is the work user and has the private key to allowed.
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

// answer serves one connection, which it closes, until ctx ends or the caller leaves.
func (s *sshServer) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(s.login))
	caller, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return // the caller knows
	}
	_ = conn.SetDeadline(time.Time{})
	forwards := &portForwards{ctx: ctx, server: s, caller: caller}
	go forwards.obey(requests)
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

// channel serves one channel to its end.
func (s *sshServer) channel(ctx context.Context, fresh ssh.NewChannel) {
	switch kind := fresh.ChannelType(); {
	case kind == "session":
		channel, requests, err := fresh.Accept()
		if err != nil {
			return
		}
		(&sshSession{server: s, channel: s.use.watch(channel)}).run(requests)
	case kind == "direct-tcpip" && s.forwards:
		s.direct(ctx, fresh)
	case strings.HasPrefix(kind, "direct-streamlocal"):
		_ = fresh.Reject(ssh.Prohibited, "Unix sockets are not forwarded; use a port")
	default:
		_ = fresh.Reject(ssh.UnknownChannelType, "not supported")
	}
}

// sshHost is the key by which a guest proves who it is. It is never written anywhere: it ends with the container.
type sshHost struct {
	once   sync.Once
	signer ssh.Signer
	err    error
	turns  chan struct{}
}

func (h *sshHost) key() (ssh.Signer, error) {
	h.once.Do(func() {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			h.signer, err = ssh.NewSignerFromKey(private)
		}
		h.err, h.turns = err, make(chan struct{}, maxSSH)
	})
	return h.signer, h.err
}

// sshHostKey tells by which key the person's ssh server is known.
func (g *Guest) sshHostKey() (session.SSHHost, error) {
	signer, err := g.host.key()
	if err != nil {
		return session.SSHHost{}, fmt.Errorf("make a host key: %w", err)
	}
	return session.SSHHost{Key: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))}, nil
}

// serveSSH answers one caller of the person's ssh server.
func (g *Guest) serveSSH(ctx context.Context, stream net.Conn, req session.SSHRequest) error {
	allowed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(req.Key))
	if err != nil {
		return session.WrapError(err, session.CodeSSHInvalid, "Invalid SSH public key.",
			"Use a line as in authorized_keys.")
	}
	host, err := g.host.key()
	if err != nil {
		return fmt.Errorf("make a host key: %w", err)
	}
	select {
	case g.host.turns <- struct{}{}:
		defer func() { <-g.host.turns }()
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

// harmless reports whether a caller's variable is about how things look to the person, and so taken over.
func harmless(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "COLORTERM", "NO_COLOR", "TERM_PROGRAM", "TERM_PROGRAM_VERSION":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}
