package terminal

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxSide = 4096 // columns or rows
	// maxClients is how many viewers' input offsets a shell remembers.
	maxClients = 1024
	// inputQueue is how many input frames wait for a shell that does not read.
	inputQueue = 16
	// hangupGrace is how long output may still come after a shell has ended, from programs that it left behind on its
	// terminal.
	hangupGrace = 500 * time.Millisecond
)

// TTY is the program on the far side of a shell, with its terminal.
type TTY interface {
	// Read returns output; it fails once the program has ended and all of its output has been read, or after Close.
	io.Reader
	// Write gives input and may block while the program does not read.
	io.Writer
	Resize(cols, rows int) error
	// Wait waits for the program and returns its exit code, 128 and the signal's number when a signal ended it.
	Wait() int
	// Close hangs up. Blocked reads and writes return.
	Close() error
}

// ShellConfig describes a shell.
type ShellConfig struct {
	TTY        TTY
	Spool      *Spool
	Cols, Rows int // as they are already set on TTY
}

// Shell is a running program whose output goes to a [Spool] and whose input comes from any number of viewers. All
// methods are safe for concurrent use.
type Shell struct {
	tty   TTY
	spool *Spool
	input chan []byte
	done  chan struct{} // closed when the exit code is known

	mu         sync.Mutex // guards what follows
	cols, rows int
	resizes    uint64 // counts changes of size
	exit       *int
	clients    map[string]*client
	clock      uint64 // grows with every use of a client
}

// client is what a shell knows of one viewer's input, across its connections.
type client struct {
	turn     chan struct{} // holds one token; who takes it may hand in input
	accepted atomic.Uint64
	began    atomic.Bool // any input was accepted
	viewers  int         // guarded by Shell.mu
	used     uint64      // guarded by Shell.mu: the shell's clock at the last use
}

// NewShell returns a shell that begins to work with [Shell.Run].
func NewShell(cfg ShellConfig) *Shell {
	return &Shell{
		tty: cfg.TTY, spool: cfg.Spool, cols: cfg.Cols, rows: cfg.Rows,
		input: make(chan []byte, inputQueue), done: make(chan struct{}),
		clients: map[string]*client{},
	}
}

// Run moves output and input until the program has ended and its output is spooled, then closes the TTY and returns the
// exit code. Call it once.
func (s *Shell) Run() int {
	exited := make(chan int, 1)
	drained := make(chan struct{})
	go func() {
		code := s.tty.Wait()
		exited <- code
		select {
		case <-drained:
		case <-time.After(hangupGrace):
		}
		_ = s.tty.Close()
	}()
	stopInput := make(chan struct{})
	inputDone := make(chan struct{})
	go func() {
		defer close(inputDone)
		s.feed(stopInput)
	}()
	_, _ = io.CopyBuffer(struct{ io.Writer }{s.spool}, struct{ io.Reader }{s.tty}, make([]byte, MaxData))
	close(drained)
	code := <-exited
	_ = s.tty.Close()
	close(stopInput)
	<-inputDone

	s.mu.Lock()
	s.exit = &code
	s.mu.Unlock()
	close(s.done)
	s.spool.changes.notify()
	return code
}

// feed gives queued input to the program.
func (s *Shell) feed(stop <-chan struct{}) {
	for {
		select {
		case data := <-s.input:
			_, _ = s.tty.Write(data) // a program that has ended takes no input
		case <-stop:
			return
		}
	}
}

// Done is closed when the exit code is known; the spool is complete then.
func (s *Shell) Done() <-chan struct{} { return s.done }

// State is a shell as it is at one moment.
type State struct {
	Start, End uint64 // bounds of the spool
	Cols, Rows int
	ExitCode   *int // nil while it runs
}

// State returns the shell as it is now.
func (s *Shell) State() State {
	s.mu.Lock()
	st := State{Cols: s.cols, Rows: s.rows, ExitCode: s.exit}
	s.mu.Unlock()
	st.Start, st.End = s.spool.Bounds()
	return st
}

// Resize sets the size of the shell's screen and tells every viewer. A side outside 1 to 4096 is a [*ProtocolError].
func (s *Shell) Resize(cols, rows int) error {
	if cols < 1 || rows < 1 || cols > maxSide || rows > maxSide {
		return broken("a screen cannot have %d columns and %d rows", cols, rows)
	}
	s.mu.Lock()
	same := s.cols == cols && s.rows == rows
	if !same {
		s.cols, s.rows = cols, rows
		s.resizes++
	}
	s.mu.Unlock()
	if same {
		return nil
	}
	err := s.tty.Resize(cols, rows)
	s.spool.changes.notify()
	return err
}

// size returns the screen's size and how often it has changed.
func (s *Shell) size() (cols, rows int, resizes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cols, s.rows, s.resizes
}

func (s *Shell) exitCode() *int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exit
}

// enter returns what is known of the client's input and counts a viewer of it.
func (s *Shell) enter(name string) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.clients[name]
	if !known {
		s.forget()
		c = &client{turn: make(chan struct{}, 1)}
		c.turn <- struct{}{}
		s.clients[name] = c
	}
	s.clock++
	c.viewers, c.used = c.viewers+1, s.clock
	return c
}

func (s *Shell) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.viewers--
}

// forget makes room for one more client at the cost of the one that has been away longest. s.mu is held.
func (s *Shell) forget() {
	if len(s.clients) < maxClients {
		return
	}
	oldest := ""
	for name, c := range s.clients {
		if c.viewers == 0 && (oldest == "" || c.used < s.clients[oldest].used) {
			oldest = name
		}
	}
	delete(s.clients, oldest)
}

// accept takes input that begins at offset, drops what was accepted before, and waits for room. After it the bytes will
// reach the program whatever becomes of the viewer. Input beyond what was accepted would leave a hole and is refused,
// except as a client's first, whose past may be forgotten.
func (s *Shell) accept(ctx context.Context, c *client, offset uint64, data []byte) error {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { c.turn <- struct{}{} }()
	accepted := c.accepted.Load()
	if !c.began.Load() {
		accepted = offset
	}
	if offset > accepted {
		return broken("input at %d leaves a hole after %d", offset, accepted)
	}
	end := offset + uint64(len(data))
	if end <= accepted {
		return nil
	}
	select {
	case s.input <- bytes.Clone(data[accepted-offset:]):
	case <-s.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.began.Store(true)
	c.accepted.Store(end)
	return nil
}
