// Package agentserver serves the agent of this machine to other programs: to those of its user through sockets, to
// paired clients through the network, and to commands on the machine through the control socket. It identifies them and
// logs what they do.
package agentserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/access"
	"slipway/backend/agentrpc"
	"slipway/backend/daemon"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/tunnel"
)

// Inner is what the server needs from the agent beyond what it serves.
type Inner interface {
	access.Inner
	// Allowances returns the limits of each owner.
	Allowances() map[string]session.Allowance
	// SetAllowance sets the limits of an owner; nil: the default ones.
	SetAllowance(owner string, allowance *session.Allowance) error
}

// Config says what to serve.
type Config struct {
	Home     place.Home
	Agent    session.Agent
	Inner    Inner
	Engine   string // docker or sim
	Instance string // random id of the agent's store
	User     string // name of the user of this process
	UserIDs  []int  // may connect to the sockets
	Role     string // [daemon.RoleAgent] or [daemon.RolePlane]
	Listen   string // host:port for paired clients; empty: none
	Stop     func() // ends the process; nil: it cannot be stopped this way
	Log      *slog.Logger
}

// Server serves an agent.
type Server struct {
	config  Config
	sockets *daemon.Sockets
	clients *pairedClients // nil: not listening
	audit   *access.Audit
	gate    *access.Gate
	host    *tunnel.Host
	handler *agentrpc.Handler
	started time.Time
	program string
	sum     func() (string, error)
	ending  atomic.Bool
}

// Open opens the sockets and the port.
func Open(config Config) (*Server, error) {
	s := &Server{config: config, started: time.Now(), sum: sync.OnceValues(daemon.ProgramSum),
		host: tunnel.NewHost(tunnel.Config{})}
	s.program, _ = os.Executable() // only displayed
	s.handler = agentrpc.NewHandler(agentrpc.HandlerConfig{Resolve: s.resolve, Program: place.Version, Log: config.Log})
	if err := config.Home.Make(); err != nil {
		return nil, err
	}
	var err error
	if s.audit, err = access.OpenAudit(config.Home.Join("audit.jsonl"), time.Now, config.Log); err != nil {
		return nil, err
	}
	config.Agent.Admin = admin{s}
	s.gate = access.New(config.Agent, config.Inner, s.audit)
	if config.Listen != "" {
		if s.clients, err = openPairedClients(config.Home, config.Listen, s.audit); err != nil {
			return nil, errors.Join(err, s.audit.Close())
		}
	}
	if s.sockets, err = daemon.Listen(config.Home, config.UserIDs, config.Log); err != nil {
		return nil, errors.Join(err, s.clients.close(), s.audit.Close())
	}
	return s, nil
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	var controlErr error
	part := func(do func()) {
		group.Go(func() {
			defer cancel()
			do()
		})
	}
	control := daemon.Daemon{Process: s, Admin: s.gate.As(s.person()).Admin, Pairing: s}
	part(func() { controlErr = daemon.Serve(ctx, s.sockets.Control, control, s.config.Log) })
	part(func() { s.admit(ctx, &group, s.acceptLocal) })
	if s.clients != nil {
		part(func() { s.admit(ctx, &group, s.clients.listener.Accept) })
	}
	part(func() {
		if err := s.handler.ServeHost(ctx, s.host); err != nil && ctx.Err() == nil {
			s.config.Log.Error("tunnels are no longer served", "error", err)
		}
	})
	<-ctx.Done()
	err := errors.Join(s.sockets.Close(), s.clients.close(), s.host.Close())
	group.Wait()
	return errors.Join(controlErr, err, s.audit.Close())
}

// admit serves carriers until accept fails. Handshakes run concurrently.
func (s *Server) admit(ctx context.Context, group *sync.WaitGroup, accept func() (tunnel.Carrier, error)) {
	for {
		carrier, err := accept()
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				s.config.Log.Error("carriers are no longer accepted", "error", err)
			}
			return
		}
		group.Go(func() {
			if err := s.host.Serve(carrier); err != nil && ctx.Err() == nil {
				s.config.Log.Info("a carrier was not accepted", "transport", carrier.Peer.Transport,
					"peer", carrier.Peer.Name, "address", carrier.Peer.Address, "error", err)
			}
		})
	}
}

// acceptLocal accepts a carrier from the user's own programs, which are all that the socket admits.
func (s *Server) acceptLocal() (tunnel.Carrier, error) {
	conn, err := s.sockets.Tunnel.Accept()
	if err != nil {
		return tunnel.Carrier{}, err
	}
	return tunnel.Carrier{Conn: conn, Peer: tunnel.Peer{Transport: "unix", Name: s.config.User}}, nil
}
