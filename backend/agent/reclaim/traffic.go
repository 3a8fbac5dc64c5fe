package reclaim

import (
	"encoding/binary"
	"io"
	"net"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// Terminal counts everything that passes a terminal as traffic, and frames of input as a person's.
func (w *Watch) Terminal(id session.ID, stream io.ReadWriteCloser) io.ReadWriteCloser {
	if stream == nil {
		return nil
	}
	return &watchedTerminal{ReadWriteCloser: stream, watch: w, id: id}
}

// App counts what passes an app as traffic.
func (w *Watch) App(id session.ID, conn net.Conn) net.Conn {
	if conn == nil {
		return nil
	}
	return &watchedConn{conn, w, id}
}

// File counts what is read from content as traffic, unless it is of no session.
func (w *Watch) File(id session.ID, content io.ReadCloser) io.ReadCloser {
	if id == "" {
		return content
	}
	return &watchedFile{content, w, id}
}

type watchedFile struct {
	io.ReadCloser
	watch *Watch
	id    session.ID
}

func (f *watchedFile) Read(p []byte) (int, error) { return f.watch.passed(f.id)(f.ReadCloser.Read(p)) }

type watchedConn struct {
	net.Conn
	watch *Watch
	id    session.ID
}

func (c *watchedConn) Read(p []byte) (int, error)  { return c.watch.passed(c.id)(c.Conn.Read(p)) }
func (c *watchedConn) Write(p []byte) (int, error) { return c.watch.passed(c.id)(c.Conn.Write(p)) }

// passed counts traffic if a read or write moved something, and returns its results.
func (w *Watch) passed(id session.ID) func(n int, err error) (int, error) {
	return func(n int, err error) (int, error) {
		if n > 0 {
			w.Seen(id, false)
		}
		return n, err
	}
}

type watchedTerminal struct {
	io.ReadWriteCloser
	watch   *Watch
	id      session.ID
	out, in frames
}

func (t *watchedTerminal) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	if n > 0 && t.out.feed(p[:n], terminal.FrameData) {
		t.watch.shown(t.id)
	}
	return n, err
}

func (t *watchedTerminal) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	if n > 0 && t.in.feed(p[:n], terminal.FrameInput) {
		t.watch.Seen(t.id, true)
	}
	return n, err
}

// frames finds frames of one type, which are a type, four bytes of length and a payload, in a stream split anywhere.
type frames struct {
	head []byte // of the current frame, while incomplete
	left uint32 // bytes of its payload that are still to come
}

// feed reports whether a frame of the type begins in p.
func (f *frames) feed(p []byte, wanted terminal.FrameType) (found bool) {
	const size = 5
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, uint32(len(p)))
			f.left -= n
			p = p[n:]
			continue
		}
		n := min(size-len(f.head), len(p))
		f.head = append(f.head, p[:n]...)
		p = p[n:]
		if len(f.head) == size {
			found = found || terminal.FrameType(f.head[0]) == wanted
			f.left = binary.BigEndian.Uint32(f.head[1:])
			f.head = f.head[:0]
		}
	}
	return found
}
