package resume

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"time"

	"slipway/tunnel"
)

// Line opens streams through the tunnel that is up, and waits for the next one. A [tunnel.Line] is one.
type Line interface {
	Open(ctx context.Context, class tunnel.Class) (tunnel.Stream, error)
	WaitUp(ctx context.Context) error
}

// resumeWithin is how long one try to resume a stream may take.
const resumeWithin = 30 * time.Second

// dialed is the caller's end of a stream, with its line.
type dialed struct {
	*Stream
	line     Line
	patience time.Duration
	id       [idSize]byte
	began    time.Time
}

// Open opens a stream that is resumed after a cut, if another tunnel is up within patience. ctx bounds only the
// opening, which does not wait and fails as that of line does.
func Open(ctx context.Context, line Line, class tunnel.Class, patience time.Duration) (*Stream, error) {
	raw, err := line.Open(ctx, class)
	if err != nil {
		return nil, err
	}
	d := &dialed{Stream: newStream(raw, class, true), line: line, patience: patience, began: time.Now()}
	_, _ = rand.Read(d.id[:])
	w := newWire(raw)
	d.wire = w
	go d.run(w)
	return d.Stream, nil
}

// greet sends the stream's position.
func (d *dialed) greet(w *wire, try int) error {
	g := greeting{ID: d.id, Patience: d.patience}
	if try > 0 { // includes sleep of the machine, which only the wall clock may count
		g.Age = max(time.Since(d.began), time.Now().Round(0).Sub(d.began.Round(0)), 1)
	}
	d.mu.Lock()
	g.Received, g.Window, g.Begun = d.received(), d.in.window, d.in.begun || d.closed
	d.mu.Unlock()
	return w.write(kindResume, g.encode())
}

// run carries the stream over one wire after another until it is over.
func (d *dialed) run(w *wire) {
	_ = d.greet(w, 0) // a lost wire also ends carry
	var err error
	for err == nil {
		d.carry(w)
		if d.isOver() {
			return
		}
		w, err = d.resume()
	}
	d.finish(err)
}

// resume waits for the next tunnel and resumes the stream there.
func (d *dialed) resume() (*wire, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.patience)
	defer cancel()
	for try := 1; ; try++ {
		if !WaitUp(ctx, d.line, try) {
			return nil, lost(ErrLost)
		}
		w, err := d.again(ctx, try)
		if err == nil || errors.Is(err, ErrForgotten) || errors.Is(err, tunnel.ErrProtocol) {
			return w, err
		}
	}
}

// WaitUp waits until the line is up, after a pause that grows with the number of failed tries. It reports false when
// ctx has ended.
func WaitUp(ctx context.Context, line Line, tries int) bool {
	select {
	case <-time.After(min(time.Duration(tries)*50*time.Millisecond, time.Second)):
	case <-ctx.Done():
		return false
	}
	return line.WaitUp(ctx) == nil && ctx.Err() == nil
}

// again tries once to resume.
func (d *dialed) again(ctx context.Context, try int) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, resumeWithin)
	defer cancel()
	raw, err := d.line.Open(ctx, d.class)
	if err != nil {
		return nil, err
	}
	w := newWire(raw)
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	wrote := d.greet(w, try)
	at, err := w.greeted()
	switch {
	case err != nil:
		err = errors.Join(wrote, err)
	case !stop():
		err = ctx.Err()
	default:
		_, err = d.attach(w, at)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return w, nil
}

// plain is a stream of a tunnel with a buffer of what was read from it.
type plain struct {
	tunnel.Stream
	in io.Reader
}

func (p plain) Read(b []byte) (int, error) { return p.in.Read(b) }

var _ net.Conn = plain{}
