package agentrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// vanishing is a connection whose bytes are lost without a word once it is cut.
type vanishing struct {
	net.Conn
	mu  sync.Mutex // guards cut
	cut bool
}

func (v *vanishing) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cut {
		return len(p), nil
	}
	return v.Conn.Write(p)
}

func (v *vanishing) lose() {
	v.Conn.SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // lets go of a write that holds mu
	v.mu.Lock()
	v.cut = true
	v.mu.Unlock()
}

// carryBetween has two ends run over one fresh wire until stop is closed.
func carryBetween(t *testing.T, a, b *lasting, stop <-chan struct{}) {
	t.Helper()
	var conns [2]*vanishing
	near, far := net.Pipe()
	conns[0], conns[1] = &vanishing{Conn: near}, &vanishing{Conn: far}
	ends, wires := [2]*lasting{a, b}, [2]*wire{}
	for i, c := range conns {
		wires[i] = newWire(muxStream{c, tunnel.Interactive}, &codec{})
	}
	gotA, gotB := a.received(), b.received()
	for i, at := range []uint64{gotB, gotA} {
		if _, err := ends[i].attach(wires[i], lastingAt{Received: at, Window: ends[1-i].window}); err != nil {
			t.Fatal(err)
		}
	}
	var carrying sync.WaitGroup
	for i, e := range ends {
		carrying.Go(func() { e.receive(wires[i]) })
		carrying.Go(func() { e.send(wires[i]) })
	}
	<-stop
	for _, c := range conns {
		c.lose()
	}
	for _, c := range conns {
		c.Close() //nolint:errcheck // it is lost
	}
	carrying.Wait()
}

// TestALastingStreamCarriesEveryByteOnce has two ends talk over wires that are
// cut at any moment.
func TestALastingStreamCarriesEveryByteOnce(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			a, b := newLasting(1<<10+uint64(random.IntN(64<<10))), newLasting(1<<10+uint64(random.IntN(64<<10)))
			var talking sync.WaitGroup
			talk := func(from, to *lasting, seed uint64) {
				random := rand.New(rand.NewPCG(seed, 2))
				said := make([]byte, 200<<10)
				for i := range said {
					said[i] = byte(random.Uint32())
				}
				talking.Go(func() {
					for rest := said; len(rest) > 0; {
						n := min(1+random.IntN(20<<10), len(rest))
						if wrote, err := from.Write(rest[:n]); wrote != n || err != nil {
							t.Errorf("%d of %d bytes were written: %v", wrote, n, err)
							return
						}
						rest = rest[n:]
					}
					if err := from.CloseWrite(); err != nil {
						t.Error(err)
					}
				})
				talking.Go(func() {
					heard, err := io.ReadAll(to)
					if err != nil || !bytes.Equal(heard, said) {
						t.Errorf("%d bytes of %d came as they were said: %v", len(heard), len(said), err)
					}
				})
			}
			talk(a, b, seed)
			talk(b, a, seed+100)
			over := make(chan struct{})
			go func() { a.awaitOver(); b.awaitOver(); close(over) }()
			cuts := 0
			for ended := false; !ended; cuts++ {
				stop := make(chan struct{})
				var carrying sync.WaitGroup
				carrying.Go(func() { carryBetween(t, a, b, stop) })
				select {
				case <-time.After(time.Duration(random.IntN(2000)) * time.Microsecond):
				case <-over:
					ended = true
				}
				close(stop)
				carrying.Wait()
			}
			talking.Wait()
			t.Logf("%d wires", cuts)
		})
	}
}

// far end of the ports that a test dials.
type ports struct {
	agent *scripted
	far   chan net.Conn
}

func newPorts() *ports {
	p := &ports{far: make(chan net.Conn, lostOfAll)}
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

func TestAStreamIsNotKeptForEver(t *testing.T) {
	overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
		page, app := p.dialed(t, c)
		n.fail()
		time.Sleep(lastingFor + 5*time.Minute)
		if _, err := app.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the app's connection ended as %v", err)
		}
		if _, err := page.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the page's connection ended as %v", err)
		}
		n.mend()
	})
}

func TestStreamsThatAreLostAreBounded(t *testing.T) {
	overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
		var pages, apps []net.Conn
		for range lostOfPeer + 1 {
			page, app := p.dialed(t, c)
			pages, apps = append(pages, page), append(apps, app)
			time.Sleep(time.Second)
		}
		n.fail()
		time.Sleep(2 * time.Minute)
		gone := 0
		for _, app := range apps {
			app.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // always nil
			if _, err := app.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				gone++
			}
			app.SetReadDeadline(time.Time{}) //nolint:errcheck // see above
		}
		if gone != 1 {
			t.Errorf("%d of %d streams were given up", gone, len(apps))
		}
		n.mend()
		time.Sleep(time.Minute)
		broken := 0
		for i, page := range pages {
			go io.WriteString(apps[i], "x") //nolint:errcheck // what is read shows it
			if _, err := io.ReadFull(page, make([]byte, 1)); errors.Is(err, io.ErrUnexpectedEOF) {
				broken++
			} else if err != nil {
				t.Error(err)
			}
			page.Close()
		}
		if broken != 1 {
			t.Errorf("%d pages were told that their stream is gone", broken)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		h.lastings.mu.Lock()
		defer h.lastings.mu.Unlock()
		if len(h.lastings.known) != 0 || len(h.lastings.lost) != 0 {
			t.Errorf("%d streams are known and %d lost when all are closed", len(h.lastings.known),
				len(h.lastings.lost))
		}
	})
}

