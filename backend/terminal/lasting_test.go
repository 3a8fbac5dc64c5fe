package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// lostPipe is a pipe whose end, where nobody said goodbye, reads as a loss does
// through a tunnel.
type lostPipe struct{ net.Conn }

func (p lostPipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// last attaches through a Lasting whose connections are cut after up to most
// bytes, and returns the viewer's side.
func (h *harness) last(random *rand.Rand, most int, client string) Conn {
	cut := func(c net.Conn) net.Conn { return lostPipe{&cutConn{Conn: c, left: 1 + random.IntN(most)}} }
	redial := func(_ context.Context, offset uint64) (Conn, error) {
		return NewConn(h.dial(Attach{Offset: offset, Client: client}, cut)), nil
	}
	first, _ := redial(h.t.Context(), 0)
	return NewLasting(h.t.Context(), first, 0, redial)
}

func TestLastingAttachmentHidesEveryCut(t *testing.T) {
	const output, input = 2 << 20, 150 << 10
	for seed := range uint64(4) {
		h := newHarness(t, SpoolConfig{Cap: 8 << 20, Path: filepath.Join(t.TempDir(), "spool")}).run()
		random := rand.New(rand.NewPCG(seed, 1))
		lasting := h.last(random, 200<<10, "a")
		var shown bytes.Buffer
		viewer := NewViewer(ViewerConfig{Client: "a", Output: &shown})
		viewer.Resize(132, 50)
		ended := make(chan error, 1)
		go func() {
			code, err := viewer.Run(t.Context(), lasting)
			if err == nil && code != 3 {
				err = errors.New("another exit code")
			}
			ended <- err
		}()
		typed := make(chan struct{})
		go func() {
			defer close(typed)
			for left := input; left > 0; left -= 5 << 10 {
				if _, err := viewer.Write(bytes.Repeat([]byte("k"), 5<<10)); err != nil {
					t.Errorf("type: %v", err)
					return
				}
			}
		}()
		for offset := 0; offset < output; offset += 8192 {
			h.tty.print(sample(uint64(offset), 8192))
		}
		<-typed
		for deadline := time.Now().Add(2 * time.Minute); len(h.tty.input()) < input; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("seed %d: only %d bytes of input arrived", seed, len(h.tty.input()))
			}
		}
		h.tty.exit(3)
		if err := <-ended; err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := len(h.tty.input()); got != input {
			t.Errorf("seed %d: %d bytes of input arrived of %d", seed, got, input)
		}
		if !bytes.Equal(shown.Bytes(), sample(0, output)) {
			t.Errorf("seed %d: %d bytes were shown, not the %d printed", seed, shown.Len(), output)
		}
	}
}

func TestLastingAttachmentEndsAsItShould(t *testing.T) {
	gone := errors.New("the terminal is gone")
	begin := func(redial Redial) (Conn, net.Conn) {
		near, far := net.Pipe()
		return NewLasting(t.Context(), NewConn(lostPipe{near}), 0, redial), far
	}
	never := func(context.Context, uint64) (Conn, error) { return nil, gone }
	t.Run("with why it cannot be attached again", func(t *testing.T) {
		lasting, far := begin(never)
		go far.Close()
		if _, err := lasting.ReadFrame(); !errors.Is(err, gone) {
			t.Error(err)
		}
	})
	t.Run("in good order where the far end closes in good order", func(t *testing.T) {
		near, far := net.Pipe()
		lasting := NewLasting(t.Context(), NewConn(near), 0, never)
		go far.Close()
		if _, err := lasting.ReadFrame(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
	t.Run("when it is closed while it dials", func(t *testing.T) {
		dialling := make(chan struct{})
		lasting, far := begin(func(ctx context.Context, _ uint64) (Conn, error) {
			close(dialling)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		go far.Close()
		go func() { <-dialling; _ = lasting.Close() }()
		if _, err := lasting.ReadFrame(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("when the viewer breaks the rules", func(t *testing.T) {
		lasting, far := begin(never)
		defer far.Close()
		if err := lasting.WriteFrame(Frame{Type: FrameExit, Payload: make([]byte, 4)}); err == nil {
			t.Error("a viewer may send an exit")
		}
		var against *ProtocolError
		if _, err := lasting.ReadFrame(); !errors.As(err, &against) {
			t.Error(err)
		}
	})
	t.Run("when output that was sent exists no more", func(t *testing.T) {
		second, farther := net.Pipe()
		lasting, far := begin(func(context.Context, uint64) (Conn, error) { return NewConn(second), nil })
		go func() {
			conn := NewConn(far)
			_ = conn.WriteFrame(Hello{End: 10, Cols: 80, Rows: 24}.frame())
			_ = conn.WriteFrame(dataFrame(FrameData, 0, []byte("0123456789")))
			_ = conn.Close()
			_ = NewConn(farther).WriteFrame(Hello{End: 3, Cols: 80, Rows: 24}.frame())
		}()
		var against *ProtocolError
		for err := error(nil); !errors.As(err, &against); {
			if _, err = lasting.ReadFrame(); err != nil && !errors.As(err, &against) {
				t.Fatal(err)
			}
		}
	})
}
