package terminal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// Attach says who joins a shell and from where.
type Attach struct {
	Offset uint64 // first output byte wanted; beyond the end counts as the end
	Client string // names the viewer across its connections
}

// Serve speaks the attach protocol on stream until the viewer leaves, ctx ends, or the exit frame is sent, which
// returns nil. It closes the stream.
func (s *Shell) Serve(ctx context.Context, stream io.ReadWriteCloser, req Attach) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn := NewConn(stream)
	v := &visit{
		shell: s, conn: conn, client: s.enter(req.Client),
		wake: make(chan struct{}, 1), buffer: make([]byte, offsetSize+MaxData),
	}
	defer s.leave(v.client)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()

	var readers sync.WaitGroup
	readers.Go(func() { cancel(v.read(ctx)) })
	readers.Go(func() {
		if err := v.forward(ctx); err != nil {
			cancel(err)
		}
	})
	err := v.greet(req.Offset)
	if err == nil {
		err = v.write(ctx)
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	_ = conn.Close()
	cancel(err)
	readers.Wait()
	return err
}

// visit is one viewer's connection to a shell. One goroutine writes, one reads, one hands input to the shell: a shell
// that does not read its input holds up neither acknowledgements nor output.
type visit struct {
	shell  *Shell
	conn   Conn
	client *client
	wake   chan struct{} // holds at most one token: something for the writer to do

	// The writer's own.
	buffer  []byte
	next    uint64 // offset of the next data byte
	told    uint64 // input offset of the last ack sent
	resizes uint64 // the size that the viewer knows

	mu      sync.Mutex // guards what follows
	shown   uint64     // offset that the viewer has acknowledged
	sent    uint64     // copy of next for the reader
	pending [][]byte   // input frames' payloads not yet handed on
	waiting int        // bytes in pending
	arrived broadcast  // a frame in pending
}

// poke tells the writer to look again.
func (v *visit) poke() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// greet sends hello and, where output is missing, the gap.
func (v *visit) greet(offset uint64) error {
	start, end := v.shell.spool.Bounds()
	offset = min(offset, end)
	v.next = max(offset, start)
	v.mu.Lock()
	v.shown, v.sent = v.next, v.next
	v.mu.Unlock()
	v.told = v.client.accepted.Load()
	hello := Hello{Start: start, End: end, Next: v.next, Accepted: v.told}
	hello.Cols, hello.Rows, v.resizes = v.shell.size()
	if err := v.conn.WriteFrame(hello.frame()); err != nil {
		return err
	}
	if offset < v.next {
		if err := v.conn.WriteFrame(offsetFrame(FrameGap, offset, v.next)); err != nil {
			return err
		}
	}
	return v.sendModes()
}

// sendModes sends the modes in force at the next byte, if there are any.
func (v *visit) sendModes() error {
	if v.next == 0 {
		return nil
	}
	preamble, err := v.shell.spool.Modes(v.next)
	var gap *GapError
	if errors.As(err, &gap) {
		return nil // the next read meets the same gap and comes back here
	}
	if err != nil || len(preamble) == 0 {
		return err
	}
	return v.conn.WriteFrame(Frame{FrameModes, preamble})
}

