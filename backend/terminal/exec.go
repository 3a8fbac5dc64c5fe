package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// Process is a command that [ServeExec] connects to its caller.
type Process interface {
	// Stdin is nil where the command has none.
	Stdin() io.WriteCloser
	// Stdout and Stderr end when the command has ended and all is read.
	Stdout() io.Reader
	Stderr() io.Reader
	// Signal sends a signal, by its Linux number, to the command and all that it started.
	Signal(number int) error
	// Wait returns the exit code; 128 and the signal's number when a signal ended it. It may be called more than once.
	Wait() int
	// Kill ends the command and whatever it started, politely first. It does not wait for the end.
	Kill()
}

// ServeExec speaks the exec protocol on stream until the command has ended or the caller leaves, which ends the
// command. It closes the stream.
func ServeExec(ctx context.Context, stream io.ReadWriteCloser, p Process) error {
	conn := NewConn(stream)
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		p.Kill()
		_ = conn.Close()
	})
	stdin := newStdin(p.Stdin(), func(total uint64) {
		_ = conn.WriteFrame(offsetFrame(FrameTaken, total)) // the reader sees a lost connection
	})
	var readers, pumps sync.WaitGroup
	readers.Go(func() {
		err := readExec(conn, p, stdin)
		stdin.abandon()
		cancel(err)
	})
	var failures [2]error
	for i, output := range [...]struct {
		kind FrameType
		from io.Reader
	}{{FrameData, p.Stdout()}, {FrameStderr, p.Stderr()}} {
		pumps.Go(func() {
			failures[i] = pump(conn, output.kind, output.from)
			if failures[i] != nil {
				cancel(failures[i])
			}
		})
	}
	pumps.Wait()
	code := p.Wait()
	left := !stop()
	err := errors.Join(failures[:]...)
	if left {
		err = context.Cause(ctx)
	} else if err == nil {
		err = conn.WriteFrame(exitFrame(code))
	}
	_ = conn.Close()
	stdin.abandon()
	readers.Wait()
	return err
}

// pump sends output as frames of kind until it ends.
func pump(conn Conn, kind FrameType, from io.Reader) error {
	if from == nil {
		return nil
	}
	buffer := make([]byte, MaxData)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if err := conn.WriteFrame(Frame{kind, buffer[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the command's output: %w", err)
		}
	}
}

// readExec obeys the caller's frames until the connection ends.
func readExec(conn Conn, p Process, stdin *stdin) error {
	for {
		frame, err := conn.ReadFrame()
		if err != nil {
			return err
		}
		switch frame.Type {
		case FrameInput:
			stdin.write(frame.Payload)
		case FrameClose:
			stdin.finish()
		case FrameSignal:
			if err := p.Signal(int(frame.Payload[0])); err != nil {
				continue // it has ended; its exit code is on the way
			}
		default:
			return broken("a caller sent frame %q", byte(frame.Type))
		}
	}
}

// stdin hands input to a command from a goroutine of its own, so that a command that does not read holds up no signal.
// A caller that minds its window is never held up.
type stdin struct {
	change broadcast

	mu      sync.Mutex // guards what follows
	waiting []byte     // what the next swap hands over
	held    int        // bytes that were handed over and not taken yet
	closing bool       // close once everything is taken
	gone    bool       // nothing takes input any more

	to io.WriteCloser // nil: the command has no stdin
}

// newStdin tells taken how many bytes the command has taken so far: at the latest after every [takenStep] bytes, and
// when nothing more waits.
func newStdin(to io.WriteCloser, taken func(uint64)) *stdin {
	s := &stdin{to: to, gone: to == nil}
	if to != nil {
		go s.feed(taken)
	}
	return s
}

// feed writes what waits until the input is closed, abandoned or refused.
func (s *stdin) feed(taken func(uint64)) {
	defer s.abandon()
	var total uint64
	var data []byte
	for {
		changed := s.change.wait()
		var done bool
		data, done = s.swap(data)
		switch {
		case len(data) > 0:
			for part := range slices.Chunk(data, takenStep) {
				if _, err := s.to.Write(part); err != nil {
					return
				}
				total += uint64(len(part))
				s.took(len(part))
				taken(total)
			}
		case done:
			return
		default:
			<-changed
		}
	}
}

// swap hands over all that waits and gets an empty buffer to gather more in.
func (s *stdin) swap(empty []byte) (data []byte, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, s.waiting = s.waiting, empty[:0]
	s.held = len(data)
	return data, s.gone || s.closing && len(data) == 0
}

func (s *stdin) took(n int) {
	s.mu.Lock()
	s.held -= n
	s.mu.Unlock()
	s.change.notify()
}

// write queues data. It waits only for a caller that does not mind its window.
func (s *stdin) write(data []byte) {
	for {
		changed := s.change.wait()
		s.mu.Lock()
		fits := s.gone || len(s.waiting)+s.held+len(data) <= StdinWindow+MaxData
		if fits && !s.gone && !s.closing {
			s.waiting = append(s.waiting, data...)
		}
		s.mu.Unlock()
		if fits {
			s.change.notify()
			return
		}
		<-changed
	}
}

// finish closes the command's stdin once it has taken what waits.
func (s *stdin) finish() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.change.notify()
}

