package sshstdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Times of the end of an ssh.
const (
	endTimeout  = 2 * time.Second // for it to end by itself, then once more by a signal
	lastWords   = 3 * time.Second // for its messages to arrive behind an end of file
	maxMessages = 16 << 10        // bytes of its messages that are kept, the last ones
)

// child is a running ssh in a session of its own, so that neither a terminal's signals nor its questions concern it.
type child struct {
	cmd      *exec.Cmd
	messages *tail
	done     chan struct{} // closed when it has ended
	err      error         // of Wait; read after done
}

// launch starts ssh with the given arguments. Its messages are collected.
func (r *Remote) launch(args []string, asking *questions, stdin io.Reader, stdout io.Writer) (*child, error) {
	cmd := exec.Command(r.config.SSH, args...)
	messages := &tail{limit: maxMessages}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, messages
	cmd.Env = environment("", "")
	if asking != nil {
		cmd.Env = environment(r.config.Askpass, asking.path)
	}
	cmd.WaitDelay = endTimeout // a grandchild may keep the messages' pipe open
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, explainLocal(nil, "", err)
	}
	c := &child{cmd: cmd, messages: messages, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// end makes ssh end: by itself when its input has been closed, unless there is no time for that, else by a signal.
func (c *child) end(now bool) {
	for _, step := range []func(){func() {}, func() { terminate(c.cmd, false) }, func() { terminate(c.cmd, true) }} {
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

// exitCode is ssh's, or -1 if it ended by a signal. It is read after done.
func (c *child) exitCode() int {
	if exit, ok := errors.AsType[*exec.ExitError](c.err); ok {
		return exit.ExitCode()
	}
	if c.err != nil {
		return -1
	}
	return 0
}

// environment is this process's, without what would let ssh ask where nobody looks, and with our askpass program if
// there is one.
func environment(askpass, socket string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", askpassVariable:
		default:
			env = append(env, entry)
		}
	}
	if askpass == "" {
		return append(env, "SSH_ASKPASS_REQUIRE=never")
	}
	if os.Getenv("DISPLAY") == "" {
		env = append(env, "DISPLAY=:0") // before OpenSSH 8.4 nothing is asked without one
	}
	return append(env, "SSH_ASKPASS="+askpass, "SSH_ASKPASS_REQUIRE=force", askpassVariable+"="+socket)
}

// spawn starts ssh with one end of a socket as its input and output and returns the other.
func (r *Remote) spawn(args []string, asking *questions) (*child, net.Conn, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, nil, fmt.Errorf("sshstdio: make a socket pair: %w", err)
	}
	c, err := r.launch(args, asking, theirs.in, theirs.out)
	theirs.close()
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return c, ours, nil
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int

	mu   sync.Mutex // guards kept
	kept []byte
}

// Write implements io.Writer and never fails.
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

	pending []byte // what came with the mark; only Read touches it after the start
	closing sync.Once
	closed  bool // guarded by mu
	mu      sync.Mutex
}

// awaitMark returns once the far command is about to start.
func (c *carrier) awaitMark(ctx context.Context, mark string, asking *questions) error {
	var refused <-chan struct{}
	if asking != nil {
		refused = asking.refused
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

// Read reads what the far command writes. When ssh has failed it returns a tunnel.Fault that says why rather than the
// end of the file.
func (c *carrier) Read(p []byte) (int, error) {
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if n > 0 || c.isClosed() {
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

func (c *carrier) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// CloseWrite ends this side's bytes.
func (c *carrier) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the connection and, soon after, ssh.
func (c *carrier) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		err = c.Conn.Close()
		go func() {
			c.child.end(false)
			if c.ended != nil {
				c.ended()
			}
		}()
	})
	return err
}

// RemoteAddr and LocalAddr say no more than that it is ssh.
func (c *carrier) RemoteAddr() net.Addr { return sshAddr{} }

// LocalAddr implements net.Conn.
func (c *carrier) LocalAddr() net.Addr { return sshAddr{} }

type sshAddr struct{}

func (sshAddr) Network() string { return "ssh" }
func (sshAddr) String() string  { return "ssh" }
