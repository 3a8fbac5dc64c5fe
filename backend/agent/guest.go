package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Guest is what the agent asks of the guest of one container. A [link.Client]
// is one.
type Guest interface {
	Events(ctx context.Context, fn func(link.Event) error) error
	ListTerminals(ctx context.Context) ([]session.Terminal, error)
	OpenTerminal(ctx context.Context, req session.TerminalRequest) (session.Terminal, error)
	AttachTerminal(ctx context.Context, req session.AttachRequest) (net.Conn, error)
	CloseTerminal(ctx context.Context, id string) error
	Exec(ctx context.Context, req session.ExecRequest) (net.Conn, error)
	Which(ctx context.Context, names []string) (map[string]string, error)
	StartService(ctx context.Context, req link.ServiceRequest) (link.Service, error)
	StopService(ctx context.Context, id string) error
	Services(ctx context.Context) ([]link.Service, error)
	Listening(ctx context.Context) ([]int, error)
	Activity(ctx context.Context) ([]link.Foreground, error)
	Notice(ctx context.Context, text string) error
	Dial(ctx context.Context, port int) (net.Conn, error)
	SSHHost(ctx context.Context) (session.SSHHost, error)
	DialSSH(ctx context.Context, req session.SSHRequest) (net.Conn, error)
	SSHUse(ctx context.Context) (session.SSHUse, error)
	Files
	Done() <-chan struct{}
	Close() error
}

// Files is what the agent asks of the files of one container; see [session.Files].
type Files interface {
	ListFiles(ctx context.Context, req session.ListRequest) (session.FileListing, error)
	StatFile(ctx context.Context, path session.FilePath) (session.FileInfo, error)
	ReadFile(ctx context.Context, req session.ReadRequest) (io.ReadCloser, error)
	ChecksumFile(ctx context.Context, path session.FilePath) (string, error)
	UploadOffset(ctx context.Context, up session.Upload) (int64, error)
	WriteUpload(ctx context.Context, up session.Upload, from io.Reader) (int64, error)
	FinishUpload(ctx context.Context, req session.FinishRequest) (session.FileInfo, error)
	DropUpload(ctx context.Context, up session.Upload) error
	MakeDirectory(ctx context.Context, path session.FilePath, parents bool) error
	MoveFile(ctx context.Context, from, to session.FilePath) error
	RemoveFile(ctx context.Context, path session.FilePath, recursive bool) error
}

var _ Guest = (*link.Client)(nil)

// guestLink keeps one connection to a container's guest and makes it again
// when it is lost, until it is dropped.
type guestLink struct {
	kernel    string
	container string
	cancel    context.CancelFunc
	ended     chan struct{} // closed when its goroutine has ended

	mu      sync.Mutex // guards everything below
	client  Guest      // nil while there is none
	heard   bool       // there was a client
	ready   bool       // the guest has said that the container is set up
	failure error      // why there will be no client any more
	changed chan struct{}
}

// ensureLink returns the link to the guest of a kernel's container and makes
// one if there is none.
func (a *Agent) ensureLink(c *course, id session.ID, kernel, container string) *guestLink {
	c.mu.Lock()
	current := c.links[kernel]
	if current != nil && current.container == container {
		c.mu.Unlock()
		return current
	}
	ctx, cancel := context.WithCancel(context.Background())
	g := &guestLink{kernel: kernel, container: container, cancel: cancel, ended: make(chan struct{}),
		changed: make(chan struct{})}
	if c.links == nil {
		c.links = map[string]*guestLink{}
	}
	c.links[kernel] = g
	c.mu.Unlock()
	if current != nil {
		current.drop()
	}
	a.tasks.Go(func() {
		defer close(g.ended)
		a.keepLink(ctx, c, id, g)
	})
	return g
}

// dropLinks ends all links and waits until they have.
func (c *course) dropLinks() {
	c.mu.Lock()
	links := c.links
	c.links = nil
	c.mu.Unlock()
	for _, g := range links {
		g.cancel()
	}
	for _, g := range links {
		g.drop()
	}
}

// linkTo returns the link to a kernel's guest, nil while there is none.
func (c *course) linkTo(kernel string) *guestLink {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[kernel]
}

func (g *guestLink) drop() {
	g.cancel()
	<-g.ended
}

// update changes the link's state and wakes whoever waits for it.
func (g *guestLink) update(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	close(g.changed)
	g.changed = make(chan struct{})
}

