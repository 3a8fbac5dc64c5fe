// Package guests keeps the links to the guests in containers, and what uses them: terminals, commands, ssh and files.
package guests

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/guest/link"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Client is a connected guest, in parts.
type Client struct {
	Terminals
	SSH
	Tree
	Programs
	Connection
}

// ClientOf returns the client whose parts are all c.
func ClientOf(c interface {
	Terminals
	SSH
	Tree
	Programs
	Connection
}) Client {
	return Client{c, c, c, c, c}
}

// Connect makes the client of a guest over a fresh connection.
func Connect(ctx context.Context, conn net.Conn) (Client, error) {
	c, err := link.Connect(ctx, conn)
	return ClientOf(c), err
}

// Connection is the link to one guest.
type Connection interface {
	Events(ctx context.Context, fn func(link.Event) error) error
	Notice(ctx context.Context, text string) error
	Done() <-chan struct{} // closed when the link is lost or closed
	Close() error
}

// Terminals are the shells and commands in one container.
type Terminals interface {
	ListTerminals(ctx context.Context) ([]session.Terminal, error)
	OpenTerminal(ctx context.Context, req session.TerminalRequest) (session.Terminal, error)
	AttachTerminal(ctx context.Context, req session.AttachRequest) (net.Conn, error)
	CloseTerminal(ctx context.Context, id string) error
	Exec(ctx context.Context, req session.ExecRequest) (net.Conn, error)
	Activity(ctx context.Context) ([]link.Foreground, error)
}

// SSH is the ssh server of one container.
type SSH interface {
	SSHHost(ctx context.Context) (session.SSHHost, error)
	DialSSH(ctx context.Context, req session.SSHRequest) (net.Conn, error)
	SSHUse(ctx context.Context) (session.SSHUse, error)
}

// Programs can be started and reached in one container.
type Programs interface {
	Which(ctx context.Context, names []string) (map[string]string, error)
	StartService(ctx context.Context, req link.ServiceRequest) (link.Service, error)
	StopService(ctx context.Context, id string) error
	Services(ctx context.Context) ([]link.Service, error)
	Listening(ctx context.Context) ([]int, error)
	Dial(ctx context.Context, port int) (net.Conn, error)
}

// Listener is called with the events of the guests of one session.
type Listener interface {
	Ended()                               // the command of a batch session has ended
	OutOfMemory(kernel string, count int) // so many processes of a kernel were killed for memory so far
	Trouble(cause session.Cause)          // something that a guest could not do
	Changed()                             // a link is lost
}

// Config says how guests are reached.
type Config struct {
	host.Host
	// Use counts the traffic of a terminal as use of its session.
	Use interface {
		Terminal(id session.ID, stream io.ReadWriteCloser) io.ReadWriteCloser
	}
	Connect func(ctx context.Context, conn net.Conn) (Client, error)
}

// Guests are the guests of a machine's sessions.
type Guests struct {
	config Config

	mu       sync.Mutex // guards sessions
	sessions map[session.ID]*Links
}

// New returns the guests of a machine.
func New(config Config) *Guests { return &Guests{config: config, sessions: map[session.ID]*Links{}} }

