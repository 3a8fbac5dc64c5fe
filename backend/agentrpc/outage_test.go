package agentrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/tunnel"
)

// outages is a network that goes away and comes back. Nobody is told: what is
// sent over a connection of before is lost, and it never recovers.
type outages struct {
	host *tunnel.Host

	mu    sync.Mutex // guards what follows
	up    bool
	epoch int
	back  chan struct{} // closed when it comes back
	dials int
}

func (o *outages) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.up, o.back = false, make(chan struct{})
	o.epoch++
}

func (o *outages) mend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.up = true
	close(o.back)
}

// Dial implements [tunnel.Dialer]. Like a kernel it tries again after 1, 3 and
// 7 seconds.
func (o *outages) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	o.mu.Lock()
	o.dials++
	o.mu.Unlock()
	for wait := time.Second; ; wait *= 2 {
		o.mu.Lock()
		up, epoch := o.up, o.epoch
		o.mu.Unlock()
		if up {
			near, far := net.Pipe()
			go o.host.Serve(tunnel.Carrier{Conn: &mortalConn{near, o,
				epoch}}) //nolint:errcheck // the near side sees it
			return tunnel.Carrier{Conn: &mortalConn{far, o, epoch}}, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// mortalConn is one end of a connection that an outage ends without a word.
type mortalConn struct {
	net.Conn
	net    *outages
	number int
}

func (c *mortalConn) Write(p []byte) (int, error) {
	c.net.mu.Lock()
	lost := c.net.epoch != c.number
	c.net.mu.Unlock()
	if lost {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// program is a shell's program that says what a test says.
type program struct {
	out   *io.PipeReader
	say   *io.PipeWriter
	ended chan int

	mu    sync.Mutex // guards typed
	typed bytes.Buffer
}

func (p *program) Read(b []byte) (int, error) { return p.out.Read(b) }
func (p *program) Resize(int, int) error      { return nil }
func (p *program) Wait() int                  { return <-p.ended }
func (p *program) Close() error               { return p.say.Close() }
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.typed.Write(b)
}

// growing is a log that grows.
type growing struct {
	mu      sync.Mutex // guards what follows
	text    bytes.Buffer
	over    bool
	changed chan struct{}
}

func (g *growing) add(text string, over bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text.WriteString(text)
	g.over = over
	close(g.changed)
	g.changed = make(chan struct{})
}

// follow reads the log until it is over or ctx ends.
func (g *growing) follow(ctx context.Context) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		for at := 0; ; {
			g.mu.Lock()
			rest, over, changed := bytes.Clone(g.text.Bytes()[at:]), g.over, g.changed
			g.mu.Unlock()
			if _, err := writer.Write(rest); err != nil {
				return
			}
			if at += len(rest); len(rest) > 0 {
				continue
			}
			if over {
				writer.Close() //nolint:errcheck // always nil
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				writer.CloseWithError(ctx.Err()) //nolint:errcheck // always nil
				return
			}
		}
	}()
	return reader
}

func TestOutagesOfAnyLengthLoseAndDoubleNothing(t *testing.T) {
	for _, length := range []time.Duration{time.Second, time.Minute, 10 * time.Minute} {
		t.Run(length.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { liveThrough(t, length) })
		})
	}
}

// serving attaches viewers to a shell.
func serving(ctx context.Context, running *sync.WaitGroup, shell *terminal.Shell) func(context.Context, session.ID,
	session.AttachRequest) (io.ReadWriteCloser, error) {
	return func(_ context.Context, _ session.ID, r session.AttachRequest) (io.ReadWriteCloser, error) {
		near, far := net.Pipe()
		running.Go(func() {
			shell.Serve(ctx, far,
				terminal.Attach{Offset: r.Offset, Client: r.Client})
		}) //nolint:errcheck // the viewer has left
		return near, nil
	}
}

// handing dials pipes whose far ends a test takes from a channel.
func handing(ports chan<- net.Conn) func(context.Context, session.ID, int) (net.Conn, error) {
	return func(context.Context, session.ID, int) (net.Conn, error) {
		near, far := net.Pipe()
		ports <- far
		return near, nil
	}
}

// view watches a shell until it ends, over one stream after another, and returns
// over how many.
func view(ctx context.Context, viewer *terminal.Viewer, client *Client, line *tunnel.Line) (joined int) {
	for {
		stream, err := client.AttachTerminal(ctx, "a", session.AttachRequest{Offset: viewer.Offset(), Client: "v"})
		if err == nil {
			joined++
			if _, err = viewer.Run(ctx, terminal.NewConn(stream)); err == nil {
				return joined
			}
		}
		if ctx.Err() != nil || line.WaitUp(ctx) != nil {
			return joined
		}
	}
}

