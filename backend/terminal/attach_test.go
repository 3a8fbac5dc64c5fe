package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// cutConn fails after a number of bytes, in both directions together.
type cutConn struct {
	net.Conn
	mu   sync.Mutex // guards left
	left int
}

func (c *cutConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	n := min(len(p), c.left)
	c.left -= n
	c.mu.Unlock()
	written, err := c.Conn.Write(p[:n])
	if err == nil && n < len(p) {
		err = errors.Join(io.ErrClosedPipe, c.Close())
	}
	return written, err
}

// harness is a shell with a scripted program.
type harness struct {
	t     *testing.T
	tty   *fakeTTY
	spool *Spool
	shell *Shell
	ran   chan struct{}
}

func newHarness(t *testing.T, spool SpoolConfig) *harness {
	h := &harness{t: t, tty: newFakeTTY(), ran: make(chan struct{})}
	h.spool = NewSpool(spool)
	h.shell = NewShell(ShellConfig{TTY: h.tty, Spool: h.spool, Cols: 80, Rows: 24})
	return h
}

func (h *harness) run() *harness {
	go func() {
		defer close(h.ran)
		h.shell.Run()
	}()
	h.t.Cleanup(func() {
		h.tty.hangUp()
		select {
		case h.tty.ended <- 0:
		default:
		}
		<-h.ran
	})
	return h
}

// dial attaches and returns the viewer's end of the connection.
func (h *harness) dial(req Attach, wrap func(net.Conn) net.Conn) net.Conn {
	ours, theirs := net.Pipe()
	if wrap != nil {
		ours, theirs = wrap(ours), wrap(theirs)
	}
	go func() { _ = h.shell.Serve(h.t.Context(), ours, req) }()
	return theirs
}

// read reads frames until one of that type.
func read(t *testing.T, conn Conn, kind FrameType) Frame {
	t.Helper()
	for {
		frame, err := conn.ReadFrame()
		if err != nil {
			t.Fatalf("waiting for %q: %v", byte(kind), err)
		}
		if frame.Type == kind {
			return frame
		}
	}
}

// TestNoByteIsLostOrDoubled cuts connections at random places, again and
// again, while several viewers watch and type.
func TestNoByteIsLostOrDoubled(t *testing.T) {
	const output, input, viewers = 3 << 20, 200 << 10, 3
	for seed := range uint64(4) {
		h := newHarness(t, SpoolConfig{Cap: 8 << 20, Path: filepath.Join(t.TempDir(), "spool")}).run()
		var all sync.WaitGroup
		shown := make([]bytes.Buffer, viewers)
		for i := range viewers {
			v := NewViewer(ViewerConfig{Client: string(rune('a' + i)), Output: &shown[i]})
			all.Go(func() { watchThroughCuts(t, h, v, rand.New(rand.NewPCG(seed, uint64(i))), string(rune('a'+i))) })
			all.Go(func() {
				typed := bytes.Repeat([]byte{byte('a' + i)}, input)
				random := rand.New(rand.NewPCG(seed, 100+uint64(i)))
				for len(typed) > 0 {
					n := min(len(typed), 1+random.IntN(9000))
					if _, err := v.Write(typed[:n]); err != nil {
						t.Errorf("type: %v", err)
						return
					}
					typed = typed[n:]
				}
			})
		}
		for offset := 0; offset < output; offset += 8192 {
			h.tty.print(sample(uint64(offset), 8192))
		}
		for deadline := time.Now().Add(2 * time.Minute); len(h.tty.input()) < viewers*input; time.Sleep(
			5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("only %d bytes of input arrived", len(h.tty.input()))
			}
		}
		h.tty.exit(11)
		all.Wait()
		for i := range shown {
			if !bytes.Equal(shown[i].Bytes(), sample(0, output)) {
				t.Errorf("viewer %d saw %d bytes, not what was printed", i, shown[i].Len())
			}
			if n := bytes.Count([]byte(h.tty.input()), []byte{byte('a' + i)}); n != input {
				t.Errorf("%d bytes of viewer %d arrived", n, i)
			}
		}
	}
}

func watchThroughCuts(t *testing.T, h *harness, v *Viewer, random *rand.Rand, name string) {
	for {
		life := 2000 + random.IntN(400_000)
		conn := h.dial(Attach{Offset: v.Offset(), Client: name},
			func(c net.Conn) net.Conn { return &cutConn{Conn: c, left: life} })
		code, err := v.Run(t.Context(), NewConn(conn))
		if err == nil {
			if code != 11 {
				t.Errorf("exit code %d", code)
			}
			return
		}
		var protocol *ProtocolError
		if errors.As(err, &protocol) {
			t.Errorf("viewer %s: %v", name, err)
			return
		}
	}
}

