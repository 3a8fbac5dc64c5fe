package agentrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// far end of the ports that a test dials.
type ports struct {
	agent *scripted
	far   chan net.Conn
}

func newPorts() *ports {
	p := &ports{far: make(chan net.Conn, 1)}
	p.agent = &scripted{dial: handing(p.far)}
	return p
}

// overOutages has a client of an agent behind a network that can go away.
func overOutages(t *testing.T, do func(t *testing.T, n *outages, h *Handler, c *Client, p *ports)) {
	// With the race detector, channels of timers that are due at a time on two
	// processors crash the runtime of Go 1.26 in a bubble.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer time.Sleep(2 * streamPatience) // until nothing waits for the line
		defer running.Wait()
		defer cancel()
		p := newPorts()
		h := handlerFor(p.agent)
		n := &outages{host: tunnel.NewHost(tunnel.Config{}), up: true, back: make(chan struct{})}
		defer n.host.Close()
		running.Go(func() { h.ServeHost(ctx, n.host) })
		line := tunnel.NewLine(tunnel.LineConfig{Dialer: n})
		running.Go(func() { line.Run(ctx) })
		if err := line.WaitUp(ctx); err != nil {
			t.Fatal(err)
		}
		do(t, n, h, NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: line}), p)
	})
}

// dialed is both ends of a port.
func (p *ports) dialed(t *testing.T, c *Client) (page, app net.Conn) {
	t.Helper()
	page, err := c.DialPort(t.Context(), "a", 8888)
	if err != nil {
		t.Fatal(err)
	}
	return page, <-p.far
}

func hear(t *testing.T, from net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Errorf("read %q, %v instead of %q", got, err, want)
	}
}

func say(t *testing.T, to net.Conn, what string) {
	t.Helper()
	if _, err := io.WriteString(to, what); err != nil {
		t.Errorf("%q was not written: %v", what, err)
	}
}

func TestWhatAnAppSaysWhileThePathIsGoneComesAfterwards(t *testing.T) {
	overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
		page, app := p.dialed(t, c)
		say(t, page, "run")
		hear(t, app, "run")
		say(t, app, "begun ")
		hear(t, page, "begun ")
		n.fail()
		say(t, app, "arrived") // before anybody knows
		say(t, page, "go on")
		time.Sleep(5 * time.Minute)
		page.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // always nil
		if _, err := page.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading while the path is gone ended as %v", err)
		}
		page.SetReadDeadline(time.Time{}) //nolint:errcheck // see above
		n.mend()
		hear(t, page, "arrived")
		hear(t, app, "go on")
		say(t, app, "!")
		if err := app.Close(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(page); string(rest) != "!" || err != nil {
			t.Errorf("the app's end came as %q, %v", rest, err)
		}
		page.Close()
	})
}

func TestAPageThatLeftWhileThePathWasGoneIsMissed(t *testing.T) {
	overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
		page, app := p.dialed(t, c)
		say(t, page, "hello")
		hear(t, app, "hello")
		n.fail()
		time.Sleep(time.Minute)
		say(t, page, "farewell")
		page.Close()
		if _, err := page.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("reading what was closed ended as %v", err)
		}
		if _, err := io.WriteString(page, "more"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("writing to what was closed ended as %v", err)
		}
		n.mend()
		if rest, err := io.ReadAll(app); string(rest) != "farewell" || err != nil {
			t.Errorf("the app was told %q, %v", rest, err)
		}
	})
}

// What leads nowhere any more says so behind its bytes, also when the path goes
// in that moment.
func TestAFailureIntoAPathThatIsGoneComesBehindItsBytes(t *testing.T) {
	overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
		near, far := net.Pipe()
		dying := &dyingConn{Conn: far}
		p.agent.dial = func(context.Context, session.ID, int) (net.Conn, error) { return dying, nil }
		page, err := c.DialPort(t.Context(), "a", 8888)
		if err != nil {
			t.Fatal(err)
		}
		n.fail()
		say(t, near, "last words")
		near.Close() //nolint:errcheck // what it leads to ends in trouble
		time.Sleep(30 * time.Second)
		n.mend()
		page.SetReadDeadline(time.Now().Add(5 * time.Minute)) //nolint:errcheck // always nil
		if heard, err := io.ReadAll(page); string(heard) != "last words" || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("heard %q, %v", heard, err)
		}
		page.Close() //nolint:errcheck // it is over
	})
}

// dyingConn is a connection whose end is a failure.
type dyingConn struct{ net.Conn }

func (f *dyingConn) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if err != nil {
		err = fmt.Errorf("reset by the peer: %w", io.ErrUnexpectedEOF)
	}
	return n, err
}

func TestAFarEndThatDoesNotReadHoldsItsStreamUp(t *testing.T) {
	overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
		page, app := p.dialed(t, c)
		page.SetWriteDeadline(time.Now().Add(time.Hour)) //nolint:errcheck // always nil
		wrote, err := page.Write(make([]byte, 32<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) || wrote < 1<<20 || wrote > 8<<20 {
			t.Errorf("%d bytes were taken of one that reads nothing: %v", wrote, err)
		}
		page.SetWriteDeadline(time.Time{}) //nolint:errcheck // see above
		page.Close()
		if n, err := io.Copy(io.Discard, app); err != nil || n == 0 {
			t.Errorf("%d bytes came when the reader woke up: %v", n, err)
		}
	})
}
