// Package server serves the control plane over HTTP and WebSocket on this computer's loopback interface: the API of
// package api, the user interface, and a host name for each app of a session.
//
// A request is refused unless it passes four checks. Its connection must come from a user of this computer who may use
// the server. It must name one of our hosts, which stops DNS rebinding. If it comes from a page, the page must be of
// our own origin. It must carry the token, or a cookie that a one-time code was exchanged for. The cookie of an app
// admits only to that app.
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
	"slipway/backend/updates"
)

// Config configures a server. Shelf, Assets, Shutdown and Log may be nil.
type Config struct {
	Hub         *hub.Hub
	Shelf       Shelf             // stores the ports that are open for apps
	Token       string            // the bearer token of the command line; cookies are derived from it
	Users       []int             // ids of the users of this computer who may connect; empty: all
	Assets      fs.FS             // the built user interface
	Shutdown    func()            // stops the server
	SSH         *sshclient.Client // the configuration of ssh for sessions; nil: unavailable
	LogFile     string            // where Log is written
	Log         *slog.Logger
	Clock       *pace.Clock      // nil: the wall clock
	Demo        Demo             // the demo that is served; nil: none
	DemoStarter DemoStarter      // starts a demo next to this server; nil: unavailable
	Updates     *updates.Checker // nil: unavailable
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
	// headerBytes exceeds the cookies that a browser keeps for one host: any page on 127.0.0.1 may set some, whatever
	// its port, and must not lock us out.
	headerBytes   = 1 << 20
	shutdownGrace = 3 * time.Second // how long requests may continue after a shutdown began
)

// New returns a server that is not running yet.
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
	s.doors = &doors{server: s, shelf: config.Shelf, open: map[appHost]*door{}, lost: map[appHost]keptDoor{},
		services: serviceDoors{hub: s.hub, log: s.log, shelf: config.Shelf, open: map[string]net.Listener{},
			ended: make(chan struct{})}}
	s.sockets.fail = s.fail
	for _, part := range s.routes(config) {
		part.mount(&mounts{server: s})
	}
	return s
}

func derive(secret, purpose string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// Run serves on listener until ctx ends, and closes it. Then it ends all streams and gives other requests shutdownGrace
// to finish.
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
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		cancel()
		s.doors.close()
		grace, done := context.WithTimeout(context.Background(), shutdownGrace)
		defer done()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped
	}
	cancel()
	s.doors.close()
	s.apps.close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
