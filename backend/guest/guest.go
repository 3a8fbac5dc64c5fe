package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/tunnel"
)

// Processes starts programs in one container, real or simulated. All methods are safe for concurrent use. A program
// that cannot be started fails with process_start_not-found, process_start_forbidden or guest_call_internal-error.
type Processes interface {
	// OpenTerminal starts a program on a terminal of the given valid size, or the user's shell if cmd.Argv is empty.
	OpenTerminal(cmd Command, cols, rows int) (terminal.TTY, error)
	// Start starts a program without a terminal.
	Start(cmd Command) (terminal.Process, error)
	// Which returns the paths of those of names that Start would find.
	Which(names []string) map[string]string
	// DialPort connects to a port on the container's loopback.
	DialPort(ctx context.Context, port int) (net.Conn, error)
	// Listening returns the sorted ports on which programs listen on the loopback, without ephemeral ones.
	Listening() []int
	// Files opens a connection to a [ServeFiles], which answers one call as the user whose programs are started.
	Files(ctx context.Context) (net.Conn, error)
	// Script returns the command of a shell that runs text; empty: an interactive one. It returns nil without a shell.
	Script(text string) []string
}

// Command is a program to start. Env is added to the container's environment; an empty Dir is the home.
type Command struct {
	Argv  []string
	Env   []session.EnvVar
	Dir   string
	Stdin bool
}

// Exit codes of programs that cannot be started, as shells have them.
const (
	codeForbidden = 126
	codeNotFound  = 127
)

func hasShell(p Processes) bool { return len(p.Script("")) > 0 }

const requestTimeout = 30 * time.Second

// Config describes a guest.
type Config struct {
	Processes Processes
	SpoolDir  string    // folder of the terminals' spools; empty: memory only
	SpoolCap  int       // bytes kept for each terminal; 0: terminal.DefaultCap
	Log       io.Writer // receives the output of services; nil: only the last lines are kept
	// folder in which services listen on sockets, named by their ports, because others have the same network; empty:
	// services listen on ports
	Sockets string
}

// Guest has the terminals and services of one container and answers the agent over any number of links, also at the
// same time. All methods are safe for concurrent use.
type Guest struct {
	cfg     Config
	watched chan struct{} // closed when an agent first receives that the container is ready
	watch   func()
	ready   chan struct{} // closed by Ready
	setup   func()

	events    events
	terminals registry[*heldTerminal]    // in the order of their opening
	services  registry[*service]         // that serve ports, in the order of their start
	hostKey   func() (ssh.Signer, error) // of the person's ssh server
	sshTurns  chan struct{}              // has a token for each connection to it
	use       sshUse
}

// registry is an ordered list that is safe for concurrent use.
type registry[T comparable] struct {
	mu   sync.Mutex // guards list
	list []T
}

func (l *registry[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func (l *registry[T]) add(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, item)
}

// remove reports whether the item was in the list.
func (l *registry[T]) remove(item T) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.list, item)
	if at >= 0 {
		l.list = slices.Delete(l.list, at, at+1)
	}
	return at >= 0
}

// New returns a guest. Calls that start programs wait until [Guest.Ready] is called.
func New(cfg Config) *Guest {
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	g := &Guest{cfg: cfg, watched: make(chan struct{}), ready: make(chan struct{}),
		events: events{changed: make(chan struct{})}, hostKey: sync.OnceValues(newHostKey),
		sshTurns: make(chan struct{}, maxSSH)}
	g.watch = sync.OnceFunc(func() { close(g.watched) })
	g.setup = sync.OnceFunc(func() { close(g.ready) })
	return g
}

// Watched is closed when an events stream first reports that the container is ready.
func (g *Guest) Watched() <-chan struct{} { return g.watched }

// Ready reports that the container is set up.
func (g *Guest) Ready() {
	g.setup()
	g.events.change(func(s *eventState) { s.ready = true })
}

// Exit reports that the batch command has ended with code.
func (g *Guest) Exit(code int) {
	g.events.change(func(s *eventState) { s.exit = &code })
}

// OOM reports how many processes the kernel has killed for lack of memory.
func (g *Guest) OOM(count int) {
	g.events.change(func(s *eventState) { s.oom = count })
}