// await waits until done is true of the link's state or the link has failed.
// done is called with the state guarded.
func (g *guestLink) await(ctx context.Context, done func() bool) error {
	for {
		g.mu.Lock()
		ok, failure, changed := done(), g.failure, g.changed
		g.mu.Unlock()
		if ok {
			return nil
		}
		if failure != nil {
			return failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (g *guestLink) awaitReady(ctx context.Context) error {
	return g.await(ctx, func() bool { return g.ready })
}

func (g *guestLink) awaitClient(ctx context.Context) (client Guest, err error) {
	err = g.await(ctx, func() bool {
		client = g.client
		return client != nil
	})
	return client, err
}

// keepLink connects to the guest and listens to it, again and again, until ctx
// ends or the container has.
func (a *Agent) keepLink(ctx context.Context, c *course, id session.ID, g *guestLink) {
	const shortest, longest = 50 * time.Millisecond, 5 * time.Second
	wait := shortest
	for ctx.Err() == nil {
		client, err := a.dialGuest(ctx, g.container)
		if err == nil {
			wait = shortest
			g.update(func() { g.client, g.heard = client, true })
			err = a.listen(ctx, c, id, g, client)
			g.update(func() { g.client = nil })
			client.Close() //nolint:errcheck // it is lost or given up
			signal(c.poke)
		}
		switch code := session.CodeOf(err); {
		case ctx.Err() != nil:
		case code == "engine_guest_exited" || code == "engine_read_not-found" || lasting(code):
			g.update(func() { g.failure = err })
			signal(c.poke)
			return
		case engine.Unavailable(err):
			a.heed(err) //nolint:errcheck // the loop tries again
		}
		_ = pace.Wall().Pause(ctx, wait) // an end of ctx ends the loop
		wait = min(2*wait, longest)
	}
	g.update(func() {
		if g.failure == nil {
			g.failure = &session.Error{Code: "session_use_unavailable",
				Message: "The connection into the session was closed.", Hint: "Look whether the session still runs."}
		}
	})
}

func (a *Agent) dialGuest(ctx context.Context, container string) (Guest, error) {
	conn, err := a.engine.Guest(ctx, container)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.limits.Guest)
	defer cancel()
	return a.config.Link(ctx, conn)
}

// listen passes on what the guest tells until the connection is lost.
func (a *Agent) listen(ctx context.Context, c *course, id session.ID, g *guestLink, client Guest) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { client.Close() }) //nolint:errcheck // it is given up
	defer stop()
	err := client.Events(ctx, func(e link.Event) error {
		switch {
		case e.Ready:
			g.update(func() { g.ready = true })
		case e.Exit != nil && g.kernel == session.MainKernel:
			c.setEnded()
		case e.OOM > 0:
			a.sawOOM(id, g.kernel, e.OOM)
		case e.Error != nil:
			a.guestTrouble(c, *e.Error)
		}
		return nil
	})
	if err == nil {
		err = errors.New("the guest ended its events")
	}
	return err
}

// guestTrouble keeps trouble that the guest tells of. Once the session runs it
// is a warning too.
func (a *Agent) guestTrouble(c *course, cause session.Cause) {
	c.mu.Lock()
	c.trouble = &cause
	c.mu.Unlock()
	_, err := a.records.Change(c.id, func(d *records.Draft) error {
		if d.Status == session.Running {
			d.WarnOfTrouble(&cause)
		}
		return nil
	})
	if err != nil {
		a.log.Warn("a warning could not be stored", "session", c.id, "err", err)
	}
}

// awaitSilence waits until the link of a kernel that has ended is lost, so
// that everything its guest told before is known.
func (c *course) awaitSilence(ctx context.Context, kernel string) {
	g := c.linkTo(kernel)
	if g == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = g.await(ctx, func() bool { return g.client == nil && g.heard }) // without it, what is known must do
}

// guest returns the client of the guest of a running session's main kernel. It
// fails as [Agent.guestOf] does.
func (a *Agent) guest(ctx context.Context, id session.ID) (Guest, error) {
	return a.guestOf(ctx, id, "")
}

// guestOf returns the client of the guest of a running session's kernel, the
// main one where none is named, waiting for it if it was lost a moment ago. It
// fails with session_use_conflict where the session does not run,
// session_use_not-found where it has no such kernel, and session_use_unavailable.
func (a *Agent) guestOf(ctx context.Context, id session.ID, kernel string) (Guest, error) {
	const patience = 10 * time.Second
	s, err := a.store.Get(id)
	if err != nil {
		return nil, err
	}
	if s.Status != session.Running {
		return nil, &session.Error{Code: "session_use_conflict", Message: "The session is " + string(s.Status) +
			", not RUNNING.", Hint: "Wait until it runs, or launch it again."}
	}
	k, known := s.Kernel(kernel)
	if !known {
		return nil, noKernel("session_use_not-found", s, kernel)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if c := a.courseOf(id); c != nil {
			if g := c.linkTo(k.Name); g != nil {
				client, err := g.awaitClient(ctx)
				return client, useError(ctx, err)
			}
		}
		// The agent has started a moment ago and the course has not come so far.
		if err := pace.Wall().Pause(ctx, 20*time.Millisecond); err != nil {
			return nil, useError(ctx, err)
		}
	}
}

// noKernel says that a session has no kernel of a name.
func noKernel(code session.Code, s session.Session, kernel string) error {
	names := make([]string, len(s.Kernels))
	for i, k := range s.Kernels {
		names[i] = k.Name
	}
	return &session.Error{Code: code, Message: fmt.Sprintf("The session has no kernel %q.", kernel),
		Hint: "It has " + strings.Join(names, ", ") + "."}
}

func useError(ctx context.Context, err error) error {
	if err == nil || (session.CodeOf(err) != "" && ctx.Err() == nil) {
		return err
	}
	return &session.Error{Code: "session_use_unavailable", Message: "The session cannot be reached at the moment.",
		Hint: "Its connection is made again by itself; try again.", Err: err}
}
