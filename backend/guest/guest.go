package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/tunnel"
)

// requestTimeout is how long a stream may take to say what it wants.
const requestTimeout = 30 * time.Second

// Config describes a guest.
type Config struct {
	Processes Processes
	SpoolDir  string    // folder for the terminals' spools; empty: memory alone
	SpoolCap  int       // bytes kept for each terminal; 0: terminal.DefaultCap
	Log       io.Writer // gets what services print; nil: only the last lines are kept
}

// Guest holds the terminals and services of one container and answers the agent over any number of links, one after
// another or at once. All methods are safe for concurrent use.
type Guest struct {
	cfg     Config
	watched chan struct{} // closed when an agent first knows that all is ready
	watch   func()
	ready   chan struct{} // closed by Ready
	setup   func()

	events    events
	terminals terminals
	services  services
	host      sshHost
	use       sshUse
}

// New returns a guest that answers calls which start programs once [Guest.Ready] was called.
func New(cfg Config) *Guest {
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	g := &Guest{cfg: cfg, watched: make(chan struct{}), ready: make(chan struct{})}
	g.watch = sync.OnceFunc(func() { close(g.watched) })
	g.setup = sync.OnceFunc(func() { close(g.ready) })
	return g
}

// Watched is closed when an agent has been told for the first time, by an events stream, that the container is ready.
func (g *Guest) Watched() <-chan struct{} { return g.watched }

// Ready says that the container is set up.
func (g *Guest) Ready() {
	g.setup()
	g.events.change(func(s *eventState) { s.ready = true })
}

// Exit says that the batch command has ended with code.
func (g *Guest) Exit(code int) {
	g.events.change(func(s *eventState) { s.exit = &code })
}

// OOM says how many processes the kernel has killed for memory so far.
func (g *Guest) OOM(count int) {
	g.events.change(func(s *eventState) { s.oom = count })
}

// Trouble reports a failure that stands. Only the first is kept.
func (g *Guest) Trouble(err error) {
	cause := link.CauseOf(err)
	g.events.change(func(s *eventState) {
		if s.trouble == nil {
			s.trouble = cause
		}
	})
}

// Flush waits until every events stream has sent what is true now.
func (g *Guest) Flush(ctx context.Context) error { return g.events.flush(ctx) }

// Close ends all terminals and services and waits for them until ctx ends.
func (g *Guest) Close(ctx context.Context) error {
	return errors.Join(g.closeTerminals(ctx), g.closeServices(ctx))
}

// Serve answers one agent over conn until the connection ends, which returns nil, or ctx does. Terminals and services
// go on.
func (g *Guest) Serve(ctx context.Context, conn net.Conn) error {
	mux, err := tunnel.NewMux(conn, tunnel.Accepter)
	if err != nil {
		return fmt.Errorf("serve link: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { _ = mux.Close() })()
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	for {
		stream, err := mux.Accept()
		if err != nil {
			return nil
		}
		streams.Go(func() {
			defer stream.Close()
			g.answer(ctx, stream)
		})
	}
}

// answer serves one stream. What goes wrong is told to the caller; when the stream itself fails there is nobody to
// tell.
func (g *Guest) answer(ctx context.Context, stream net.Conn) {
	_ = stream.SetReadDeadline(time.Now().Add(requestTimeout))
	var req link.Request
	if err := link.ReadMessage(stream, &req); err != nil {
		return
	}
	_ = stream.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if req.Deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, req.Deadline)
		defer stop()
	}
	if err := g.dispatch(ctx, stream, req); err != nil {
		_ = link.ReplyError(stream, err)
	}
}

// dispatch does what req asks. An error it returns is the reply; once it has replied itself it returns nil.
func (g *Guest) dispatch(ctx context.Context, stream net.Conn, req link.Request) error {
	switch req.Op {
	case link.OpHello:
		return g.hello(stream, req)
	case link.OpEvents:
		return g.sendEvents(ctx, stream)
	case link.OpTerminalList:
		return link.ReplyOK(stream, g.listTerminals())
	case link.OpTerminalClose:
		return replyTo(stream, struct{}{}, g.closeTerminal(req.ID))
	case link.OpServiceStop:
		return replyTo(stream, struct{}{}, g.stopService(ctx, req.ID))
	case link.OpServiceList:
		return link.ReplyOK(stream, g.listServices())
	case link.OpListening:
		return link.ReplyOK(stream, g.cfg.Processes.Listening())
	case link.OpActivity:
		return link.ReplyOK(stream, g.foregrounds())
	case link.OpNotice:
		return replyTo(stream, struct{}{}, g.notice(req.Text))
	case link.OpDial:
		return g.dial(ctx, stream, req.Port)
	case link.OpSSHUse:
		return link.ReplyOK(stream, g.use.describe())
	case link.OpTerminalAttach:
		if req.Attach != nil {
			return g.attachTerminal(ctx, stream, *req.Attach)
		}
	}
	select {
	case <-g.ready:
	case <-ctx.Done():
		return session.NewError(session.CodeOperationTimeout, "The container was not ready in time.",
			"Try again in a moment.")
	}
	switch {
	case req.Op == link.OpTerminalOpen && req.Open != nil:
		opened, err := g.openTerminal(*req.Open)
		return replyTo(stream, opened, err)
	case req.Op == link.OpExec && req.Exec != nil:
		return g.exec(ctx, stream, *req.Exec)
	case req.Op == link.OpSSHHost:
		host, err := g.sshHostKey()
		return replyTo(stream, host, err)
	case req.Op == link.OpSSH && req.SSH != nil:
		return g.serveSSH(ctx, stream, *req.SSH)
	case req.Op == link.OpWhich:
		return link.ReplyOK(stream, g.cfg.Processes.Which(req.Names))
	case req.Op == link.OpFile && req.File != nil:
		return g.files(ctx, stream, *req.File)
	case req.Op == link.OpServiceStart && req.Service != nil:
		started, err := g.startService(ctx, *req.Service)
		return replyTo(stream, started, err)
	}
	return session.NewError(session.CodeGuestInvalid, fmt.Sprintf("The guest does not know the call %q.", req.Op),
		"Start the session again with this version of Slipway.")
}

func replyTo(stream net.Conn, value any, err error) error {
	if err != nil {
		return err
	}
	return link.ReplyOK(stream, value)
}

func (g *Guest) hello(stream net.Conn, req link.Request) error {
	if req.Version != link.Version {
		return session.NewError(session.CodeGuestVersion,
			fmt.Sprintf("The session's guest speaks version %d of the link and the agent version %d.", link.Version,
				req.Version),
			"The session was started by another version of Slipway. Terminate it and start a new one.")
	}
	return link.ReplyOK(stream, link.Hello{Version: link.Version, PID: os.Getpid(), Shells: hasShell(g.cfg.Processes)})
}

// exec starts a command and connects it to the caller.
func (g *Guest) exec(ctx context.Context, stream net.Conn, req session.ExecRequest) error {
	if len(req.Command) == 0 {
		return session.NewError(session.CodeSessionInvalid, "No command given.", "Write the command after --.")
	}
	process, err := g.cfg.Processes.Start(Command{Argv: req.Command, Env: req.Env, Dir: req.Dir, Stdin: req.Stdin})
	if err != nil {
		return session.AsError(err, session.CodeGuestInternal)
	}
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		process.Kill()
		return nil
	}
	// The deadline of the request was for the start; the command runs as long as it likes.
	_ = terminal.ServeExec(context.WithoutCancel(ctx), stream, process)
	return nil
}
