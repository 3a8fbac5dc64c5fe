// Package server carries the control plane over HTTP and WebSocket on this
// computer's loopback: the API of package api for the user interface and the
// command line, the user interface itself, and one name per app through which
// a browser reaches what runs inside a session.
//
// Nobody gets in who was not let in. Every request must come from a user who may
// use this server, must name a host that is ours (a page that rebinds its own
// name does not), must come from our own origin if it comes from a page, and must
// show the token of the file or the cookie that a one-time code was exchanged for. The cookie of an app opens
// that app alone.
package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"slipway/backend/hub"
	"slipway/backend/pace"
	"slipway/backend/sshclient"
)

// Config is what a server is made of. Shelf, Assets, Shutdown and Log may be nil.
type Config struct {
	Hub         *hub.Hub
	Shelf       Shelf             // remembers the ports that lead to apps
	Token       string            // what the command line shows; cookies are derived from it
	Users       []int             // ids of the users of this computer who may connect; none: all may
	Assets      fs.FS             // the built user interface
	Shutdown    func()            // asks whoever runs the server to end it
	SSH         *sshclient.Client // what ssh needs to reach sessions; nil: it does not
	LogFile     string            // where Log is written, for whoever looks for a fault
	Log         *slog.Logger
	Clock       *pace.Clock // that people read times by; nil: the one on the wall
	Demo        Demo        // what is served where nothing is real; nil: it is
	DemoStarter DemoStarter // starts a demonstration beside this; nil: it cannot
}

// Server answers requests. It is an [http.Handler].
type Server struct {
	hub     *hub.Hub
	token   string
	key     []byte // signs cookies
	users   []int
	log     *slog.Logger
	clock   *pace.Clock
	logins  *codes
	tickets *codes
	passes  *codes
	ui      *site
	apps    *gateway
	doors   *doors
	mux     *http.ServeMux
	sockets sockets
}

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// headerBytes is more than the cookies that a browser keeps for one host: any
	// page on 127.0.0.1 may set some, whatever its port, and must not lock us out.
	headerBytes = 1 << 20
	// shutdownGrace is how long requests may go on after the end was asked for.
	shutdownGrace = 3 * time.Second
)

// New returns a server; it starts nothing.
func New(config Config) *Server {
	s := &Server{
		hub: config.Hub, token: config.Token, key: derive(config.Token, "cookies"), users: config.Users,
		log: config.Log, clock: config.Clock,
		logins: newCodes(), tickets: newCodes(), passes: newCodes(),
		ui: newSite(config.Assets), mux: http.NewServeMux(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.apps = newGateway(s)
	s.doors = &doors{server: s, shelf: config.Shelf, open: map[appHost]*door{}, lost: map[appHost]keptDoor{}}
	s.sockets.log = s.log
	for _, part := range s.routes(config) {
		part.mount(&mounts{server: s})
	}
	return s
}

// derive makes a key for one purpose from a secret.
func derive(secret, purpose string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// Run serves on listener, which it closes, until ctx ends; then it ends every
// stream, lets other requests finish for a moment, and returns.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		BaseContext: func(net.Listener) context.Context { return base }, ConnContext: s.withPeer,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.doors.restore(base)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-base.Done():
			return
		}
		cancel()
		s.doors.close()
		grace, done := context.WithTimeout(context.Background(), shutdownGrace)
		defer done()
		if server.Shutdown(grace) != nil {
			_ = server.Close() // what is still open has had its time
		}
	}()
	err := server.Serve(listener)
	cancel()
	<-stopped
	s.doors.close()
	s.apps.close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
