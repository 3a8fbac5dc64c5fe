package router

import (
	"bufio"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// conn is a connection to a replica.
type conn struct {
	net.Conn
	reader   *bufio.Reader
	replica  *replica
	patience time.Duration // how long a read waits; 0: as the deadline that is set
	silence  time.Duration // how long a write waits
	head     int           // bytes that may still be read of the head of an answer; negative: it was read
	got      int64         // bytes read for the current request
}

// longestHead is the most bytes that the head of an answer may have.
const longestHead = 64 << 10

var errLongHead = errors.New("the head of the answer is too long")

func newConn(c net.Conn, replica *replica) *conn {
	one := &conn{Conn: c, replica: replica, head: -1}
	one.reader = bufio.NewReader(one)
	return one
}

// begin prepares the connection for a request.
func (c *conn) begin(limits Limits) {
	c.patience, c.silence, c.head, c.got = limits.FirstByte, limits.Silence, longestHead, 0
}

// headRead sets the limits for the body of an answer.
func (c *conn) headRead(limits Limits) { c.patience, c.head = limits.Silence, -1 }

func (c *conn) Read(p []byte) (int, error) {
	if c.head == 0 {
		return 0, errLongHead
	}
	if c.patience > 0 {
		if err := c.Conn.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
			return 0, err
		}
	}
	if c.head > 0 {
		p = p[:min(len(p), c.head)]
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.got += int64(n)
		c.replica.moved.Store(time.Now().UnixNano())
	}
	if c.head > 0 {
		c.head -= n
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.replica.moved.Store(time.Now().UnixNano())
	}
	return n, err
}

// lot keeps connections for the next plain request, for as long as servers can be expected to keep them. Each is
// watched, so that one that the server closes is not used.
type lot struct {
	mu     sync.Mutex // guards parked
	parked []*parked  // the most recent last
}

type parked struct {
	*conn
	done  chan struct{} // closed when nothing reads from the connection
	alive bool          // set before done is closed
}

const (
	longestParked = 2 * time.Second
	mostParked    = 32
)

// put keeps a connection, on which nothing is under way, or closes it.
func (l *lot) put(c *conn) {
	c.patience = 0
	one := &parked{conn: c, done: make(chan struct{})}
	l.mu.Lock()
	full := len(l.parked) == mostParked || c.SetReadDeadline(time.Now().Add(longestParked)) != nil
	if !full {
		l.parked = append(l.parked, one)
	}
	l.mu.Unlock()
	if full {
		c.Close()
		return
	}
	go l.watch(one)
}

// watch ends when take interrupts it, the time is over, or the server closes the connection or sends anything.
func (l *lot) watch(one *parked) {
	_, err := one.reader.Peek(1)
	one.alive = timedOut(err)
	if l.remove(one) {
		one.Close()
	}
	close(one.done)
}

// remove reports false if the connection was taken before.
func (l *lot) remove(one *parked) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.parked, one)
	if at < 0 {
		return false
	}
	l.parked = slices.Delete(l.parked, at, at+1)
	return true
}

// take returns the connection that was used last, or nil.
func (l *lot) take() *conn {
	for {
		l.mu.Lock()
		last := len(l.parked) - 1
		if last < 0 {
			l.mu.Unlock()
			return nil
		}
		one := l.parked[last]
		l.parked = slices.Delete(l.parked, last, last+1)
		l.mu.Unlock()
		err := one.SetReadDeadline(time.Unix(1, 0))
		if err != nil {
			one.Close()
		}
		<-one.done
		if one.alive && err == nil {
			return one.conn
		}
		one.Close()
	}
}
