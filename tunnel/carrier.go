package tunnel

import (
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtaci/smux"
)

// Sizes in bytes, and times, of a [carrier].
const (
	batchNear    = 64 << 10  // written at once where the round trip is short
	batchQuick   = 256 << 10 // the most that is where the path is also fast
	batchLarge   = 32 << 10  // a batch that is worth a goroutine of its own
	batchUrgent  = 16 << 10  // of urgent frames written at once
	writeTime    = 15 * time.Second
	maxRefusals  = 1024     // resets of refused streams that wait to be sent
	urgentBurst  = 64 << 10 // that an urgent stream may have in flight unpaced
	urgentGrants = 16 << 10 // consumed by an urgent stream before a grant is sent
)

// carrier is one connection of a tunnel, with the library's session on it. Writers leave their bytes with the stream.
// One goroutine, the sender, has the library write them to the [conduit] by urgency, in turn among streams of equal
// urgency, so that nothing waits behind bulk; then it sends what the library wrote.
type carrier struct {
	t       *Tunnel
	conn    net.Conn
	index   uint32 // 0 carries everything, 1 bulk alone
	session *smux.Session
	pipe    *conduit
	signals signalStream
	wake    chan struct{} // something may have become sendable

	deadline time.Time // of writes; only the goroutine that writes uses it

	mu   sync.Mutex // guards what follows and the sending part of its streams
	gate gate
	pending

	socket socket
	ends
	streamBook

	lastHeard atomic.Int64 // nanoseconds since 1970
}

// ends describes the end of a carrier.
type ends struct {
	err  error         // why; guarded by the carrier's mu
	lost chan struct{} // closed when it has ended
	over chan struct{} // closed when its streams have ended
	know func()        // closes over
}

// streamBook has the streams of a carrier.
type streamBook struct {
	book  sync.Mutex       // guards what follows
	flows map[uint32]*flow // nil once they were all lost
	begun int              // streams of the peer without a class
}

// pending is what a carrier has to send.
type pending struct {
	control       []*flow       // streams with signals to send, each once
	urgent, paced []*flow       // streams with bytes to send, each in one of them once
	refused       []uint32      // streams of the peer to reset
	acks          [2]pendingAck // by carrier
	pong          uint64        // number to answer, if pongDue
	pongDue       bool
	pings         []uint64
	copied        []byte      // copies for the other carrier, or to send if this is the other
	timer         *time.Timer // wakes the sender after a pause
	bye, byeSent  bool
	kernelRate    uint64   // bytes per second that the kernel keeps to; 0: any
	kind          pathKind // that the socket is set to
}

// signalStream is the stream that carries this side's signals.
type signalStream struct {
	*smux.Stream
	id      atomic.Uint32
	allowed allowance
	waiting []byte // signals to be written
}

// pendingAck is the answer to a carrier's last mark.
type pendingAck struct {
	mark uint64
	at   time.Duration // when it arrived, on the tunnel's clock
	due  bool
}

func newCarrier(t *Tunnel, conn net.Conn, index uint32) *carrier {
	c := &carrier{
		t: t, conn: conn, index: index, gate: newGate(t.start), socket: socketOf(conn),
		wake: make(chan struct{}, 1), ends: ends{lost: make(chan struct{}), over: make(chan struct{})},
		streamBook: streamBook{flows: map[uint32]*flow{}},
	}
	c.know = sync.OnceFunc(func() { close(c.over) })
	c.signals.allowed.begin()
	c.lastHeard.Store(time.Now().UnixNano())
	return c
}

func (c *carrier) start() error {
	config := smux.DefaultConfig()
	config.Version = frameVersion
	config.KeepAliveDisabled = true // see beat
	config.MaxFrameSize = MaxFrame
	config.MaxStreamBuffer = streamWindow              // our grants say how much may come
	config.MaxReceiveBuffer = math.MaxInt32 - MaxFrame // which may be read before the library counts it
	c.pipe = newConduit(c)
	side := smux.Server
	if c.t.dialled {
		side = smux.Client
	}
	var err error
	if c.session, err = side(c.pipe, config); err != nil {
		return fmt.Errorf("tunnel: %w", err)
	}
	if c.signals.Stream, err = c.session.OpenStream(); err != nil {
		return c.pipe.cause(err)
	}
	c.signals.id.Store(c.signals.ID())
	return nil
}

func (c *carrier) open(class Class) (*flow, error) {
	c.mu.Lock() // so that streams begin in the order of their numbers, each with its class
	defer c.mu.Unlock()
	if c.err != nil || c.byeSent {
		return nil, net.ErrClosed
	}
	s, err := c.session.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("tunnel: open stream: %w", c.pipe.cause(err))
	}
	f := newFlow(c, s.ID(), true)
	f.in.stream, f.class, f.counted = s, class, true
	c.book.Lock()
	defer c.book.Unlock()
	if c.flows == nil {
		return nil, net.ErrClosed
	}
	c.flows[f.id] = f
	c.due(f, dueOpen)
	return f, nil
}

// answer calls change with c.mu held and wakes the sender.
func (c *carrier) answer(change func(*carrier)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
	notify(c.wake)
}

// fail ends the carrier and returns the error that ended it first.
func (c *carrier) fail(err error) error {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
		close(c.lost)
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	err = c.err
	c.mu.Unlock()
	notify(c.wake)
	_ = c.session.Close()
	_ = c.conn.Close()
	return err
}

// begin registers a stream of the peer, whose class is still to come.
func (c *carrier) begin(id uint32) error {
	c.book.Lock()
	defer c.book.Unlock()
	if c.flows == nil {
		return nil
	}
	if c.begun++; c.begun > c.t.cfg.MaxStreams+maxRefusals {
		return fmt.Errorf("%w: a flood of streams", ErrProtocol)
	}
	c.flows[id] = newFlow(c, id, false)
	return nil
}

// find returns a stream of this carrier, nil if there is none.
func (c *carrier) find(id uint32) *flow {
	c.book.Lock()
	defer c.book.Unlock()
	return c.flows[id]
}

func (c *carrier) drop(f *flow) {
	c.book.Lock()
	defer c.book.Unlock()
	if c.flows[f.id] == f {
		delete(c.flows, f.id)
	}
}

// all returns the streams. If they are lost, no others are registered.
func (c *carrier) all(lost bool) []*flow {
	c.book.Lock()
	defer c.book.Unlock()
	all := slices.Collect(maps.Values(c.flows))
	if lost {
		c.flows = nil
	}
	return all
}
