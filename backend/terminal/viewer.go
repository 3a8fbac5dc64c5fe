package terminal

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// ackEvery is how many bytes of output one acknowledgement covers.
const ackEvery = 64 << 10

// ViewerConfig describes a viewer.
type ViewerConfig struct {
	Client string                // unique name, the same on each connection
	Offset uint64                // of the first output byte wanted
	Output io.Writer             // receives the shell's output in order
	Gap    func(from, to uint64) // is called when output is missing; may be nil
}

// Viewer is the client's side of the attach protocol. It outlives its connections: after one is lost, attach again at
// [Viewer.Offset] and call Run with the new connection. No byte is lost or repeated in either direction.
type Viewer struct {
	cfg ViewerConfig

	mu         sync.Mutex // guards the fields below
	offset     uint64     // output shown
	base       uint64     // input accepted by the shell
	unaccepted []byte     // input from base on
	sent       uint64     // input sent on this connection
	cols, rows int        // requested size; 0: none
	sized      bool       // the size was sent on this connection
	closed     bool
	work       broadcast // of input, room for input or a size
}

// NewViewer returns a viewer without a connection.
func NewViewer(cfg ViewerConfig) *Viewer { return &Viewer{cfg: cfg, offset: cfg.Offset} }

// Offset returns where to attach next.
func (v *Viewer) Offset() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.offset
}

// Write queues input for the shell, with or without a connection. It blocks while [Window] bytes are not accepted, and
// fails with net.ErrClosed after the shell's exit or Close.
func (v *Viewer) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		changed := v.work.wait()
		n, err := v.buffer(p)
		if err != nil {
			return written, err
		}
		if n == 0 {
			<-changed
			continue
		}
		v.work.notify()
		written, p = written+n, p[n:]
	}
	return written, nil
}

func (v *Viewer) buffer(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return 0, net.ErrClosed
	}
	n := min(len(p), Window-len(v.unaccepted))
	v.unaccepted = append(v.unaccepted, p[:n]...)
	return n, nil
}

// Resize requests another size, again on each connection.
func (v *Viewer) Resize(cols, rows int) {
	v.mu.Lock()
	v.cols, v.rows, v.sized = cols, rows, false
	v.mu.Unlock()
	v.work.notify()
}

// Close makes Write fail.
func (v *Viewer) Close() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.work.notify()
}

// Run uses one connection, attached at [Viewer.Offset], and closes it. It returns the exit code once the shell ends.
func (v *Viewer) Run(ctx context.Context, conn Conn) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var fresh bool
	frame, err := conn.ReadFrame()
	if err == nil {
		fresh, err = v.begin(frame)
	}
	if err != nil {
		return 0, errors.Join(err, conn.Close())
	}
	var sender sync.WaitGroup
	sender.Go(func() { v.send(ctx, conn) })
	code, err := v.receive(conn, fresh)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	cancel(err)
	_ = conn.Close()
	sender.Wait()
	if err == nil {
		v.Close()
	}
	return code, err
}

// begin reads hello and drops accepted input. It reports whether the screen is still empty, so that modes are wanted.
func (v *Viewer) begin(frame Frame) (fresh bool, err error) {
	hello, err := frame.Hello()
	if err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if hello.Accepted > v.base+uint64(len(v.unaccepted)) {
		return false, broken("input up to %d was accepted, but only %d exists", hello.Accepted, v.base)
	}
	v.trim(hello.Accepted)
	v.sent, v.sized = v.base, false
	if v.offset > hello.End {
		v.offset = hello.Next
	}
	v.work.notify()
	return v.offset == v.cfg.Offset, nil
}

// trim drops accepted input. The caller holds v.mu.
func (v *Viewer) trim(accepted uint64) {
	if accepted <= v.base {
		return // the shell may have forgotten this client
	}
	n := min(accepted-v.base, uint64(len(v.unaccepted)))
	v.unaccepted = append(v.unaccepted[:0], v.unaccepted[n:]...)
	v.base += n
}