func TestStalledViewerHoldsUpNobody(t *testing.T) {
	h := newHarness(t, SpoolConfig{Cap: 1 << 20}).run()
	stalled := NewConn(h.dial(Attach{Client: "stalled"}, nil))
	read(t, stalled, FrameHello) // and never again for now
	var shown bytes.Buffer
	viewer := NewViewer(ViewerConfig{Client: "lively", Output: &shown})
	done := make(chan error, 1)
	go func() {
		_, err := viewer.Run(t.Context(), NewConn(h.dial(Attach{Client: "lively"}, nil)))
		done <- err
	}()
	const output = 5 << 20
	for offset := 0; offset < output; offset += 32 << 10 {
		h.tty.print(sample(uint64(offset), 32<<10))
		for viewer.Offset() < uint64(offset) { // the cap would pass a slow one by
			time.Sleep(50 * time.Microsecond)
		}
	}
	h.tty.exit(0)
	if err := <-done; err != nil || !bytes.Equal(shown.Bytes(), sample(0, output)) {
		t.Fatalf("the lively viewer saw %d bytes, %v", shown.Len(), err)
	}

	t.Run("and gets, once it moves, a gap, a window and the rest", func(t *testing.T) {
		got := uint64(0)
		data := func() {
			offset, data, err := read(t, stalled, FrameData).Data()
			if err != nil || offset != got || !bytes.Equal(data, sample(offset, len(data))) {
				t.Fatalf("data at %d, %v; want %d", offset, err, got)
			}
			got += uint64(len(data))
		}
		data() // was under way when it stalled
		from, to, err := read(t, stalled, FrameGap).Gap()
		start, end := h.spool.Bounds()
		if err != nil || from != got || to != start {
			t.Fatalf("gap from %d to %d, %v; the spool begins at %d", from, to, err, start)
		}
		for got = to; got < to+Window; {
			data()
		}
		for got < end {
			if err := stalled.WriteFrame(offsetFrame(FrameAck, got)); err != nil {
				t.Fatal(err)
			}
			for limit := min(end, got+Window); got < limit; {
				data()
			}
		}
		if code := read(t, stalled, FrameExit).ExitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestWindowClosesWithoutAcks(t *testing.T) {
	h := newHarness(t, SpoolConfig{Cap: 4 << 20}).run()
	conn := NewConn(h.dial(Attach{Client: "quiet"}, nil))
	for offset := 0; offset < 2<<20; offset += 32 << 10 {
		h.tty.print(sample(uint64(offset), 32<<10))
	}
	var got uint64
	for got < Window {
		_, data, err := read(t, conn, FrameData).Data()
		if err != nil {
			t.Fatal(err)
		}
		got += uint64(len(data))
	}
	// The next frame answers this resize: no data came between.
	go func() { _ = conn.WriteFrame(sizeFrame(FrameResize, 90, 30)) }()
	if frame, err := conn.ReadFrame(); err != nil || frame.Type != FrameSize || got != Window {
		t.Errorf("after %d bytes came %q, %v", got, byte(frame.Type), err)
	}
}

func TestAttachLate(t *testing.T) {
	h := newHarness(t, SpoolConfig{Cap: 1 << 20}).run()
	h.tty.print([]byte("\x1b[?1049h\x1b[?25lscreen"))
	h.tty.print([]byte("!"))
	for _, end := h.spool.Bounds(); end < 21; _, end = h.spool.Bounds() {
		time.Sleep(time.Millisecond)
	}
	_, end := h.spool.Bounds()
	t.Run("restores the modes for an empty screen", func(t *testing.T) {
		conn := NewConn(h.dial(Attach{Client: "new", Offset: end - 1}, nil))
		hello, err := read(t, conn, FrameHello).Hello()
		if err != nil || hello.Next != end-1 || hello.End != end || hello.Cols != 80 {
			t.Fatalf("hello %+v, %v", hello, err)
		}
		if modes := read(t, conn, FrameModes); string(modes.Payload) != "\x1b[?1049h\x1b[?25l" {
			t.Errorf("modes %q", modes.Payload)
		}
		if _, data, _ := read(t, conn, FrameData).Data(); string(data) != "!" {
			t.Errorf("data %q", data)
		}
	})
	t.Run("does not repeat them on a screen that has them", func(t *testing.T) {
		var shown bytes.Buffer
		v := NewViewer(ViewerConfig{Client: "again", Output: &shown})
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			done := make(chan struct{})
			runCtx, stop := context.WithCancel(ctx)
			go func() {
				defer close(done)
				_, _ = v.Run(runCtx, NewConn(h.dial(Attach{Client: "again", Offset: v.Offset()}, nil)))
			}()
			for v.Offset() < end {
				time.Sleep(time.Millisecond)
			}
			stop()
			<-done
		}
		cancel()
		if shown.String() != "\x1b[?1049h\x1b[?25lscreen!" {
			t.Errorf("shown %q", shown.String())
		}
	})
	t.Run("takes an offset beyond the end as the end", func(t *testing.T) {
		conn := NewConn(h.dial(Attach{Client: "eager", Offset: 1 << 60}, nil))
		if hello, err := read(t, conn, FrameHello).Hello(); err != nil || hello.Next != end {
			t.Errorf("hello %+v, %v", hello, err)
		}
	})
	t.Run("tells every viewer of a new size", func(t *testing.T) {
		one, two := NewConn(h.dial(Attach{Client: "one"}, nil)), NewConn(h.dial(Attach{Client: "two"}, nil))
		read(t, one, FrameHello)
		read(t, two, FrameHello)
		go func() { _ = one.WriteFrame(sizeFrame(FrameResize, 132, 50)) }()
		for _, conn := range []Conn{one, two} {
			if cols, rows := read(t, conn, FrameSize).Size(); cols != 132 || rows != 50 {
				t.Errorf("size %d×%d", cols, rows)
			}
		}
		go func() { _ = two.WriteFrame(sizeFrame(FrameResize, 0, 50)) }()
		for {
			if _, err := two.ReadFrame(); err != nil {
				break // an impossible size ends the connection
			}
		}
	})
}

func TestDeafProgramHoldsUpNeitherOutputNorAcks(t *testing.T) {
	h := newHarness(t, SpoolConfig{Cap: 8 << 20})
	h.tty.deaf = make(chan struct{})
	h.run()
	var shown bytes.Buffer
	v := NewViewer(ViewerConfig{Client: "v", Output: &shown})
	done := make(chan error, 1)
	go func() {
		_, err := v.Run(t.Context(), NewConn(h.dial(Attach{Client: "v"}, nil)))
		done <- err
	}()
	typed := bytes.Repeat([]byte("z"), 3<<20)
	wrote := make(chan error, 1)
	go func() {
		_, err := v.Write(typed)
		wrote <- err
	}()
	const output = 3 << 20
	for offset := 0; offset < output; offset += 32 << 10 {
		h.tty.print(sample(uint64(offset), 32<<10))
	}
	for deadline := time.Now().Add(2 * time.Minute); v.Offset() < output; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("output stopped at %d", v.Offset())
		}
	}
	close(h.tty.deaf)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); len(h.tty.input()) < len(typed); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of input arrived", len(h.tty.input()))
		}
	}
	h.tty.exit(0)
	if err := <-done; err != nil || h.tty.input() != string(typed) {
		t.Errorf("%v, input of %d bytes", err, len(h.tty.input()))
	}
}

