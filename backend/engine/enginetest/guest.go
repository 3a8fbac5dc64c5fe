package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/tunnel"
)

// Guest plays the guest of one container of a [Fake] over the real link. Its
// terminals echo what is typed, its commands and services do what a test has
// set, and what it holds outlives the connections to it. Set the fields before
// the first connection.
type Guest struct {
	Programs map[string]string // what is installed: name to path
	NoShell  bool              // the image has no shell
	// Exec answers a command; nil: echoes the command line and ends with 0.
	Exec func(req session.ExecRequest) (stdout, stderr string, code int)
	// Service judges the start of a service; nil: it succeeds.
	Service func(ctx context.Context, req link.ServiceRequest) error
	// Dial connects to a port; nil: nothing listens.
	Dial func(port int) (net.Conn, error)

	mu        sync.Mutex // guards what follows
	notReady  bool
	version   int
	facts     []link.Event // what a new events stream begins with
	changed   chan struct{}
	news      []link.Event // every event so far
	shells    map[string]*echoShell
	order     []string
	number    int
	services  []link.Service
	connected int
	programs  map[string]string // by terminal: what runs in its foreground
	notices   []string
}

type echoShell struct {
	info  session.Terminal
	shell *terminal.Shell
	spool *terminal.Spool
	tty   *echoTTY
}

func newGuest() *Guest {
	return &Guest{changed: make(chan struct{}), shells: map[string]*echoShell{}, version: link.Version}
}

// Connections returns how many connections were made to the guest so far.
func (g *Guest) Connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.connected
}

// SetVersion makes the guest speak another version of the link.
func (g *Guest) SetVersion(version int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.version = version
}

// SetReady says whether the container is set up. It is from the beginning;
// a guest that was held back sends the event when it becomes ready.
func (g *Guest) SetReady(ready bool) {
	g.mu.Lock()
	was := !g.notReady
	g.notReady = !ready
	g.mu.Unlock()
	if ready && !was {
		g.Send(link.Event{Ready: true})
	}
}

// Send sends an event to every events stream. Exit, OOM and Error are repeated
// to streams that begin later.
func (g *Guest) Send(event link.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if event.Exit != nil || event.OOM > 0 || event.Error != nil {
		g.facts = append(g.facts, event)
	}
	g.news = append(g.news, event)
	close(g.changed)
	g.changed = make(chan struct{})
}

// Print writes to a terminal as its shell would.
func (g *Guest) Print(id, text string) {
	g.mu.Lock()
	s := g.shells[id]
	g.mu.Unlock()
	if s != nil {
		s.tty.output.Write([]byte(text)) //nolint:errcheck // an ended shell prints nothing
	}
}

// serve speaks the link on conn until it breaks.
func (g *Guest) serve(conn net.Conn) {
	mux, err := tunnel.NewMux(conn, tunnel.Accepter)
	if err != nil {
		conn.Close() //nolint:errcheck // it is of no use
		return
	}
	g.mu.Lock()
	g.connected++
	g.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var streams sync.WaitGroup
	for {
		stream, err := mux.Accept()
		if err != nil {
			break
		}
		streams.Go(func() { g.answer(ctx, stream) })
	}
	cancel()
	mux.Close() //nolint:errcheck // it is broken already
	streams.Wait()
}

// answer serves one stream, which it closes.
func (g *Guest) answer(ctx context.Context, stream net.Conn) {
	defer stream.Close()                                      //nolint:errcheck // the far side sees the end either way
	stop := context.AfterFunc(ctx, func() { stream.Close() }) //nolint:errcheck // see above
	defer stop()
	var req link.Request
	if err := link.ReadMessage(stream, &req); err != nil {
		return
	}
	if err := g.dispatch(ctx, stream, req); err != nil {
		link.ReplyError(stream, err) //nolint:errcheck // the far side has left
	}
}

// dispatch answers a request. An error that it returns is the answer.
func (g *Guest) dispatch(ctx context.Context, stream net.Conn, req link.Request) error {
	switch req.Op {
	case link.OpHello:
		g.mu.Lock()
		hello := link.Hello{Version: g.version, PID: 1, Shells: !g.NoShell}
		g.mu.Unlock()
		return link.ReplyOK(stream, hello)
	case link.OpEvents:
		return g.events(ctx, stream)
	case link.OpTerminalList:
		return link.ReplyOK(stream, g.terminals())
	case link.OpTerminalOpen:
		return g.openTerminal(stream, *req.Open)
	case link.OpTerminalAttach:
		return g.attach(ctx, stream, *req.Attach)
	case link.OpTerminalClose:
		return g.closeTerminal(stream, req.ID)
	case link.OpExec:
		return g.exec(ctx, stream, *req.Exec)
	case link.OpWhich:
		found := map[string]string{}
		for _, name := range req.Names {
			if path, ok := g.Programs[name]; ok {
				found[name] = path
			}
		}
		return link.ReplyOK(stream, found)
	case link.OpServiceStart:
		return g.startService(ctx, stream, *req.Service)
	case link.OpServiceStop:
		return g.stopService(stream, req.ID)
	case link.OpServiceList:
		g.mu.Lock()
		services := append([]link.Service{}, g.services...)
		g.mu.Unlock()
		return link.ReplyOK(stream, services)
	case link.OpListening:
		return link.ReplyOK(stream, []int{})
	case link.OpDial:
		return g.dial(stream, req.Port)
	case link.OpSSHHost:
		return link.ReplyOK(stream, session.SSHHost{Key: "ssh-ed25519 AAAA"})
	case link.OpSSHUse:
		return link.ReplyOK(stream, session.SSHUse{})
	case link.OpSSH:
		return g.ssh(stream)
	case link.OpActivity:
		return link.ReplyOK(stream, g.foregrounds())
	case link.OpNotice:
		return link.ReplyOK(stream, g.notice(req.Text))
	}
	return &session.Error{Code: "guest_call_invalid", Message: fmt.Sprintf("The guest knows no operation %q.", req.Op)}
}