// liveThrough has a terminal, a log, a port and calls go on while the network is away
// for a while.
func liveThrough(t *testing.T, length time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	out, say := io.Pipe()
	p := &program{out: out, say: say, ended: make(chan int, 1)}
	spool := terminal.NewSpool(terminal.SpoolConfig{Cap: 1 << 20})
	shell := terminal.NewShell(terminal.ShellConfig{TTY: p, Spool: spool, Cols: 80, Rows: 24})
	running.Go(func() { shell.Run() })
	log := &growing{changed: make(chan struct{})}
	opened, ports := 0, make(chan net.Conn, 1)
	h := handlerFor(&scripted{
		attach: serving(ctx, &running, shell),
		logs: func(ctx context.Context, _ session.ID, _ session.LogOptions) (io.ReadCloser, error) {
			return log.follow(ctx), nil
		},
		dial: handing(ports),
		open: func(ctx context.Context, _ session.ID, _ session.TerminalRequest) (session.Terminal, error) {
			opened++
			time.Sleep(3 * time.Second) // long enough to be cut
			return session.Terminal{ID: "t"}, nil
		},
	})
	n := &outages{host: tunnel.NewHost(tunnel.Config{}), up: true, back: make(chan struct{})}
	defer n.host.Close()
	running.Go(func() { h.ServeHost(ctx, n.host) })
	line := tunnel.NewLine(tunnel.LineConfig{Dialer: n})
	running.Go(func() { line.Run(ctx) })
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: line, Patience: time.Hour})
	if err := line.WaitUp(ctx); err != nil {
		t.Fatal(err)
	}

	var shown bytes.Buffer
	viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "v", Output: &shown})
	joined := 0
	running.Go(func() { joined = view(ctx, viewer, client, line) })
	var followed []byte
	running.Go(func() {
		reader, err := client.Logs(ctx, "a", session.LogOptions{Follow: true})
		if err == nil {
			followed, err = io.ReadAll(reader)
		}
		if err != nil {
			t.Error("the log:", err)
		}
	})
	page, err := client.DialPort(ctx, "a", 8888)
	if err != nil {
		t.Fatal(err)
	}
	app := <-ports
	var served, asked bytes.Buffer
	running.Go(func() { io.Copy(&served, page) }) //nolint:errcheck // what came shows it
	running.Go(func() { io.Copy(&asked, app) })   //nolint:errcheck // see above
	time.Sleep(10 * time.Second)
	var said, typed, logged bytes.Buffer
	live := func(seconds int, what string) {
		for i := range seconds {
			word := fmt.Sprintf("%s %d\n", what, i)
			said.WriteString(word)
			typed.WriteString(word)
			logged.WriteString(word)
			io.WriteString(say, word)    //nolint:errcheck // what is shown shows it
			io.WriteString(viewer, word) //nolint:errcheck // see above
			log.add(word, false)
			io.WriteString(app, word)  //nolint:errcheck // what came shows it
			io.WriteString(page, word) //nolint:errcheck // see above
			time.Sleep(time.Second)
		}
	}
	live(5, "before")
	var terminalErr error
	var calling sync.WaitGroup
	calling.Go(func() { _, terminalErr = client.OpenTerminal(ctx, "a", session.TerminalRequest{}) })
	time.Sleep(time.Second)
	n.fail()
	live(int(length/time.Second), "away")
	n.mend()
	began := time.Now()
	if err := line.WaitUp(ctx); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	live(60, "after")
	calling.Wait()
	// A call that was cut is answered from memory; one whose patience was
	// longer than the deadline of the method says that nothing is known.
	if opened != 1 || terminalErr != nil && session.CodeOf(terminalErr) != "agent_call_unavailable" {
		t.Errorf("a terminal was opened %d times, and told as %v", opened, terminalErr)
	}
	log.add("", true)
	p.ended <- 0
	say.Close() //nolint:errcheck // always nil
	time.Sleep(time.Minute)
	app.Close()
	page.Close()
	synctest.Wait()
	for what, bytesOf := range map[string][2]string{
		"shown by the terminal": {shown.String(), said.String()}, "typed": {p.typed.String(), typed.String()},
		"logged":            {string(followed), logged.String()},
		"served by the app": {served.String(), said.String()}, "asked of the app": {asked.String(), said.String()},
	} {
		if got, want := bytesOf[0], bytesOf[1]; got != want {
			t.Errorf("%d bytes were %s of %d", len(got), what, len(want))
		}
	}
	t.Logf("after %v away: up %v after the network, %d dials, the viewer joined %d times", length, took, n.dials,
		joined)
	if errors.Is(terminalErr, context.Canceled) {
		t.Error("a call was cancelled")
	}
}