// Follow returns the links to the guests of a session, none at first. The caller closes them.
func (g *Guests) Follow(id session.ID, listener Listener) *Links {
	l := &Links{guests: g, session: id, listener: listener, links: map[string]*Link{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions[id] = l
	return l
}

// link returns the link to the guest of a kernel, nil if there is none.
func (g *Guests) link(id session.ID, kernel string) *Link {
	g.mu.Lock()
	l := g.sessions[id]
	g.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.to(kernel)
}

// Now returns the guest of a kernel if it is connected, else nil.
func (g *Guests) Now(id session.ID, kernel string) *Client {
	l := g.link(id, kernel)
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}

// Guest returns the guest of a running session's kernel, by default the main one. It waits for a link that was lost a
// moment ago. It fails with session_update_conflict if the session does not run, session_use_not-found if it has no
// such kernel, and session_use_unavailable.
func (g *Guests) Guest(ctx context.Context, id session.ID, kernel string) (Client, error) {
	const patience = 10 * time.Second
	s, err := g.config.Records.Get(id)
	if err != nil {
		return Client{}, err
	}
	if s.Status != session.Running {
		return Client{}, session.NewError(session.CodeSessionConflict,
			"The session is "+string(s.Status)+", not RUNNING.",
			"Wait until it runs, or launch it again.")
	}
	k, known := s.Kernel(kernel)
	if !known {
		return Client{}, noKernel(s, kernel)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if link := g.link(id, k.Name); link != nil {
			var client *Client
			if err := link.await(ctx, func() bool {
				client = link.client
				return client != nil
			}); err != nil {
				return Client{}, useError(ctx, err)
			}
			return *client, nil
		}
		// The agent has just started and has not made the link yet.
		if err := pace.Wall().Pause(ctx, 20*time.Millisecond); err != nil {
			return Client{}, useError(ctx, err)
		}
	}
}

// Dial connects to a port on the loopback of a session's main kernel. It waits for the guest as Guest does. The record
// of the session is not read while its guest is connected, because each request to a service dials.
func (g *Guests) Dial(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	if client := g.Now(id, session.MainKernel); client != nil {
		return client.Dial(ctx, port)
	}
	client, err := g.Guest(ctx, id, "")
	if err != nil {
		return nil, err
	}
	return client.Dial(ctx, port)
}

func noKernel(s session.Session, kernel string) error {
	names := make([]string, len(s.Kernels))
	for i, k := range s.Kernels {
		names[i] = k.Name
	}
	return session.NewError(session.CodeUseNotFound, fmt.Sprintf("The session has no kernel %q.", kernel),
		"It has "+strings.Join(names, ", ")+".")
}

func useError(ctx context.Context, err error) error {
	if err == nil || (session.CodeOf(err) != "" && ctx.Err() == nil) {
		return err
	}
	return session.WrapError(err, session.CodeSessionUnavailable, "The session cannot be reached at the moment.",
		"Slipway reconnects automatically. Try again.")
}

// Outside, the id of a terminal of a kernel other than the main one is the kernel's name, a dot and its own id.

func (g *Guests) ListTerminals(ctx context.Context, id session.ID) ([]session.Terminal, error) {
	s, err := g.config.Records.Get(id)
	if err != nil {
		return nil, err
	}
	if len(s.Kernels) == 0 {
		_, err := g.Guest(ctx, id, "")
		return nil, err
	}
	all := []session.Terminal{}
	for _, k := range s.Kernels {
		client, err := g.Guest(ctx, id, k.Name)
		if err != nil {
			return nil, err
		}
		list, err := client.ListTerminals(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			all = append(all, outside(t, k.Name))
		}
	}
	return all, nil
}

func outside(t session.Terminal, kernel string) session.Terminal {
	if kernel != "" && kernel != session.MainKernel {
		t.ID, t.Kernel = kernel+"."+t.ID, kernel
	}
	return t
}

// inside returns the kernel of a terminal and the id inside that kernel.
func inside(id string) (kernel, terminal string) {
	if kernel, terminal, found := strings.Cut(id, "."); found && session.ValidKernel(kernel) {
		return kernel, terminal
	}
	return "", id
}

func (g *Guests) OpenTerminal(ctx context.Context, id session.ID,
	req session.TerminalRequest) (session.Terminal, error) {
	client, err := g.Guest(ctx, id, req.Kernel)
	if err != nil {
		return session.Terminal{}, err
	}
	t, err := client.OpenTerminal(ctx, req)
	return outside(t, req.Kernel), err
}

func (g *Guests) AttachTerminal(ctx context.Context, id session.ID,
	req session.AttachRequest) (io.ReadWriteCloser, error) {
	kernel, terminal := inside(req.Terminal)
	client, err := g.Guest(ctx, id, kernel)
	if err != nil {
		return nil, err
	}
	req.Terminal = terminal
	stream, err := asStream(client.AttachTerminal(ctx, req))
	return g.config.Use.Terminal(id, stream), err
}

func (g *Guests) CloseTerminal(ctx context.Context, id session.ID, terminal string) error {
	kernel, terminal := inside(terminal)
	client, err := g.Guest(ctx, id, kernel)
	if err != nil {
		return err
	}
	return client.CloseTerminal(ctx, terminal)
}

func (g *Guests) Exec(ctx context.Context, id session.ID, req session.ExecRequest) (io.ReadWriteCloser, error) {
	if len(req.Command) == 0 {
		return nil, session.NewError(session.CodeSessionInvalid, "There is no command to run.",
			"Name a program and its arguments.")
	}
	client, err := g.Guest(ctx, id, req.Kernel)
	if err != nil {
		return nil, err
	}
	return asStream(client.Exec(ctx, req))
}

// asStream returns a nil interface, not a nil connection in one, if there was an error.
func asStream(conn net.Conn, err error) (io.ReadWriteCloser, error) {
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (g *Guests) SSHHost(ctx context.Context, id session.ID, kernel string) (session.SSHHost, error) {
	client, err := g.sshGuest(ctx, id, kernel)
	if err != nil {
		return session.SSHHost{}, err
	}
	return client.SSHHost(ctx)
}

// DialSSH implements [session.SSH]. Only the guest reports its use, because keep-alives look like use from here.
func (g *Guests) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	client, err := g.sshGuest(ctx, id, req.Kernel)
	if err != nil {
		return nil, err
	}
	return client.DialSSH(ctx, req)
}

func (g *Guests) sshGuest(ctx context.Context, id session.ID, kernel string) (SSH, error) {
	s, err := g.config.Records.Get(id)
	if err != nil {
		return nil, err
	}
	if s.Spec.NoSSH {
		return nil, session.NewError(session.CodeSessionConflict, "The session was launched without ssh.",
			"Use its terminal, or launch it again with ssh.")
	}
	return g.Guest(ctx, id, kernel)
}

// FilesConfig says where files are.
type FilesConfig struct {
	Guests *Guests
	Folder func(id session.FolderID) (Tree, error)
	// Use counts reads and writes of a session's files as use of it.
	Use interface {
		File(id session.ID, content io.ReadCloser) io.ReadCloser
	}
}

// Files are the files of a machine's sessions and folders.
type Files struct{ config FilesConfig }

// NewFiles returns the files of a machine.
func NewFiles(config FilesConfig) *Files { return &Files{config: config} }

func (f *Files) in(ctx context.Context, place session.Place) (Tree, error) {
	switch {
	case (place.Session == "") == (place.Folder == ""):
		return nil, session.NewError(session.CodeFileInvalid, "One place is to be named.",
			"Name a session or a folder.")
	case place.Folder != "":
		return f.config.Folder(place.Folder)
	}
	return f.config.Guests.Guest(ctx, place.Session, place.Kernel)
}

func at[T any](ctx context.Context, f *Files, place session.Place, call func(Tree) (T, error)) (T, error) {
	t, err := f.in(ctx, place)
	if err != nil {
		var none T
		return none, err
	}
	return call(t)
}

func done(err error) (struct{}, error) { return struct{}{}, err }

func (f *Files) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	content, err := at(ctx, f, place, func(t Tree) (io.ReadCloser, error) { return t.ReadFile(ctx, req) })
	if err != nil {
		return nil, err
	}
	return f.config.Use.File(place.Session, content), nil
}

func (f *Files) WriteUpload(ctx context.Context, place session.Place, up session.Upload,
	from io.Reader) (int64, error) {
	watched := f.config.Use.File(place.Session, io.NopCloser(from))
	return at(ctx, f, place, func(t Tree) (int64, error) { return t.WriteUpload(ctx, up, watched) })
}
