package agentrpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"slipway/backend/session"
)

// within fails unless do ends within a time.
func within(t *testing.T, limit time.Duration, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Errorf("%s: not within %v", what, limit)
		<-done
	}
}

// TestAFarewellIntoAPathThatIsGoneArrives has one side say its last and leave
// around the moment in which the path goes, which nobody is told: every byte and
// the end arrive when the path is back, and neither side is kept beyond that.
func TestAFarewellIntoAPathThatIsGoneArrives(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			overOutages(t, func(t *testing.T, n *outages, h *Handler, c *Client, p *ports) {
				random := rand.New(rand.NewPCG(seed, 3))
				page, app := p.dialed(t, c)
				speaker, listener := page, app
				if seed%3 == 2 {
					speaker, listener = app, page
				}
				said := make([]byte, random.IntN(300<<10))
				for i := range said {
					said[i] = byte(random.Uint32())
				}
				failAt := time.Duration(random.IntN(4000)) * time.Millisecond
				leaveAt := failAt + time.Duration(random.IntN(8000)-2000)*time.Millisecond
				backAt := failAt + time.Duration(random.IntN(60_000))*time.Millisecond
				var going sync.WaitGroup
				going.Go(func() {
					time.Sleep(failAt)
					n.fail()
					time.Sleep(backAt - failAt)
					n.mend()
				})
				going.Go(func() {
					pause := max(leaveAt, 0) / 10
					for rest := said; ; {
						chunk := min(len(said)/9+1, len(rest))
						if _, err := speaker.Write(rest[:chunk]); err != nil {
							t.Errorf("%d bytes were not written: %v", chunk, err)
							return
						}
						if rest = rest[chunk:]; len(rest) == 0 {
							break
						}
						time.Sleep(pause)
					}
					if seed%3 == 1 {
						speaker.(halfCloser).CloseWrite() //nolint:errcheck,forcetypeassert // it is a caller
						time.Sleep(pause)
					}
					if err := speaker.Close(); err != nil {
						t.Error(err)
					}
				})
				within(t, 5*time.Minute, "the last word", func() {
					if heard, err := io.ReadAll(listener); err != nil || !bytes.Equal(heard, said) {
						t.Errorf("%d of %d bytes were heard: %v", len(heard), len(said), err)
					}
				})
				listener.Close() //nolint:errcheck // it has heard all
				going.Wait()
				page.Close() //nolint:errcheck // likewise
				gone := func() bool {
					h.lastings.mu.Lock()
					defer h.lastings.mu.Unlock()
					return len(h.lastings.known) == 0
				}
				for range 300 {
					if gone() {
						return
					}
					time.Sleep(time.Second)
				}
				t.Error("the far side keeps it")
			})
		})
	}
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
		within(t, 5*time.Minute, "the failure", func() {
			if heard, err := io.ReadAll(page); string(heard) != "last words" || err == nil {
				t.Errorf("heard %q, %v", heard, err)
			}
		})
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

// Who never closes a stream behind the last word holds nobody for ever.
func TestAFarewellIsNotWaitedForWithoutAnEnd(t *testing.T) {
	overOutages(t, func(t *testing.T, _ *outages, _ *Handler, _ *Client, _ *ports) {
		near, far := net.Pipe()
		w := newWire(muxStream{near, 0}, &codec{})
		go io.Copy(io.Discard, far) //nolint:errcheck // it reads and says nothing
		l := newLasting(1 << 10)
		l.parts = true
		if _, err := l.attach(w, lastingAt{Window: 1 << 10}); err != nil {
			t.Fatal(err)
		}
		l.Close() //nolint:errcheck // always nil
		began := time.Now()
		l.send(w)
		if took := time.Since(began); took != partWithin || !l.isOver() {
			t.Errorf("it was waited for %v", took)
		}
		near.Close()
		far.Close()
	})
}
