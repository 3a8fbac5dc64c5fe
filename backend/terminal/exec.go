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
	// Stdout and Stderr end when the command has ended and all of its output is read.
	Stdout() io.Reader
	Stderr() io.Reader
	// Signal sends a signal, by its Linux number, to the command and everything that it started.
	Signal(number int) error
	// Wait returns the exit code, or 128 plus the number of the signal that ended it. It may be called more than once.
	Wait() int
	// Kill terminates the command and everything that it started, then kills them. It does not wait for the end.
	Kill()
}

// ServeExec speaks the exec protocol on stream, which it closes. It kills the command if the caller disconnects.
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
			_ = p.Signal(int(frame.Payload[0])) // fails only if it has ended
		default:
			return broken("a caller sent frame %q", byte(frame.Type))
		}
	}
}

// stdin writes input to a command from its own goroutine, so that a command that does not read delays no signal.
type stdin struct {
	to io.WriteCloser // nil: the command has no stdin

	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // on mu
	waiting []byte     // input that feed has not fetched yet
	held    int        // bytes that feed has fetched and the command has not read
	closing bool       // close once everything is written
	gone    bool       // no more input is accepted
}

// newStdin calls taken with the bytes that the command has read so far, at least every [takenStep] and for the last.
func newStdin(to io.WriteCloser, taken func(uint64)) *stdin {
	s := &stdin{to: to, gone: to == nil}
	s.changed.L = &s.mu
	if to != nil {
		go s.feed(taken)
	}
	return s
}

// feed writes input until it is finished or abandoned, or the command does not accept it.
func (s *stdin) feed(taken func(uint64)) {
	defer s.abandon()
	var total uint64
	data := s.fetch(nil)
	for ; len(data) > 0; data = s.fetch(data) {
		for part := range slices.Chunk(data, takenStep) {
			if _, err := s.to.Write(part); err != nil {
				return
			}
			total += uint64(len(part))
			s.change(func() { s.held -= len(part) })
			taken(total)
		}
	}
}

// fetch waits for input and returns all of it; nothing at the end. More input is collected in buffer.
func (s *stdin) fetch(buffer []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && !s.closing && !s.gone {
		s.changed.Wait()
	}
	data := s.waiting
	s.waiting, s.held = buffer[:0], len(data)
	return data
}

func (s *stdin) change(apply func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	apply()
	s.changed.Broadcast()
}

// write queues data. It blocks only if the caller exceeds its window.
func (s *stdin) write(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.gone && len(s.waiting)+s.held+len(data) > StdinWindow+MaxData {
		s.changed.Wait()
	}
	if !s.gone && !s.closing {
		s.waiting = append(s.waiting, data...)
		s.changed.Broadcast()
	}
}

// finish closes the command's stdin after the input so far is written.
func (s *stdin) finish() { s.change(func() { s.closing = true }) }

func (s *stdin) abandon() {
	s.change(func() { s.gone = true })
	if s.to != nil {
		_ = s.to.Close()
	}
}

// ExecIO holds the caller's streams of a command.
type ExecIO struct {
	Stdin          io.Reader // nil: closed at once
	Stdout, Stderr io.Writer // nil: discarded
	Signals        <-chan int
}

// RunExec speaks the caller's side of the exec protocol until the command has ended and returns its exit code. It
// closes the connection; ending ctx ends the command.
func RunExec(ctx context.Context, conn Conn, streams ExecIO) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
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
			credit.taken.Store(frame.Offset())
			credit.change.notify()
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

// credit limits stdin to [StdinWindow] bytes beyond what the command has read.
type credit struct {
	taken  atomic.Uint64
	change broadcast
}

// wait waits until sent is within the window. It returns false if ctx ends first.
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

// sendStdin copies stdin to the command. It returns when the connection ends, at the latest after the next read.
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
