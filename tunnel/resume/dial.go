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

// dialed is a stream with the line that it is resumed over.
type dialed struct {
	*Stream
	line     Line
	patience time.Duration
	id       [idSize]byte
	began    time.Time
}

// Open opens a stream that is resumed when its tunnel is cut, if another one is up within patience. ctx bounds only the
// opening, which fails as that of line does and waits for nothing.
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

// greet says where the stream is.
func (d *dialed) greet(w *wire, try int) error {
	g := greeting{ID: d.id, Patience: d.patience}
	if try > 0 { // time asleep counts, and not every clock counts it
		g.Age = max(time.Since(d.began), time.Now().Round(0).Sub(d.began.Round(0)), 1)
	}
	d.mu.Lock()
	g.Received, g.Window, g.Begun = d.received(), d.in.window, d.in.begun || d.closed
	d.mu.Unlock()
	return w.write(kindResume, g.encode())
}

// run has the stream run over one wire after another until it is over.
func (d *dialed) run(w *wire) {
	_ = d.greet(w, 0) // a wire that is lost shows in what follows
	for {
		d.carry(w)
		if d.isOver() {
			return
		}
		next, err := d.resume()
		if err != nil {
			d.finish(err)
			return
		}
		w = next
	}
}

// resume waits for the next tunnel and goes on there.
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

// WaitUp waits until the line is up, and first the longer, the more tries have failed although it was. It reports false
// when ctx has ended.
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
	err = d.greet(w, try)
	var at greeting
	if answer, failed := w.greeted(); failed == nil {
		at, err = answer, nil
	} else {
		err = errors.Join(err, failed)
	}
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err == nil {
		_, err = d.attach(w, at)
	}
	if err != nil {
		_ = raw.Close() // it is of no use
		return nil, err
	}
	return w, nil
}

// plain is a stream of a tunnel of which something was read already.
type plain struct {
	tunnel.Stream
	in io.Reader
}

func (p plain) Read(b []byte) (int, error) { return p.in.Read(b) }

var _ net.Conn = plain{}