func TestViewersThatBreakTheRulesAreSentAway(t *testing.T) {
	h := newHarness(t, SpoolConfig{}).run()
	for name, frame := range map[string]Frame{
		"an ack of what was not sent":  offsetFrame(FrameAck, 1<<40),
		"a frame of the other side":    offsetFrame(FrameTaken, 0),
		"input without bytes":          {FrameInput, make([]byte, 8)},
		"a hole in the input":          dataFrame(FrameInput, 100, []byte("x")),
		"a screen of no size":          sizeFrame(FrameResize, 0, 0),
		"a screen larger than a house": sizeFrame(FrameResize, 65535, 65535),
	} {
		conn := NewConn(h.dial(Attach{Client: name}, nil))
		read(t, conn, FrameHello)
		if name == "a hole in the input" {
			_ = conn.WriteFrame(dataFrame(FrameInput, 5, []byte("x")))
		}
		_ = conn.WriteFrame(frame)
		for {
			if _, err := conn.ReadFrame(); err != nil {
				break
			}
		}
	}
	if h.exited() {
		t.Error("the shell suffered")
	}
}

func (h *harness) exited() bool {
	select {
	case <-h.shell.Done():
		return true
	default:
		return false
	}
}

func TestClientsAreForgottenOldestFirst(t *testing.T) {
	h := newHarness(t, SpoolConfig{})
	kept := h.shell.enter("watching")
	gone := h.shell.enter("gone")
	gone.accepted.Store(7)
	h.shell.leave(gone)
	for i := range maxClients {
		h.shell.leave(h.shell.enter(string(rune(0x4e00 + i))))
	}
	if h.shell.enter("watching") != kept {
		t.Error("a client with a viewer was forgotten")
	}
	if h.shell.enter("gone") == gone {
		t.Error("the oldest client is still known")
	}
	if len(h.shell.clients) > maxClients {
		t.Errorf("%d clients are remembered", len(h.shell.clients))
	}
}
