package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeProcess is a command made of pipes.
type fakeProcess struct {
	stdin        *io.PipeReader
	toStdin      *io.PipeWriter
	stdout, errs *io.PipeReader
	out, err     *io.PipeWriter
	code         chan int
	killed       chan struct{}
	kill         func()
	signals      chan int
}

func newFakeProcess() *fakeProcess {
	p := &fakeProcess{code: make(chan int, 1), killed: make(chan struct{}), signals: make(chan int, 10)}
	p.stdin, p.toStdin = io.Pipe()
	p.stdout, p.out = io.Pipe()
	p.errs, p.err = io.Pipe()
	p.kill = sync.OnceFunc(func() {
		close(p.killed)
		p.end(137)
	})
	return p
}

func (p *fakeProcess) end(code int) {
	select {
	case p.code <- code:
	default:
	}
	_ = p.out.Close()
	_ = p.err.Close()
}

func (p *fakeProcess) Stdin() io.WriteCloser { return p.toStdin }
func (p *fakeProcess) Stdout() io.Reader     { return p.stdout }
func (p *fakeProcess) Stderr() io.Reader     { return p.errs }
func (p *fakeProcess) Wait() int             { return <-p.code }
func (p *fakeProcess) Kill()                 { p.kill() }
func (p *fakeProcess) Signal(number int) error {
	p.signals <- number
	return nil
}

func TestExecCarriesStreamsSignalsAndCode(t *testing.T) {
	p := newFakeProcess()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- ServeExec(t.Context(), ours, p) }()
	go func() {
		in, _ := io.ReadAll(p.stdin)
		_, _ = p.err.Write([]byte("warning"))
		number := <-p.signals
		_, _ = p.out.Write(bytes.Repeat(in, 2))
		p.end(number)
	}()
	signals := make(chan int, 1)
	signals <- 15
	var out, errs bytes.Buffer
	input := strings.Repeat("0123456789", 200_000)
	code, err := RunExec(t.Context(), NewConn(theirs), ExecIO{Stdin: strings.NewReader(input), Stdout: &out,
		Stderr: &errs, Signals: signals})
	if err != nil || code != 15 || out.String() != input+input || errs.String() != "warning" {
		t.Errorf("code %d, %v, %d bytes, %q", code, err, out.Len(), errs.String())
	}
	if err := <-served; err != nil {
		t.Errorf("served: %v", err)
	}
}

func TestExecEndsACommandThatNeverReadsWhenItsCallerLeaves(t *testing.T) {
	p := newFakeProcess()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- ServeExec(t.Context(), ours, p) }()
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	var fed counter
	go func() {
		_, err := RunExec(ctx, NewConn(theirs), ExecIO{Stdin: &fed})
		ran <- err
	}()
	for fed.total() < StdinWindow { // the whole window is on its way
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ran; !errors.Is(err, context.Canceled) {
		t.Errorf("ran: %v", err)
	}
	select {
	case <-p.killed:
	case <-time.After(2 * time.Minute):
		t.Fatal("the command goes on")
	}
	if err := <-served; err == nil {
		t.Error("a caller that left counts as served")
	}
}

// counter is endless input that counts what was taken of it.
type counter struct {
	mu    sync.Mutex // guards taken
	taken int
}

func (c *counter) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken += len(p)
	return len(p), nil
}

func (c *counter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// A caller may be many processes away, so it hears of what was taken in time to
// have its window full again before the command has emptied it.
func TestStdinTellsWhatWasTakenInSteps(t *testing.T) {
	read, write := io.Pipe()
	told := make(chan uint64, 100)
	s := newStdin(write, func(total uint64) { told <- total })
	const all = 3*takenStep + 7
	for range all / 7 {
		s.write([]byte("seven b"))
	}
	s.write(make([]byte, all%7))
	s.finish()
	got, err := io.ReadAll(read)
	if err != nil || len(got) != all {
		t.Fatalf("the command got %d of %d bytes, %v", len(got), all, err)
	}
	var last uint64
	for last < all {
		total := <-told
		if total <= last || total-last > takenStep {
			t.Fatalf("told of %d bytes after %d", total, last)
		}
		last = total
	}
}

// A command that does not read holds no more than the window, and nothing that
// comes after it was abandoned.
func TestStdinHoldsAWindowAndNoMore(t *testing.T) {
	_, write := io.Pipe()
	s := newStdin(write, func(uint64) {})
	frame := make([]byte, MaxData)
	for range StdinWindow / MaxData { // none of these waits
		s.write(frame)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.write(frame)
		s.write(frame)
	}()
	s.mu.Lock()
	held := len(s.waiting) + s.held
	s.mu.Unlock()
	if held > StdinWindow+MaxData {
		t.Errorf("%d bytes are held", held)
	}
	select {
	case <-over:
		t.Error("a caller that does not mind its window was not held up")
	default:
	}
	s.abandon()
	<-over
}

func TestExecRefusesFramesOfTheAttachProtocol(t *testing.T) {
	p := newFakeProcess()
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- ServeExec(t.Context(), ours, p) }()
	conn := NewConn(theirs)
	_ = conn.WriteFrame(sizeFrame(FrameResize, 80, 24))
	var protocol *ProtocolError
	if err := <-served; !errors.As(err, &protocol) {
		t.Errorf("served: %v", err)
	}
	<-p.killed
}