func TestAFarEndThatDoesNotReadHoldsItsStreamUp(t *testing.T) {
	overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
		page, app := p.dialed(t, c)
		page.SetWriteDeadline(time.Now().Add(time.Hour)) //nolint:errcheck // always nil
		wrote, err := page.Write(make([]byte, 8*lastingWindow))
		if !errors.Is(err, os.ErrDeadlineExceeded) || wrote < lastingWindow || wrote > 3*lastingWindow {
			t.Errorf("%d bytes were taken of one that reads nothing: %v", wrote, err)
		}
		page.SetWriteDeadline(time.Time{}) //nolint:errcheck // see above
		page.Close()
		if n, err := io.Copy(io.Discard, app); err != nil || n == 0 {
			t.Errorf("%d bytes came when the reader woke up: %v", n, err)
		}
	})
}

func TestOneVersionApartHasNoLastingStreams(t *testing.T) {
	t.Run("an older caller", func(t *testing.T) {
		p := newPorts()
		c, _ := pair(t, p.agent) // its opener cannot wait, so it does not ask for one
		page, app := p.dialed(t, c)
		if _, lasts := page.(*caller); lasts {
			t.Error("a stream lasts that cannot")
		}
		var saying sync.WaitGroup
		saying.Go(func() { say(t, page, "hello") })
		hear(t, app, "hello")
		saying.Wait()
	})
	t.Run("an older handler", func(t *testing.T) {
		near, far := connect(t)
		opener, err := tunnel.NewMux(near, tunnel.Opener)
		if err != nil {
			t.Fatal(err)
		}
		defer opener.Close()
		accepter, err := tunnel.NewMux(far, tunnel.Accepter)
		if err != nil {
			t.Fatal(err)
		}
		defer accepter.Close()
		go func() {
			conn, err := accepter.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			w := newWire(muxStream{conn, tunnel.Interactive}, &codec{})
			w.next()                   //nolint:errcheck // what follows shows it
			w.send(kindAnswer, none{}) //nolint:errcheck // see above
			w.data([]byte("hello"))    //nolint:errcheck // see above
			w.signal(kindEnd)          //nolint:errcheck // see above
		}()
		c := NewClient(ClientConfig{Opener: waiting{muxTunnel{opener}}})
		page, err := c.DialPort(t.Context(), "a", 8888)
		if err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(page); string(said) != "hello" || err != nil {
			t.Errorf("an older handler said %q, %v", said, err)
		}
	})
}

// waiting is an opener that is always up.
type waiting struct{ muxTunnel }

func (waiting) WaitUp(context.Context) error { return nil }

// TestARuleBreakerLosesItsStream sends what no peer may send.
func TestARuleBreakerLosesItsStream(t *testing.T) {
	for name, break_ := range map[string]func(w *wire) error{
		"more than the window": func(w *wire) error {
			_, err := w.data(make([]byte, 8<<10))
			return err
		},
		"taken what was not sent": func(w *wire) error { return w.write(takenFrame(1)) },
		"taken without a number":  func(w *wire) error { return w.signal(kindTaken) },
		"data behind the end": func(w *wire) error {
			if err := w.signal(kindEnd); err != nil {
				return err
			}
			_, err := w.data([]byte("x"))
			return err
		},
		"an event": func(w *wire) error { return w.send(kindEvent, none{}) },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			e := newLasting(4 << 10)
			w := newWire(muxStream{far, tunnel.Interactive}, &codec{})
			if _, err := e.attach(w, lastingAt{Window: 1 << 10}); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { e.receive(w); far.Close(); close(done) }()
			_ = break_(newWire(muxStream{near, tunnel.Interactive}, &codec{})) // it may be cut off while it writes
			<-done
			for {
				if _, err := e.Read(make([]byte, 8<<10)); err != nil {
					if name != "data behind the end" && !isProtocol(err) {
						t.Errorf("the stream ended as %v", err)
					}
					break
				}
			}
			if _, err := e.Write([]byte("x")); !isProtocol(err) {
				t.Errorf("a write was told %v", err)
			}
		})
	}
	e := newLasting(1)
	if _, err := e.attach(nil, lastingAt{Received: 1}); !isProtocol(err) {
		t.Errorf("a peer that received what was never sent was told %v", err)
	}
}

func TestAStreamThatIsNotKnownIsNotOpenedAgain(t *testing.T) {
	var all lastings
	if _, _, err := all.join(callKey{id: "a"}, lastingAt{Begun: true}, 1); session.CodeOf(err) != codeForgotten {
		t.Errorf("it ended as %v", err)
	}
	j, first, err := all.join(callKey{id: "a"}, lastingAt{}, 1)
	if err != nil || !first {
		t.Fatalf("%v, %v", first, err)
	}
	if again, first, err := all.join(callKey{id: "a"}, lastingAt{}, 1); again != j || first || err != nil {
		t.Errorf("a repetition has a stream of its own: %v, %v", first, err)
	}
	if other, first, err := all.join(callKey{id: "a", key: "another peer"}, lastingAt{}, 1); other == j || !first ||
		err != nil {
		t.Errorf("another peer joined the stream: %v, %v", first, err)
	}
}
