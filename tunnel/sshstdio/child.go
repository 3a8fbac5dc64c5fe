package sshstdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"slipway/tunnel/askpass"
)

// Times of the end of an ssh.
const (
	endTimeout  = 2 * time.Second // for it to end by itself, then again after a signal
	lastWords   = 3 * time.Second // for its messages to arrive after an end of file
	maxMessages = 16 << 10        // bytes of its last messages that are kept
)

// child is a running ssh in a session of its own, so that it neither gets a terminal's signals nor asks there.
type child struct {
	cmd      *exec.Cmd
	messages *tail
	done     chan struct{} // closed when it has ended
}

// spawn starts ssh with one end of a socket as its input and output and returns the other. Its messages are collected.
func (r *Remote) spawn(args []string, asking *askpass.Questions) (*child, net.Conn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, fmt.Errorf("sshstdio: make a socket pair: %w", err)
	}
	defer theirs.close()
	cmd := exec.Command(r.config.SSH, args...)
	c := &child{cmd: cmd, messages: &tail{limit: maxMessages}, done: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs.in, theirs.out, c.messages
	cmd.Env = askpass.Environment(asking)
	cmd.WaitDelay = endTimeout // a grandchild may keep the messages' pipe open
	askpass.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(explainLocal(nil, "", err), ours.Close())
	}
	go func() {
		_ = cmd.Wait()
		close(c.done)
	}()
	return c, ours, nil
}

// end ends ssh by signals if it does not end by itself, for which it has no time if now. Its input has been closed.
func (c *child) end(now bool) {
	for _, step := range []func(){
		func() {}, func() { askpass.Terminate(c.cmd, false) }, func() { askpass.Terminate(c.cmd, true) }} {
		step()
		wait := endTimeout
		if now {
			wait, now = 0, false
		}
		select {
		case <-c.done:
			return
		case <-time.After(wait):
		}
	}
}

// settle waits for ssh to have ended, at most so long.
func (c *child) settle(most time.Duration) {
	select {
	case <-c.done:
	case <-time.After(most):
	}
}

func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// code is the exit code, -1 while ssh runs or if a signal ended it.
func (c *child) code() int {
	if c.alive() {
		return -1
	}
	return c.cmd.ProcessState.ExitCode()
}

// lastFault is what a reader gets instead of err, the end of the file.
func (c *child) lastFault(err error) error {
	c.settle(lastWords)
	if code := c.code(); code > 0 {
		return faultOf(c.messages.String(), code, false)
	}
	return err
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int

	mu   sync.Mutex // guards kept
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.limit; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

// carrier is the far command's input and output.
type carrier struct {
	net.Conn
	child *child
	ended func() // called once after the end; may be nil

	pending []byte // what came with the mark; only Read uses it after the start
	closed  atomic.Bool
}

// awaitMark waits until the far command is about to start.
func (c *carrier) awaitMark(ctx context.Context, mark string, asking *askpass.Questions) error {
	var refused <-chan struct{}
	if asking != nil {
		refused = asking.Refused()
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
		case <-refused:
		case <-over:
			return
		}
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}()
	rest, err := skipNoise(c.Conn, mark)
	close(over)
	<-watched
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	c.pending = rest
	return c.SetReadDeadline(time.Time{})
}

// Read returns a tunnel.Fault instead of the end of the file when ssh has failed.
func (c *carrier) Read(p []byte) (int, error) {
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if n > 0 || c.closed.Load() {
		return n, err
	}
	if errors.Is(err, syscall.ECONNRESET) { // ssh ended with input unread
		err = io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = c.child.lastFault(err)
	}
	return n, err
}

func (c *carrier) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the connection and, soon after, ssh.
func (c *carrier) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	go func() {
		c.child.end(false)
		if c.ended != nil {
			c.ended()
		}
	}()
	return c.Conn.Close()
}

func (c *carrier) RemoteAddr() net.Addr { return sshAddr{} }
func (c *carrier) LocalAddr() net.Addr  { return sshAddr{} }

type sshAddr struct{}

func (sshAddr) Network() string { return "ssh" }
func (sshAddr) String() string  { return "ssh" }
