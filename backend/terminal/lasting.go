package terminal

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// Redial opens the next connection of a [Lasting], attached at offset. It may
// wait as long as ctx lives; an error of its own ends the Lasting.
type Redial func(ctx context.Context, offset uint64) (Conn, error)

// Lasting is a [Conn] of the attach protocol that outlives the connections
// below it. Whoever reads and writes it sees one attachment: one hello, every
// byte of output once and in order, and input that is taken once, although
// connections are lost and made anew in between. A connection that ends in
// good order, with io.EOF, ends it too.
type Lasting struct {
	redial Redial
	life   func() context.Context
	cancel context.CancelFunc

	// The reader's own.
	conn   Conn
	offset uint64  // of the next output byte
	ready  []Frame // to be returned before anything is read
	modes  bool    // modes are wanted: the viewer's screen is not up to date
	first  bool    // no hello was passed on yet
	cols   int     // the size that the viewer knows
	rows   int
	unsend func() // ends the sender of conn and waits for it; nil: there is none

	mu      sync.Mutex // guards what follows
	now     Conn       // conn, for Close
	closed  bool
	based   bool   // base is known
	base    uint64 // input accepted by the shell
	pending []byte // input from base on
	sent    uint64 // input sent on this connection
	shown   uint64 // output that the viewer has acknowledged
	acked   uint64 // what of it was passed on
	size    *Frame // the newest resize
	sized   bool   // it was sent on this connection
	broken  error  // what the viewer did against the protocol
	work    broadcast
}

var _ Conn = (*Lasting)(nil)

// NewLasting makes a first connection, attached at offset, last. ctx is its life.
func NewLasting(ctx context.Context, first Conn, offset uint64, redial Redial) *Lasting {
	ctx, cancel := context.WithCancel(ctx)
	return &Lasting{redial: redial, life: func() context.Context { return ctx }, cancel: cancel,
		conn: first, now: first, offset: offset, modes: true, first: true, sized: true}
}

func (l *Lasting) ReadFrame() (Frame, error) {
	for {
		if len(l.ready) > 0 {
			frame := l.ready[0]
			l.ready = l.ready[1:]
			return frame, nil
		}
		frame, err := l.conn.ReadFrame()
		if err == nil {
			pass, err := l.take(frame)
			if err != nil {
				return Frame{}, errors.Join(err, l.Close())
			}
			if pass {
				return frame, nil
			}
			continue
		}
		var against *ProtocolError
		if errors.Is(err, io.EOF) || errors.As(err, &against) || l.life().Err() != nil {
			l.rest()
			return Frame{}, l.cause(err)
		}
		if err := l.again(err); err != nil {
			return Frame{}, l.cause(err)
		}
	}
}

// cause is what the viewer did wrong, if it did, else err.
func (l *Lasting) cause(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.broken != nil:
		return l.broken
	case l.closed:
		return net.ErrClosed
	}
	return err
}

// take notes what a frame says and reports whether the viewer is to have it.
func (l *Lasting) take(frame Frame) (pass bool, err error) {
	switch frame.Type {
	case FrameHello:
		return l.greeted(frame)
	case FrameData:
		offset, data, err := frame.Data()
		if err != nil {
			return false, err
		}
		if offset != l.offset && !l.first {
			return false, broken("data at %d, but %d comes next", offset, l.offset)
		}
		l.offset, l.modes = offset+uint64(len(data)), false
	case FrameGap:
		_, to, err := frame.Gap()
		if err != nil {
			return false, err
		}
		l.offset, l.modes = to, true
	case FrameModes:
		return l.modes, nil
	case FrameTaken:
		l.accept(frame.Offset())
	case FrameSize:
		l.cols, l.rows = frame.Size()
	}
	return true, nil
}

// greeted takes the hello of a connection. The first goes to the viewer; of a
// later one it learns what has changed.
func (l *Lasting) greeted(frame Frame) (pass bool, err error) {
	hello, err := frame.Hello()
	switch {
	case err != nil:
		return false, err
	case l.unsend != nil:
		return false, broken("a second hello on one connection")
	}
	pass, l.first = l.first, false
	if pass {
		// A gap or data at next says where the first byte is.
		l.offset = min(l.offset, hello.End)
	} else {
		if hello.End < l.offset {
			return false, broken("output up to %d was sent, but only %d exists", l.offset, hello.End)
		}
		if hello.Cols != l.cols || hello.Rows != l.rows {
			l.ready = append(l.ready, sizeFrame(FrameSize, hello.Cols, hello.Rows))
		}
		if l.accept(hello.Accepted) {
			l.ready = append(l.ready, offsetFrame(FrameTaken, hello.Accepted))
		}
	}
	l.cols, l.rows = hello.Cols, hello.Rows
	l.begin(hello)
	return pass, nil
}