// ssh greets as a server of ssh does and goes no further.
func (g *Guest) ssh(stream net.Conn) error {
	if err := link.ReplyOK(stream, nil); err != nil {
		return err
	}
	io.WriteString(stream, "SSH-2.0-enginetest\r\n") //nolint:errcheck // the far side may have left
	io.Copy(io.Discard, stream)                      //nolint:errcheck // only its end matters
	return nil
}

func (g *Guest) events(ctx context.Context, stream net.Conn) error {
	if err := link.ReplyOK(stream, nil); err != nil {
		return err
	}
	go func() { // nothing comes from the far side; its end ends the stream
		io.Copy(io.Discard, stream) //nolint:errcheck // only the end matters
		stream.Close()              //nolint:errcheck // see above
	}()
	g.mu.Lock()
	pending := append([]link.Event{}, g.facts...)
	if !g.notReady {
		pending = append([]link.Event{{Ready: true}}, pending...)
	}
	next := len(g.news)
	g.mu.Unlock()
	for {
		for _, event := range pending {
			if err := link.WriteMessage(stream, event); err != nil {
				return nil //nolint:nilerr // the far side has left: there is nobody to answer
			}
		}
		g.mu.Lock()
		pending, next = append([]link.Event{}, g.news[next:]...), len(g.news)
		wait := g.changed
		g.mu.Unlock()
		if len(pending) > 0 {
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil
		}
	}
}

func (g *Guest) terminals() []session.Terminal {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []session.Terminal{}
	for _, id := range g.order {
		s := g.shells[id]
		info, state := s.info, s.shell.State()
		info.Start, info.End, info.Cols, info.Rows, info.ExitCode = state.Start, state.End, state.Cols, state.Rows,
			state.ExitCode
		list = append(list, info)
	}
	return list
}

func (g *Guest) openTerminal(stream net.Conn, req session.TerminalRequest) error {
	if g.NoShell {
		return &session.Error{Code: "terminal_create_no-shell", Message: "The image has no shell.",
			Hint: "Choose an image with a shell."}
	}
	cols, rows := max(req.Cols, 1), max(req.Rows, 1)
	tty := newEchoTTY()
	spool := terminal.NewSpool(terminal.SpoolConfig{})
	shell := terminal.NewShell(terminal.ShellConfig{TTY: tty, Spool: spool, Cols: cols, Rows: rows})
	g.mu.Lock()
	g.number++
	info := session.Terminal{ID: fmt.Sprintf("t%d", g.number), Title: req.Title, Cols: cols, Rows: rows,
		CreatedAt: time.Now()}
	g.shells[info.ID] = &echoShell{info: info, shell: shell, spool: spool, tty: tty}
	g.order = append(g.order, info.ID)
	g.mu.Unlock()
	go func() {
		shell.Run()
		g.Send(link.Event{Terminals: true})
	}()
	g.Send(link.Event{Terminals: true})
	return link.ReplyOK(stream, info)
}

func (g *Guest) find(id string) (*echoShell, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s, ok := g.shells[id]; ok {
		return s, nil
	}
	return nil, &session.Error{Code: "terminal_read_not-found", Message: fmt.Sprintf("There is no terminal %s.", id)}
}

func (g *Guest) attach(ctx context.Context, stream net.Conn, req session.AttachRequest) error {
	s, err := g.find(req.Terminal)
	if err != nil {
		return err
	}
	if err := link.ReplyOK(stream, nil); err != nil {
		return err
	}
	attach := terminal.Attach{Offset: req.Offset, Client: req.Client}
	s.shell.Serve(ctx, stream, attach) //nolint:errcheck // the viewer has left
	return nil
}

func (g *Guest) closeTerminal(stream net.Conn, id string) error {
	s, err := g.find(id)
	if err != nil {
		return err
	}
	s.tty.Close() //nolint:errcheck // always nil
	g.mu.Lock()
	delete(g.shells, id)
	g.order = remove(g.order, id)
	g.mu.Unlock()
	g.Send(link.Event{Terminals: true})
	return link.ReplyOK(stream, nil)
}

