// Package tunnel carries many streams over one or two connections of any kind.
//
// A [Tunnel] leads to another machine. [Dial] makes one over the carriers of a [Dialer], and a [Host] accepts them on
// the other side. Either side opens streams of a [Class]: bulk is paced by the delay that it causes, on a carrier of
// its own if possible, so that key strokes do not wait for it. SPEC.md in this folder is the protocol. A [Line] keeps a
// tunnel up.
//
// A [Mux] leads into a container, over a unix socket: one side is the [Opener], the other the [Accepter], and only the
// first may open streams.
//
// Both multiplex with smux. A Mux is one session of it. A Tunnel has one for each carrier, and itself decides what is
// sent next and checks what arrives: the library limits neither the bytes of one stream, nor the streams that a peer
// opens, nor what a frame of a single byte costs, and stops reading for all streams once all of its memory is used.
//
// The library is pinned to 1.5.34. With 1.5.50 eight bulk streams over loopback are a tenth slower. From 1.5.55 on a
// stream that the peer has closed still accepts writes, and from 1.5.58 on closing a session drops what has arrived;
// both share channels between sessions through a pool, which tests in a bubble of package synctest cannot use.
//
// In both each stream has its own window, so that one whose reader has stopped never holds up the others. A heartbeat
// finds a silent peer, and every write to a connection has a deadline. Streams are cheap and end with their connection;
// those of package resume survive its loss.
package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtaci/smux"
)

// Tunnel carries streams to one peer over one or two carriers. Either side may open streams. It ends when its first
// carrier is lost. All methods are safe for concurrent use.
type Tunnel struct {
	cfg  Config
	peer Peer
	agreed
	primary *carrier
	buffers sync.Pool // of *[]byte, of batchQuick bytes each
	measures
	lifetime

	mu           sync.Mutex // guards what follows
	bulk         *carrier   // nil while there is only one
	ours, theirs int        // open streams that this side and the peer opened
	questions
	err error // why the tunnel has ended; nil before

	joining  chan struct{} // closed when the first try for a second carrier is over
	accepted chan *flow
}

type lifetime struct {
	start time.Time
	all   sync.WaitGroup // the goroutines of the carriers
	done  chan struct{}  // closed when the tunnel has ended
	onEnd func()         // called once after that
}

// agreed is the result of the handshake.
type agreed struct {
	version uint8
	dialled bool // this side dialled
	id      tunnelID
	secret  secret
	allowed int // streams that this side may have open
}

// measures are the counters and times of a tunnel.
type measures struct {
	sent, received atomic.Uint64 // bytes on the carriers
	lastHeard      atomic.Int64  // nanoseconds since 1970
	smoothRTT      atomic.Int64  // nanoseconds
	leastRTT       atomic.Int64  // nanoseconds
	grownBy        atomic.Int64  // bytes by which all windows have grown
	lossy, asked   atomic.Int64  // nanoseconds since 1970 until which copies are sent, see [Tunnel.copies]
}

// questions are the pings without an answer, by number.
type questions struct {
	pinged uint64 // the last number
	probes map[uint64]chan struct{}
	pingAt map[uint64]time.Time
}

func newTunnel(c Config, conn net.Conn, peer Peer, version uint8, allowed uint32, dialled bool) *Tunnel {
	t := &Tunnel{
		cfg: c, peer: peer, lifetime: lifetime{start: time.Now(), done: make(chan struct{})},
		agreed:    agreed{version: version, dialled: dialled, allowed: int(min(allowed, 1<<20))},
		questions: questions{probes: map[uint64]chan struct{}{}, pingAt: map[uint64]time.Time{}},
		accepted:  make(chan *flow, c.MaxStreams), joining: make(chan struct{}),
		buffers: sync.Pool{New: func() any {
			b := make([]byte, batchQuick)
			return &b
		}},
	}
	t.lastHeard.Store(t.start.UnixNano())
	t.primary = newCarrier(t, conn, 0)
	return t
}

// run starts the tunnel's goroutines, which end with it.
func (t *Tunnel) run() {
	t.carry(t.primary)
	t.all.Go(t.beat)
}

// carry starts the goroutines of a carrier.
func (t *Tunnel) carry(c *carrier) {
	if err := c.start(); err != nil {
		t.all.Go(func() { t.lose(c, err) })
		return
	}
	t.all.Go(func() {
		if err := c.write(); err != nil {
			t.lose(c, err)
			return
		}
		t.linger(c)
	})
	t.all.Go(func() {
		err := c.read()
		if c == t.primary && errors.Is(err, ErrClosedByPeer) {
			t.awaitBulk()
		}
		t.lose(c, err)
		<-c.pipe.over
	})
}

// Peer returns who is at the other end, as the transport proved it.
func (t *Tunnel) Peer() Peer { return t.peer }

// Done is closed when the tunnel has ended, by either side.
func (t *Tunnel) Done() <-chan struct{} { return t.done }