// write sends whatever there is to send until the shell has ended.
func (v *visit) write(ctx context.Context) error {
	for {
		changed := v.shell.spool.Changed()
		busy, err := v.step()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if busy {
			continue
		}
		select {
		case <-changed:
		case <-v.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// step sends at most one frame of each kind and reports whether it sent data. io.EOF: the exit frame was sent.
func (v *visit) step() (busy bool, err error) {
	if accepted := v.client.accepted.Load(); accepted != v.told {
		v.told = accepted
		if err := v.conn.WriteFrame(offsetFrame(FrameTaken, accepted)); err != nil {
			return false, err
		}
	}
	cols, rows, resizes := v.shell.size()
	if resizes != v.resizes {
		v.resizes = resizes
		if err := v.conn.WriteFrame(sizeFrame(FrameSize, cols, rows)); err != nil {
			return false, err
		}
	}
	exit := v.shell.exitCode() // before the read: at the end nothing follows it
	room := v.room()
	if room == 0 {
		return false, nil
	}
	n, err := v.shell.spool.ReadAt(v.buffer[offsetSize:][:min(room, MaxData)], v.next)
	var gap *GapError
	if errors.As(err, &gap) {
		return true, v.skip(gap)
	}
	if err != nil {
		return false, err
	}
	if n > 0 {
		return true, v.sendData(n)
	}
	if exit != nil {
		return false, errors.Join(v.conn.WriteFrame(exitFrame(*exit)), io.EOF)
	}
	return false, nil
}

func (v *visit) sendData(n int) error {
	frame := Frame{FrameData, v.buffer[:offsetSize+n]}
	binary.BigEndian.PutUint64(frame.Payload, v.next)
	v.next += uint64(n)
	v.mu.Lock()
	v.sent = v.next
	v.mu.Unlock()
	return v.conn.WriteFrame(frame)
}

// skip tells the viewer what is gone and goes on behind it. What is gone needs no acknowledgement.
func (v *visit) skip(gap *GapError) error {
	if err := v.conn.WriteFrame(offsetFrame(FrameGap, gap.From, gap.To)); err != nil {
		return err
	}
	v.next = gap.To
	v.mu.Lock()
	v.shown, v.sent = gap.To, gap.To
	v.mu.Unlock()
	return v.sendModes()
}

// room is how many bytes may be sent before the viewer acknowledges more.
func (v *visit) room() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(0, Window-int(v.next-v.shown))
}

// read obeys the viewer's frames until the connection ends.
func (v *visit) read(ctx context.Context) error {
	for {
		frame, err := v.conn.ReadFrame()
		if err != nil {
			return err
		}
		switch frame.Type {
		case FrameAck:
			err = v.acknowledge(frame.Offset())
		case FrameInput:
			err = v.enqueue(frame)
		case FrameResize:
			cols, rows := frame.Size()
			err = v.shell.Resize(cols, rows)
			var protocol *ProtocolError
			if err != nil && !errors.As(err, &protocol) {
				err = nil // the program has ended; its last words are still wanted
			}
		default:
			err = broken("a viewer sent frame %q", byte(frame.Type))
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// acknowledge opens the window. Acks never go back, and beyond what was sent there is nothing to acknowledge.
func (v *visit) acknowledge(offset uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if offset > v.sent {
		return broken("ack of %d, but only %d was sent", offset, v.sent)
	}
	if offset > v.shown {
		v.shown = offset
		v.poke()
	}
	return nil
}

// enqueue keeps an input frame for the goroutine that hands it on.
func (v *visit) enqueue(frame Frame) error {
	if _, _, err := frame.Data(); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting += len(frame.Payload)
	if v.waiting > 2*Window {
		return broken("%d bytes of input were sent without waiting", v.waiting)
	}
	v.pending = append(v.pending, bytes.Clone(frame.Payload))
	v.arrived.notify()
	return nil
}

// forward hands pending input to the shell in order, as the shell takes it.
func (v *visit) forward(ctx context.Context) error {
	for {
		arrived := v.arrived.wait()
		payload := v.dequeue()
		if payload == nil {
			select {
			case <-arrived:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		offset, data, err := Frame{FrameInput, payload}.Data()
		if err == nil {
			err = v.shell.accept(ctx, v.client, offset, data)
		}
		if err != nil {
			return err
		}
		v.poke()
	}
}

// dequeue returns the oldest pending payload, nil if there is none.
func (v *visit) dequeue() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.pending) == 0 {
		return nil
	}
	payload := v.pending[0]
	v.pending = v.pending[1:]
	v.waiting -= len(payload)
	return payload
}