func remove(list []string, element string) []string {
	kept := []string{}
	for _, e := range list {
		if e != element {
			kept = append(kept, e)
		}
	}
	return kept
}

func (g *Guest) exec(ctx context.Context, stream net.Conn, req session.ExecRequest) error {
	if len(req.Command) == 0 {
		return &session.Error{Code: "exec_create_invalid", Message: "There is no command."}
	}
	stdout, stderr, code := strings.Join(req.Command, " ")+"\n", "", 0
	if g.Exec != nil {
		stdout, stderr, code = g.Exec(req)
	}
	if err := link.ReplyOK(stream, nil); err != nil {
		return err
	}
	answer := &spoken{out: stdout, err: stderr, code: code}
	terminal.ServeExec(ctx, stream, answer) //nolint:errcheck // the caller has left
	return nil
}

// spoken is a command whose words are known beforehand.
type spoken struct {
	out, err string
	code     int
}

func (p *spoken) Stdin() io.WriteCloser { return nil }
func (p *spoken) Stdout() io.Reader     { return strings.NewReader(p.out) }
func (p *spoken) Stderr() io.Reader     { return strings.NewReader(p.err) }
func (p *spoken) Signal(int) error      { return nil }
func (p *spoken) Wait() int             { return p.code }
func (p *spoken) Kill()                 {}

func (g *Guest) startService(ctx context.Context, stream net.Conn, req link.ServiceRequest) error {
	if g.Service != nil {
		if err := g.Service(ctx, req); err != nil {
			return err
		}
	}
	started := link.Service{ID: req.ID, Port: req.Port, State: link.ServiceReady}
	g.setService(req.ID, &started)
	return link.ReplyOK(stream, started)
}

func (g *Guest) stopService(stream net.Conn, id string) error {
	g.setService(id, nil)
	return link.ReplyOK(stream, nil)
}

// setService replaces what is known of a service, nil forgets it.
func (g *Guest) setService(id string, service *link.Service) {
	g.mu.Lock()
	kept := []link.Service{}
	for _, s := range g.services {
		if s.ID != id {
			kept = append(kept, s)
		}
	}
	if service != nil {
		kept = append(kept, *service)
	}
	g.services = kept
	g.mu.Unlock()
	g.Send(link.Event{Services: true})
}

// EndService makes a service end by itself with a code.
func (g *Guest) EndService(id string, code int) {
	g.mu.Lock()
	port := 0
	for _, s := range g.services {
		if s.ID == id {
			port = s.Port
		}
	}
	g.mu.Unlock()
	g.setService(id, &link.Service{ID: id, Port: port, State: link.ServiceExited, ExitCode: &code})
}

func (g *Guest) dial(stream net.Conn, port int) error {
	refused := &session.Error{Code: "port_dial_refused",
		Message: fmt.Sprintf("Nothing in the session listens on port %d.", port),
		Hint:    "Start the program that should."}
	if g.Dial == nil {
		return refused
	}
	far, err := g.Dial(port)
	if err != nil {
		return errors.Join(refused, err)
	}
	defer far.Close() //nolint:errcheck // both ends are done
	if err := link.ReplyOK(stream, nil); err != nil {
		return err
	}
	var copies sync.WaitGroup
	copies.Go(func() {
		io.Copy(far, stream) //nolint:errcheck // ends with either side
		far.Close()          //nolint:errcheck // see above
	})
	io.Copy(stream, far) //nolint:errcheck // ends with either side
	stream.Close()       //nolint:errcheck // see above
	copies.Wait()
	return nil
}

// echoTTY is a program that says back what it is told; "exit N\n" ends it with N.
type echoTTY struct {
	output *io.PipeWriter
	reader *io.PipeReader
	line   string
	once   sync.Once
	code   int
	done   chan struct{}
}

func newEchoTTY() *echoTTY {
	r, w := io.Pipe()
	return &echoTTY{reader: r, output: w, done: make(chan struct{}), code: 129}
}

func (t *echoTTY) Read(p []byte) (int, error) { return t.reader.Read(p) }

func (t *echoTTY) Write(p []byte) (int, error) {
	n, err := t.output.Write(p)
	t.line += string(p)
	for {
		line, rest, complete := strings.Cut(t.line, "\n")
		if !complete {
			return n, err
		}
		t.line = rest
		var code int
		if _, scanErr := fmt.Sscanf(line, "exit %d", &code); scanErr == nil {
			t.end(code)
		}
	}
}

func (t *echoTTY) end(code int) {
	t.once.Do(func() {
		t.code = code
		close(t.done)
		t.output.Close() //nolint:errcheck // always nil
	})
}

func (t *echoTTY) Resize(int, int) error { return nil }

func (t *echoTTY) Wait() int {
	<-t.done
	return t.code
}

func (t *echoTTY) Close() error {
	t.end(129)
	return t.reader.Close()
}