// Err returns why the tunnel has ended: net.ErrClosed after Close, [ErrClosedByPeer], [ErrSilent], [ErrProtocol] or
// what its carrier failed with. It is nil before.
func (t *Tunnel) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Open opens a stream without waiting for the peer to accept it. It fails with [ErrTooManyStreams], net.ErrClosed once
// the tunnel has ended, or ctx's error. A bulk stream waits up to 2 s for the second carrier.
func (t *Tunnel) Open(ctx context.Context, class Class) (Stream, error) {
	if class < Control || class > Bulk {
		return nil, fmt.Errorf("tunnel: open stream: class %d does not exist", class)
	}
	if err := t.awaitJoin(ctx, class); err != nil {
		return nil, err
	}
	t.mu.Lock()
	carriers := t.carriers()
	switch {
	case t.err != nil:
		t.mu.Unlock()
		return nil, net.ErrClosed
	case t.ours >= t.allowed:
		t.mu.Unlock()
		return nil, ErrTooManyStreams
	}
	t.ours++
	t.mu.Unlock()
	if class != Bulk {
		carriers = carriers[len(carriers)-1:]
	}
	for _, c := range carriers { // the first may be about to be lost
		f, err := c.open(class)
		if err == nil {
			return f, nil
		}
		if errors.Is(err, smux.ErrGoAway) {
			t.lose(c, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ours--
	return nil, net.ErrClosed
}

// awaitJoin lets a bulk stream wait for the first try to get a second carrier.
func (t *Tunnel) awaitJoin(ctx context.Context, class Class) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if class != Bulk || expired(t.joining) {
		return nil
	}
	select {
	case <-t.joining:
	case <-time.After(joinPatience):
	case <-t.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// Accept returns the next stream that the peer opens, net.ErrClosed once the tunnel has ended.
func (t *Tunnel) Accept() (Stream, error) {
	if expired(t.done) { // streams that wait to be accepted have ended with it
		return nil, net.ErrClosed
	}
	select {
	case f := <-t.accepted:
		return f, nil
	case <-t.done:
		return nil, net.ErrClosed
	}
}

// Close sends what was written to the streams and ends the tunnel, its streams and its carriers. It waits for the peer
// for 3 s at most.
func (t *Tunnel) Close() error {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		t.all.Wait()
		return nil
	}
	t.err = net.ErrClosed
	carriers := t.carriers()
	t.mu.Unlock()
	timer := time.AfterFunc(closeTime, func() {
		for _, c := range carriers {
			_ = c.fail(net.ErrClosed)
		}
	})
	t.finish()
	for _, c := range carriers {
		for _, f := range c.all(false) {
			_ = f.CloseWrite()
			f.in.end(net.ErrClosed)
		}
		c.answer(func(c *carrier) { c.bye = true })
	}
	t.all.Wait()
	timer.Stop()
	return nil
}

// carriers returns those that are up, bulk first. The caller holds t.mu.
func (t *Tunnel) carriers() []*carrier {
	if t.bulk == nil {
		return []*carrier{t.primary}
	}
	return []*carrier{t.bulk, t.primary}
}

// linger ends a carrier that has said goodbye: this side stops sending and waits for the peer to end too, since closing
// a connection on which bytes still arrive would discard what was sent last.
func (t *Tunnel) linger(c *carrier) {
	conn := c.conn
	if carrier, ok := conn.(Carrier); ok {
		conn = carrier.Conn
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // where that is impossible the goodbye is enough
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(closeTime)) // the reader closes it at the peer's end
}

// awaitBulk waits for the goodbye of the second carrier, which may be behind much that is still on its way.
func (t *Tunnel) awaitBulk() {
	t.mu.Lock()
	bulk := t.bulk
	t.mu.Unlock()
	if bulk == nil {
		return
	}
	select {
	case <-bulk.lost:
	case <-time.After(closeTime):
	}
}

// lose ends a carrier because of err, and the tunnel with its first carrier.
func (t *Tunnel) lose(c *carrier, err error) {
	err = c.fail(err)
	t.mu.Lock()
	if c != t.primary {
		if t.bulk == c {
			t.bulk = nil
		}
		t.mu.Unlock()
		c.breakAll()
		if errors.Is(err, ErrProtocol) {
			t.lose(t.primary, err)
		}
		return
	}
	if t.err == nil {
		t.err = err
	}
	carriers := t.carriers()
	t.mu.Unlock()
	for _, other := range carriers {
		if other != c && !errors.Is(err, ErrClosedByPeer) {
			_ = other.fail(err)
		}
	}
	t.finish()
	for _, each := range carriers {
		each.breakAll()
	}
}

// finish announces that the tunnel has ended.
func (t *Tunnel) finish() {
	t.mu.Lock()
	first := !expired(t.done)
	if first {
		close(t.done)
	}
	t.mu.Unlock()
	if first && t.onEnd != nil {
		t.onEnd()
	}
}
