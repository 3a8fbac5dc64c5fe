package reclaim

import (
	"io"
	"net"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// Terminal notes what goes through a terminal: everything as traffic, and
// frames of input as a person's.
func (w *Watch) Terminal(id session.ID, stream io.ReadWriteCloser) io.ReadWriteCloser {
	if stream == nil {
		return nil
	}
	return &watchedTerminal{ReadWriteCloser: stream, watch: w, id: id}
}

// App notes what goes through an app as traffic.
func (w *Watch) App(id session.ID, conn net.Conn) net.Conn {
	if conn == nil {
		return nil
	}
	return &watchedConn{Conn: conn, watch: w, id: id}
}

// File notes what is read of a session's file, or of one that goes there, as
// traffic. A file that is in no session is nobody's.
func (w *Watch) File(id session.ID, content io.ReadCloser) io.ReadCloser {
	if id == "" {
		return content
	}
	return &watchedFile{ReadCloser: content, watch: w, id: id}
}

type watchedFile struct {
	io.ReadCloser
	watch *Watch
	id    session.ID
}

func (f *watchedFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 {
		f.watch.Seen(f.id, false)
	}
	return n, err
}

type watchedConn struct {
	net.Conn
	watch *Watch
	id    session.ID
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.watch.Seen(c.id, false)
	}
	return n, err
}

func (c *watchedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.watch.Seen(c.id, false)
	}
	return n, err
}

// watchedTerminal follows the frames of the attach protocol in both directions.
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

// frames finds frames of one type in a stream of them that may be split
// anywhere. See package terminal: a type, four bytes of length, the payload.
type frames struct {
	head []byte // of the frame under way, while it is not complete
	left uint32 // bytes of its payload that are to come
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
			f.left = uint32(f.head[1])<<24 | uint32(f.head[2])<<16 | uint32(f.head[3])<<8 | uint32(f.head[4])
			f.head = f.head[:0]
		}
	}
	return found
}
