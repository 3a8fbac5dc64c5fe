package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// Attach says who joins a shell and from where.
type Attach struct {
	Offset uint64 // of the first output byte wanted; beyond the end means the end
	Client string // identifies the viewer across its connections
}

// Serve speaks the attach protocol on stream, which it closes. It returns nil after it has sent the exit frame.
func (s *Shell) Serve(ctx context.Context, stream io.ReadWriteCloser, req Attach) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn := NewConn(stream)
	v := &visit{
		shell: s, conn: conn, client: s.enter(req.Client),
		wake: make(chan struct{}, 1), buffer: make([]byte, offsetSize+MaxData),
	}
	defer s.leave(v.client)
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

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

// visit is one viewer's connection to a shell. It has one goroutine each to write, to read and to pass input to the
// shell, so a shell that does not read its input delays neither acknowledgements nor output.
type visit struct {
	shell  *Shell
	conn   Conn
	client *client
	wake   chan struct{} // has a token if the writer has something to do

	// Used by the writer only.
	buffer  []byte
	told    uint64 // input offset of the last ack sent
	resizes uint64 // State.resizes of the last size sent

	mu      sync.Mutex // guards the fields below
	next    uint64     // offset of the next data byte; only the writer changes it
	shown   uint64     // offset that the viewer has acknowledged
	pending [][]byte   // payloads of input frames
	waiting int        // bytes in pending
	arrived broadcast  // of a frame in pending
}

// poke makes the writer check for work.
func (v *visit) poke() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// jump continues the output at offset. What lies before needs no acknowledgement.
func (v *visit) jump(offset uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.next, v.shown = offset, offset
}

// greet sends hello and, if output is missing, the gap.
func (v *visit) greet(offset uint64) error {
	now := v.shell.State()
	offset = min(offset, now.End)
	v.jump(max(offset, now.Start))
	v.told, v.resizes = v.client.accepted.Load(), now.resizes
	hello := Hello{Start: now.Start, End: now.End, Next: v.next, Accepted: v.told, Cols: now.Cols, Rows: now.Rows}
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

func (v *visit) sendModes() error {
	if v.next == 0 {
		return nil
	}
	preamble, err := v.shell.spool.Modes(v.next)
	if _, gap := errors.AsType[*GapError](err); gap {
		return nil // the next read finds the same gap and calls this again
	}
	if err != nil || len(preamble) == 0 {
		return err
	}
	return v.conn.WriteFrame(Frame{FrameModes, preamble})
}

func (v *visit) write(ctx context.Context) error {
	for {
		changed := v.shell.spool.Changed()
		busy, err := v.step()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case busy:
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
	now := v.shell.State() // before the read: no output follows an exit code
	if now.resizes != v.resizes {
		v.resizes = now.resizes
		if err := v.conn.WriteFrame(sizeFrame(FrameSize, now.Cols, now.Rows)); err != nil {
			return false, err
		}
	}
	room := v.room()
	if room == 0 {
		return false, nil
	}
	n, err := v.shell.spool.ReadAt(v.buffer[offsetSize:][:min(room, MaxData)], v.next)
	if gap, ok := errors.AsType[*GapError](err); ok {
		return true, v.skip(gap)
	}
	switch {
	case err != nil:
		return false, err
	case n > 0:
		return true, v.sendData(n)
	case now.ExitCode != nil:
		return false, errors.Join(v.conn.WriteFrame(exitFrame(*now.ExitCode)), io.EOF)
	}
	return false, nil
}

func (v *visit) sendData(n int) error {
	frame := Frame{FrameData, v.buffer[:offsetSize+n]}
	binary.BigEndian.PutUint64(frame.Payload, v.next)
	v.mu.Lock()
	v.next += uint64(n)
	v.mu.Unlock()
	return v.conn.WriteFrame(frame)
}

// skip sends a gap and continues after it.
func (v *visit) skip(gap *GapError) error {
	if err := v.conn.WriteFrame(offsetFrame(FrameGap, gap.From, gap.To)); err != nil {
		return err
	}
	v.jump(gap.To)
	return v.sendModes()
}

// room returns how many bytes may be sent before the viewer acknowledges more.
func (v *visit) room() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(0, Window-int(v.next-v.shown))
}

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
			if _, protocol := errors.AsType[*ProtocolError](err); !protocol {
				err = nil // the program may have ended; its last output is still wanted
			}
		default:
			err = broken("a viewer sent frame %q", byte(frame.Type))
		}
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
	}
}

// acknowledge opens the window. It ignores an ack below an earlier one.
func (v *visit) acknowledge(offset uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if offset > v.next {
		return broken("ack of %d, but only %d was sent", offset, v.next)
	}
	if offset > v.shown {
		v.shown = offset
		v.poke()
	}
	return nil
}

// enqueue queues an input frame for [visit.forward].
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

// forward passes pending input to the shell in order, as fast as the shell accepts it.
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