// Trouble reports a failure. Only the first is kept.
func (g *Guest) Trouble(err error) {
	cause := session.CauseOf(err, session.CodeGuestInternal)
	g.events.change(func(s *eventState) { s.trouble = cmp.Or(s.trouble, cause) })
}

// Close ends all terminals and services and waits for them until ctx ends.
func (g *Guest) Close(ctx context.Context) error {
	return errors.Join(g.closeTerminals(ctx), g.closeServices(ctx))
}

// Serve answers one agent over conn until the connection or ctx ends. Terminals and services continue.
func (g *Guest) Serve(ctx context.Context, conn net.Conn) error {
	giver := link.NewGiver(conn)
	if giver != nil {
		conn = giver
	}
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
			g.answer(ctx, stream, giver)
		})
	}
}

// answer serves one stream. The caller receives a failure, unless the stream itself fails.
func (g *Guest) answer(ctx context.Context, stream net.Conn, giver *link.Giver) {
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
	var err error
	if req.Op == link.OpSockets {
		giver.Give(req.Count)
		err = link.ReplyOK(stream, struct{}{})
	} else {
		err = g.dispatch(ctx, stream, req)
	}
	if err != nil {
		_ = link.ReplyError(stream, err)
	}
}

// dispatch handles a request. An error that it returns is the reply. It returns nil if it has replied.
func (g *Guest) dispatch(ctx context.Context, stream net.Conn, req link.Request) error {
	reply := func(value any, err error) error {
		if err != nil {
			return err
		}
		return link.ReplyOK(stream, value)
	}
	switch req.Op {
	case link.OpHello:
		return g.hello(stream, req)
	case link.OpEvents:
		return g.sendEvents(ctx, stream)
	case link.OpTerminalList:
		return link.ReplyOK(stream, g.listTerminals())
	case link.OpTerminalClose:
		return reply(struct{}{}, g.closeTerminal(req.ID))
	case link.OpServiceStop:
		return reply(struct{}{}, g.stopService(ctx, req.ID))
	case link.OpServiceList:
		return link.ReplyOK(stream, g.listServices())
	case link.OpListening:
		return link.ReplyOK(stream, g.cfg.Processes.Listening())
	case link.OpActivity:
		return link.ReplyOK(stream, g.foregrounds())
	case link.OpNotice:
		return reply(struct{}{}, g.notice(req.Text))
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
		return reply(g.openTerminal(*req.Open))
	case req.Op == link.OpExec && req.Exec != nil:
		return g.exec(ctx, stream, *req.Exec)
	case req.Op == link.OpSSHHost:
		return reply(g.sshHostKey())
	case req.Op == link.OpSSH && req.SSH != nil:
		return g.serveSSH(ctx, stream, *req.SSH)
	case req.Op == link.OpWhich:
		return link.ReplyOK(stream, g.cfg.Processes.Which(req.Names))
	case req.Op == link.OpFile && req.File != nil:
		return g.files(ctx, stream, *req.File)
	case req.Op == link.OpServiceStart && req.Service != nil:
		return reply(g.startService(ctx, *req.Service))
	}
	return session.NewError(session.CodeGuestInvalid, fmt.Sprintf("The guest does not know the call %q.", req.Op),
		"Start the session again with this version of Slipway.")
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
	// The deadline of the request was for the start only.
	_ = terminal.ServeExec(context.WithoutCancel(ctx), stream, process)
	return nil
}

func (g *Guest) dial(ctx context.Context, stream net.Conn, port int) error {
	conn, err := g.cfg.Processes.DialPort(ctx, port)
	if err != nil {
		return session.WrapError(err, session.CodeAppTimeout,
			fmt.Sprintf("Nothing in the session listens on port %d.", port),
			"Start the program that serves it and try again.")
	}
	defer conn.Close()
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		return nil
	}
	carry(stream, conn)
	return nil
}

// carry copies in both directions until either side ends, and closes both. If conn takes no more, what it has answered
// is copied first.
func carry(stream, conn net.Conn) {
	var back sync.WaitGroup
	back.Go(func() {
		copyOrDrop(conn, stream)
		_ = conn.Close()
	})
	_, _ = io.Copy(stream, conn)
	_ = stream.Close()
	back.Wait()
}