// begin sends what is to be sent on the connection that has greeted.
func (l *Lasting) begin(hello Hello) {
	l.mu.Lock()
	if !l.based {
		l.based, l.base = true, hello.Accepted
	}
	l.sent, l.sized = l.base, l.size == nil
	l.acked = max(l.shown, hello.Next)
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(l.life())
	conn, done := l.conn, make(chan struct{})
	go func() {
		defer close(done)
		l.send(ctx, conn)
	}()
	l.unsend = func() { cancel(); <-done }
}

// accept forgets input that the shell has and reports whether any was new.
func (l *Lasting) accept(accepted uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.based || accepted <= l.base {
		return false // also a shell that has forgotten this client
	}
	n := min(accepted-l.base, uint64(len(l.pending)))
	l.pending = append(l.pending[:0], l.pending[n:]...)
	l.base = accepted
	l.sent = max(l.sent, l.base)
	l.work.notify()
	return true
}

// rest ends the connection and its sender.
func (l *Lasting) rest() {
	_ = l.conn.Close()
	if l.unsend != nil {
		l.unsend()
		l.unsend = nil
	}
}

// again replaces a connection that was lost.
func (l *Lasting) again(lost error) error {
	l.rest()
	conn, err := l.redial(l.life(), l.offset)
	if err != nil {
		return errors.Join(err, lost)
	}
	l.mu.Lock()
	l.now = conn
	closed := l.closed
	l.mu.Unlock()
	if closed {
		_ = conn.Close()
	}
	l.conn, l.modes = conn, l.first
	return nil
}

// WriteFrame implements [Conn]: it takes what the viewer says, with or without
// a connection.
func (l *Lasting) WriteFrame(frame Frame) error {
	if err := check(frame.Type, len(frame.Payload)); err != nil {
		return l.refuse(err)
	}
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	switch frame.Type {
	case FrameInput:
		if err := l.buffer(frame); err != nil {
			return l.refuse(err)
		}
	case FrameAck:
		l.mu.Lock()
		l.shown = max(l.shown, frame.Offset())
		l.mu.Unlock()
	case FrameResize:
		l.mu.Lock()
		l.size, l.sized = &Frame{Type: FrameResize, Payload: append([]byte(nil), frame.Payload...)}, false
		l.mu.Unlock()
	default:
		return l.refuse(broken("a viewer sent frame %q", byte(frame.Type)))
	}
	l.work.notify()
	return nil
}

// refuse ends everything because the viewer broke the rules.
func (l *Lasting) refuse(err error) error {
	l.mu.Lock()
	l.broken = err
	l.mu.Unlock()
	return errors.Join(err, l.Close())
}

// buffer keeps input until the shell has it.
func (l *Lasting) buffer(frame Frame) error {
	offset, data, err := frame.Data()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.based {
		l.based, l.base, l.sent = true, offset, offset
	}
	end := l.base + uint64(len(l.pending))
	if offset > end {
		return broken("input at %d, but %d comes next", offset, end)
	}
	if known := end - offset; known < uint64(len(data)) {
		l.pending = append(l.pending, data[known:]...)
	}
	if len(l.pending) > 2*Window {
		return broken("more than %d bytes of input wait", 2*Window)
	}
	return nil
}

// send passes on what the viewer says over one connection, until ctx ends or
// the connection fails, which the reader finds out by itself.
func (l *Lasting) send(ctx context.Context, conn Conn) {
	sendAll(ctx, conn, l.work.wait, l.outgoing)
}

func (l *Lasting) outgoing() (Frame, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sized {
		l.sized = true
		return *l.size, true
	}
	if l.shown > l.acked {
		l.acked = l.shown
		return offsetFrame(FrameAck, l.shown), true
	}
	rest := l.pending[l.sent-l.base:]
	if len(rest) == 0 {
		return Frame{}, false
	}
	frame := dataFrame(FrameInput, l.sent, rest[:min(len(rest), MaxData)])
	l.sent += uint64(len(frame.Payload) - offsetSize)
	return frame, true
}

func (l *Lasting) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	now := l.now
	l.mu.Unlock()
	l.cancel()
	return now.Close()
}