func (v *Viewer) receive(conn Conn, modesWanted bool) (int, error) {
	acked := v.Offset()
	for {
		frame, err := conn.ReadFrame()
		if err != nil {
			return 0, err
		}
		switch frame.Type {
		case FrameExit:
			return frame.ExitCode(), nil
		case FrameData:
			modesWanted = false
			err = v.show(frame)
			if shown := v.Offset(); err == nil && shown-acked >= ackEvery {
				acked = shown
				_ = conn.WriteFrame(Ack(shown)) // the next read finds a lost connection
			}
		case FrameGap:
			modesWanted = true
			acked, err = v.skip(frame)
		case FrameModes:
			if modesWanted {
				_, err = v.cfg.Output.Write(frame.Payload)
			}
		case FrameTaken:
			v.mu.Lock()
			v.trim(frame.Offset())
			v.mu.Unlock()
			v.work.notify()
		case FrameSize: // a viewer has its own size
		default:
			err = broken("a shell sent frame %q", byte(frame.Type))
		}
		if err != nil {
			return 0, err
		}
	}
}

func (v *Viewer) show(frame Frame) error {
	offset, data, err := frame.Data()
	if err != nil {
		return err
	}
	if shown := v.Offset(); offset != shown {
		return broken("data at %d, but %d comes next", offset, shown)
	}
	n, err := v.cfg.Output.Write(data)
	v.mu.Lock()
	v.offset += uint64(n)
	v.mu.Unlock()
	return err
}

func (v *Viewer) skip(frame Frame) (uint64, error) {
	from, to, err := frame.Gap()
	if err != nil {
		return 0, err
	}
	v.mu.Lock()
	v.offset = to
	v.mu.Unlock()
	if v.cfg.Gap != nil {
		v.cfg.Gap(from, to)
	}
	return to, nil
}

// send sends input and sizes until ctx ends or the connection fails, which the reader reports.
func (v *Viewer) send(ctx context.Context, conn Conn) {
	for {
		changed := v.work.wait()
		frame, some := v.outgoing()
		if !some {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return
			}
		}
		if conn.WriteFrame(frame) != nil {
			return
		}
	}
}

func (v *Viewer) outgoing() (Frame, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cols > 0 && !v.sized {
		v.sized = true
		return sizeFrame(FrameResize, v.cols, v.rows), true
	}
	v.sent = max(v.sent, v.base)
	rest := v.unaccepted[v.sent-v.base:]
	if len(rest) == 0 {
		return Frame{}, false
	}
	frame := dataFrame(FrameInput, v.sent, rest[:min(len(rest), MaxData)])
	v.sent += uint64(len(frame.Payload) - offsetSize)
	return frame, true
}

// Checked checks that frames from the shell of an attachment at offset follow the attach protocol: one hello, then
// every byte of output once and in order. Otherwise it closes conn and fails with a [*ProtocolError].
func Checked(conn Conn, offset uint64) Conn { return &checked{Conn: conn, next: offset} }

type checked struct {
	Conn
	next    uint64 // offset of the next byte of output
	greeted bool
}

func (c *checked) ReadFrame() (Frame, error) {
	frame, err := c.Conn.ReadFrame()
	if err != nil {
		return Frame{}, err
	}
	if err := c.check(frame); err != nil {
		return Frame{}, errors.Join(err, c.Close())
	}
	return frame, nil
}

func (c *checked) check(frame Frame) error {
	if c.greeted != (frame.Type != FrameHello) {
		return broken("frame %q, and a hello is the first frame and no other", byte(frame.Type))
	}
	switch frame.Type {
	case FrameHello:
		hello, err := frame.Hello()
		// The gap or data that follows has the offset of the first byte.
		c.greeted, c.next = true, min(c.next, hello.End)
		return err
	case FrameData:
		offset, data, err := frame.Data()
		if err == nil && offset != c.next {
			err = broken("data at %d, but %d comes next", offset, c.next)
		}
		c.next = offset + uint64(len(data))
		return err
	case FrameGap:
		_, to, err := frame.Gap()
		c.next = to
		return err
	}
	return nil
}
