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
	// maxClients is the maximum number of viewers whose input offsets a shell remembers.
	maxClients = 1024
	// inputQueue is the maximum number of input frames for a shell that does not read.
	inputQueue = 16
	// hangupGrace is how long programs that a shell left in the background may still print after its end.
	hangupGrace = 500 * time.Millisecond
)

// TTY is a program on a terminal.
type TTY interface {
	// Read returns output. It fails once the program has ended and all of its output was read, or after Close.
	io.Reader
	// Write passes input to the program and may block while the program does not read.
	io.Writer
	Resize(cols, rows int) error
	// Wait waits for the program and returns its exit code, or 128 plus the number of the signal that ended it.
	Wait() int
	// Close hangs up. Blocked reads and writes return.
	Close() error
}

// ShellConfig describes a shell.
type ShellConfig struct {
	TTY        TTY
	Spool      *Spool
	Cols, Rows int // the current size of TTY
}

// Shell is a program with a [Spool] for its output and any number of viewers. Methods are safe for concurrent use.
type Shell struct {
	tty   TTY
	spool *Spool
	input chan []byte
	done  chan struct{} // closed when the exit code is known

	mu      sync.Mutex // guards the fields below
	state   State      // without Start and End
	clients map[string]*client
	clock   uint64 // grows with every use of a client
}

// client is one viewer's input, across its connections.
type client struct {
	turn     chan struct{} // has one token; who takes it may pass input
	accepted atomic.Uint64
	began    atomic.Bool // any input was accepted
	viewers  int         // guarded by Shell.mu
	used     uint64      // guarded by Shell.mu: the shell's clock at the last use
}

// NewShell returns a shell; [Shell.Run] makes it work.
func NewShell(cfg ShellConfig) *Shell {
	return &Shell{
		tty: cfg.TTY, spool: cfg.Spool, state: State{Cols: cfg.Cols, Rows: cfg.Rows},
		input: make(chan []byte, inputQueue), done: make(chan struct{}),
		clients: map[string]*client{},
	}
}

// Run copies output and input until the program ends, closes the TTY and returns the exit code. Call it once.
func (s *Shell) Run() int {
	var code int
	var exit, input sync.WaitGroup
	drained, stopInput := make(chan struct{}), make(chan struct{})
	exit.Go(func() {
		code = s.tty.Wait()
		select {
		case <-drained:
		case <-time.After(hangupGrace):
		}
		_ = s.tty.Close()
	})
	input.Go(func() { s.feed(stopInput) })
	_, _ = io.CopyBuffer(struct{ io.Writer }{s.spool}, struct{ io.Reader }{s.tty}, make([]byte, MaxData))
	close(drained)
	exit.Wait()
	close(stopInput)
	input.Wait()

	s.mu.Lock()
	s.state.ExitCode = &code
	s.mu.Unlock()
	close(s.done)
	s.spool.changes.notify()
	return code
}

func (s *Shell) feed(stop <-chan struct{}) {
	for {
		select {
		case data := <-s.input:
			_, _ = s.tty.Write(data) // fails if the program has ended
		case <-stop:
			return
		}
	}
}

// Done is closed when the exit code is known and the spool is complete.
func (s *Shell) Done() <-chan struct{} { return s.done }

// State is the state of a shell.
type State struct {
	Start, End uint64 // bounds of the spool
	Cols, Rows int
	ExitCode   *int // nil while it runs

	resizes uint64 // counts changes of size
}

// State returns the current state.
func (s *Shell) State() State {
	s.mu.Lock()
	now := s.state
	s.mu.Unlock()
	now.Start, now.End = s.spool.Bounds()
	return now
}

// Resize sets the screen's size for all viewers. It fails with a [*ProtocolError] for a side outside 1 to 4096.
func (s *Shell) Resize(cols, rows int) error {
	if cols < 1 || rows < 1 || cols > maxSide || rows > maxSide {
		return broken("a screen cannot have %d columns and %d rows", cols, rows)
	}
	s.mu.Lock()
	same := s.state.Cols == cols && s.state.Rows == rows
	if !same {
		s.state.Cols, s.state.Rows = cols, rows
		s.state.resizes++
	}
	s.mu.Unlock()
	if same {
		return nil
	}
	err := s.tty.Resize(cols, rows)
	s.spool.changes.notify()
	return err
}

// enter returns the client of that name and counts a viewer of it.
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

// forget makes room for one more client by removing the least recently used one. The caller holds s.mu.
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

// accept queues input that begins at offset, without the bytes that were accepted before. Queued bytes reach the
// program even if the viewer disconnects. Input that would leave a hole is refused, except as a client's first, because
// the shell may have forgotten the client.
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
