package terminal

import (
	"bytes"
	"io"
	"sync"
)

// fakeTTY is a program that prints what the test says and keeps what it is
// given.
type fakeTTY struct {
	out     *io.PipeReader
	printer *io.PipeWriter
	ended   chan int
	closed  chan struct{}
	hangUp  func()
	deaf    chan struct{} // a write waits until it is closed; nil: none does

	mu    sync.Mutex // guards what follows
	typed bytes.Buffer
	sizes [][2]int
}

func newFakeTTY() *fakeTTY {
	out, printer := io.Pipe()
	t := &fakeTTY{out: out, printer: printer, ended: make(chan int, 1), closed: make(chan struct{})}
	t.hangUp = sync.OnceFunc(func() {
		close(t.closed)
		_ = printer.CloseWithError(io.EOF)
	})
	return t
}

func (t *fakeTTY) print(p []byte) { _, _ = t.printer.Write(p) }

// exit ends the program; what it printed before was read.
func (t *fakeTTY) exit(code int) {
	t.ended <- code
	_ = t.printer.Close()
}

func (t *fakeTTY) Read(p []byte) (int, error) { return t.out.Read(p) }

func (t *fakeTTY) Write(p []byte) (int, error) {
	if t.deaf != nil {
		select {
		case <-t.deaf:
		case <-t.closed:
			return 0, io.ErrClosedPipe
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.typed.Write(p)
}

func (t *fakeTTY) Resize(cols, rows int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sizes = append(t.sizes, [2]int{cols, rows})
	return nil
}

func (t *fakeTTY) Wait() int { return <-t.ended }

func (t *fakeTTY) Close() error {
	t.hangUp()
	return nil
}

func (t *fakeTTY) input() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.typed.String()
}