// abandon closes the command's stdin now.
func (s *stdin) abandon() {
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	s.change.notify()
	if s.to != nil {
		_ = s.to.Close()
	}
}

// ExecIO is what a caller gives to and takes from a command.
type ExecIO struct {
	Stdin          io.Reader // nil: closed at once
	Stdout, Stderr io.Writer // nil: thrown away
	Signals        <-chan int
}

// RunExec speaks the caller's side of the exec protocol until the command has ended and returns its exit code. It
// closes the connection; ending ctx ends the command.
func RunExec(ctx context.Context, conn Conn, streams ExecIO) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close()
	credit := &credit{}
	go sendStdin(ctx, conn, streams.Stdin, credit)
	go func() {
		for {
			select {
			case number := <-streams.Signals:
				_ = conn.WriteFrame(Frame{FrameSignal, []byte{byte(number)}}) // the reader sees a lost connection
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		frame, err := conn.ReadFrame()
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			} else if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		to := streams.Stdout
		switch frame.Type {
		case FrameExit:
			return frame.ExitCode(), nil
		case FrameTaken:
			credit.grant(frame.Offset())
			continue
		case FrameStderr:
			to = streams.Stderr
		case FrameData:
		default:
			return 0, broken("a command sent frame %q", byte(frame.Type))
		}
		if to == nil {
			continue
		}
		if _, err := to.Write(frame.Payload); err != nil {
			return 0, err
		}
	}
}

// credit holds stdin back to [StdinWindow] bytes beyond what the command has taken.
type credit struct {
	taken  atomic.Uint64
	change broadcast
}

func (c *credit) grant(taken uint64) {
	c.taken.Store(taken)
	c.change.notify()
}

// wait returns once sent is within the window, false when ctx ended first.
func (c *credit) wait(ctx context.Context, sent uint64) bool {
	for {
		changed := c.change.wait()
		if sent <= c.taken.Load()+StdinWindow {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// sendStdin copies stdin to the command. It ends with the connection, at the next read at the latest.
func sendStdin(ctx context.Context, conn Conn, from io.Reader, credit *credit) {
	buffer := make([]byte, MaxData)
	var sent uint64
	for from != nil {
		n, err := from.Read(buffer)
		if sent += uint64(n); n > 0 {
			if !credit.wait(ctx, sent) || conn.WriteFrame(Frame{FrameInput, buffer[:n]}) != nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	_ = conn.WriteFrame(Frame{FrameClose, nil}) // the reader sees a lost connection
}
