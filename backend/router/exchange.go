package router

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"slipway/tunnel/nonblock"
)

// exchange is one request to one replica, and its answer.
type exchange struct {
	conn   *conn
	answer *http.Response
	upload *upload     // nil: the router has the whole body
	sent   chan error  // gets one value when the request is written
	stop   func() bool // reports false if the end of the context closed the connection
}

// connect opens a connection, or takes one that was used before if the request may use it.
func (r *Router) connect(ctx context.Context, one *replica, limits Limits, own bool) (*conn, error) {
	if !own {
		if c := one.parked.take(); c != nil {
			return c, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Connect)
	defer cancel()
	c, err := r.config.Dial(ctx, one.id, one.port)
	if err != nil {
		return nil, err
	}
	return newConn(nonblock.Conn(c), one), nil
}

// longestWhole is the longest body, in bytes, that the buffers of every connection take whole, so that writing it waits
// for nobody.
const longestWhole = 16 << 10

// send writes a request while it reads the head of the answer, because a server may answer before it read everything.
// The end of ctx closes the connection. Whoever gets an exchange finishes it, also one with an error.
func (r *Router) send(ctx context.Context, c *conn, out *http.Request, limits Limits) (*exchange, error) {
	c.begin(limits)
	x := &exchange{conn: c, sent: make(chan error, 1)}
	x.upload, _ = out.Body.(*upload)
	x.stop = context.AfterFunc(ctx, func() { c.Close() })
	if x.upload == nil && out.ContentLength <= longestWhole {
		x.sent <- r.write(c, out)
	} else {
		go func() {
			err := r.write(c, out)
			if x.upload != nil && x.upload.err != nil {
				c.Close() // the replica waits for the rest, which does not come
			}
			x.sent <- err
		}()
	}
	var err error
	if x.answer, err = readHead(c.reader, out); err == nil { //nolint:bodyclose // finish closes the connection
		c.headRead(limits)
	}
	return x, err
}

func (r *Router) write(c *conn, out *http.Request) error {
	w := r.writers.Get().(*bufio.Writer)
	w.Reset(c)
	err := out.Write(w)
	if err == nil {
		err = w.Flush()
	}
	w.Reset(io.Discard)
	r.writers.Put(w)
	return err
}

// readHead reads the head of an answer, and skips interim ones.
func readHead(reader *bufio.Reader, out *http.Request) (*http.Response, error) {
	for {
		answer, err := http.ReadResponse(reader, out)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= http.StatusOK || answer.StatusCode == http.StatusSwitchingProtocols {
			return answer, nil
		}
	}
}

// longestWrite is how long the end of an answer waits for the end of its request, which was read before it.
const longestWrite = 50 * time.Millisecond

// finish ends the exchange. The connection is kept for another request only if the whole answer was read.
func (x *exchange) finish(reuse bool) {
	if open := x.stop(); reuse && open && !x.answer.Close && x.conn.reader.Buffered() == 0 && x.written() {
		x.conn.replica.parked.put(x.conn)
		return
	}
	_ = x.settle()
}

// written reports whether the whole request was sent.
func (x *exchange) written() bool {
	timer := time.NewTimer(longestWrite)
	defer timer.Stop()
	select {
	case err := <-x.sent:
		x.sent <- err
		return err == nil
	case <-timer.C:
		return false
	}
}

// settle closes the connection, waits until nothing sends the request, and returns why the client's body ended early.
func (x *exchange) settle() error {
	x.conn.Close()
	if x.upload != nil && len(x.sent) == 0 {
		x.upload.quit()
	}
	x.sent <- <-x.sent
	if x.upload == nil {
		return nil
	}
	return x.upload.err
}

var errTooLarge = errors.New("the body is longer than allowed")

// upload is the body of a request that is read from the client while it is sent. A silent client ends it.
type upload struct {
	begun   bytes.Reader // what was read before
	body    io.Reader
	control *http.ResponseController
	silence time.Duration
	most    int64 // bytes
	err     error // why it ended early; read it when the request was sent
	n       int64 // bytes read so far
	ended   atomic.Bool
}

func (u *upload) Read(p []byte) (int, error) {
	if u.begun.Len() > 0 {
		return u.begun.Read(p)
	}
	_ = u.control.SetReadDeadline(time.Now().Add(u.silence)) // a connection without deadlines has no limit
	if u.ended.Load() {
		return 0, net.ErrClosed
	}
	n, err := u.body.Read(p)
	if u.n += int64(n); u.n > u.most {
		n, err = 0, errTooLarge
	}
	if err == nil {
		return n, nil
	}
	_ = u.control.SetReadDeadline(time.Time{})
	if !errors.Is(err, io.EOF) && !u.ended.Load() {
		u.err = err
	}
	return n, err
}

// quit ends a Read that waits for the client, and all later ones, also of other requests on the client's connection.
func (u *upload) quit() {
	u.ended.Store(true)
	_ = u.control.SetReadDeadline(time.Unix(1, 0))
}

// Close leaves the body to the server of the client's connection.
func (u *upload) Close() error { return nil }

// timedOut reports whether an error is a deadline that passed.
func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
