package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/client"
	"slipway/backend/terminal"
)

// teletype is a program that writes what it is given and remembers what it read.
type teletype struct {
	out  chan []byte
	done chan struct{}
	once sync.Once

	mu  sync.Mutex // guards in
	in  []byte
	got chan int // length of in after each write
}

func newTeletype() *teletype {
	return &teletype{out: make(chan []byte), done: make(chan struct{}), got: make(chan int, 1<<16)}
}

func (y *teletype) Read(p []byte) (int, error) {
	data, open := <-y.out
	if !open {
		return 0, io.EOF
	}
	return copy(p, data), nil
}

func (y *teletype) Write(p []byte) (int, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.in = append(y.in, p...)
	y.got <- len(y.in)
	return len(p), nil
}

func (y *teletype) typed() string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return string(y.in)
}

func (y *teletype) Resize(int, int) error { return nil }
func (y *teletype) Wait() int             { <-y.done; return 5 }
func (y *teletype) Close() error          { return nil }

// end ends the program.
func (y *teletype) end() { y.once.Do(func() { close(y.done); close(y.out) }) }

// serveShell serves shell under any path, as the control plane does, and cuts
// every connection but the last ones after a few messages.
func serveShell(t *testing.T, shell *terminal.Shell, cutAfter func(connection int) int) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	connections := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		mu.Lock()
		connections++
		left := cutAfter(connections)
		mu.Unlock()
		defer conn.Close()
		here, there := net.Pipe()
		var offset uint64
		_, _ = fmt.Sscan(r.FormValue("offset"), &offset)
		go func() {
			_ = shell.Serve(context.Background(), there, terminal.Attach{Client: r.FormValue("client"), Offset: offset})
		}()
		frames := terminal.NewConn(here)
		defer frames.Close()
		go func() {
			defer frames.Close()
			for {
				_, message, err := conn.ReadMessage()
				if err != nil {
					return
				}
				if frame, err := terminal.ParseMessage(message); err != nil || frames.WriteFrame(frame) != nil {
					return
				}
			}
		}()
		for ; left != 0; left-- {
			frame, err := frames.ReadFrame()
			if err != nil {
				_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure,
					""))
				return
			}
			if conn.WriteMessage(websocket.BinaryMessage, frame.Message()) != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func attachmentTo(server *httptest.Server, in io.Reader, out io.Writer) *attachment {
	c := client.New(server.URL, "")
	return &attachment{
		in: in, out: out, size: func() (int, int) { return 80, 24 }, lost: func() {},
		dial: func(ctx context.Context, _ bool, offset uint64, client string) (terminal.Conn, error) {
			return c.Frames(ctx, fmt.Sprintf("/attach?offset=%d&client=%s", offset, client), nil)
		},
	}
}

func TestAttachLosesAndDoublesNoByteOverCuts(t *testing.T) {
	tty := newTeletype()
	shell := terminal.NewShell(terminal.ShellConfig{TTY: tty, Spool: terminal.NewSpool(terminal.SpoolConfig{}),
		Cols: 80, Rows: 24})
	go shell.Run()
	server := serveShell(t, shell, func(connection int) int {
		if connection <= 12 {
			return 2 + connection%5 // frames until the cut
		}
		return -1
	})
	var typed, written strings.Builder
	for i := range 400 {
		fmt.Fprintf(&typed, "line %d\r", i)
	}
	keyboard, keys := io.Pipe()
	go func() {
		for i, text := 0, typed.String(); i < len(text); i += 37 {
			_, _ = io.WriteString(keys, text[i:min(len(text), i+37)])
		}
	}()
	go func() {
		for i := range 300 {
			block := fmt.Sprintf("%d:%s\r\n", i, strings.Repeat("x", i*7%1500))
			written.WriteString(block)
			tty.out <- []byte(block)
		}
		for n := range tty.got { // all that was typed must arrive before the end
			if n >= typed.Len() {
				break
			}
		}
		tty.end()
	}()
	var shown bytes.Buffer
	code, err := attachmentTo(server, keyboard, &shown).run(t.Context())
	if err != nil || code != 5 {
		t.Fatalf("run = %d, %v; want the shell's exit code 5", code, err)
	}
	if shown.String() != written.String() {
		t.Errorf("shown %d bytes, written %d; they differ", shown.Len(), written.Len())
	}
	if tty.typed() != typed.String() {
		t.Errorf("typed %d bytes, the shell got %d; they differ", typed.Len(), len(tty.typed()))
	}
}

func TestDetachKeysLeaveTheShell(t *testing.T) {
	tty := newTeletype()
	shell := terminal.NewShell(terminal.ShellConfig{TTY: tty, Spool: terminal.NewSpool(terminal.SpoolConfig{}),
		Cols: 80, Rows: 24})
	go shell.Run()
	defer tty.end()
	server := serveShell(t, shell, func(int) int { return -1 })
	if _, err := attachmentTo(server, strings.NewReader("ls\r\x10\x11never"), io.Discard).
		run(t.Context()); !errors.Is(err, errDetached) {
		t.Errorf("run = %v, want errDetached", err)
	}
}

func TestDetachKeysAreFoundInWhatIsTyped(t *testing.T) {
	for name, c := range map[string]struct {
		typed []string
		want  string
		leave bool
	}{
		"nothing of them":          {[]string{"abc"}, "abc", false},
		"both at once":             {[]string{"a\x10\x11b"}, "a", true},
		"in two reads":             {[]string{"a\x10", "\x11"}, "a", true},
		"the first alone is typed": {[]string{"\x10", "x"}, "\x10x", false},
		"twice the first":          {[]string{"\x10\x10\x11"}, "\x10", true},
		"the second alone":         {[]string{"\x11"}, "\x11", false},
	} {
		t.Run(name, func(t *testing.T) {
			var keys detachKeys
			var got []byte
			left := false
			for _, typed := range c.typed {
				input, leave := keys.filter([]byte(typed))
				got = append(got, input...)
				left = left || leave
			}
			if string(got) != c.want || left != c.leave {
				t.Errorf("typed %q and left %v, want %q and %v", got, left, c.want, c.leave)
			}
		})
	}
}

func TestAttachToAShellThatIsGoneEnds(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := attachmentTo(server, blocked(t), io.Discard).run(t.Context())
	var told *client.Refused
	if !errors.As(err, &told) || told.Status != http.StatusNotFound {
		t.Errorf("run = %v, want the refusal", err)
	}
}

func TestAttachEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a := attachmentTo(httptest.NewServer(http.NotFoundHandler()), blocked(t), io.Discard)
	first := true
	a.dial = func(context.Context, bool, uint64, string) (terminal.Conn, error) {
		if first {
			first = false
			here, there := net.Pipe()
			_ = there.Close()
			return terminal.NewConn(here), nil
		}
		return nil, client.ErrNotServing
	}
	if _, err := a.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run = %v, want the end of the context", err)
	}
}

// TestAttachDoesNotHammer has a hostile agent let a viewer in and cut it off at
// once, again and again.
func TestAttachDoesNotHammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keyboard, keys := io.Pipe()
		defer keys.Close()
		a := attachmentTo(&httptest.Server{}, keyboard, io.Discard)
		joined := 0
		a.dial = func(context.Context, bool, uint64, string) (terminal.Conn, error) {
			joined++
			here, there := net.Pipe()
			_ = there.Close()
			return terminal.NewConn(here), nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := a.run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("run = %v, want the end of the context", err)
		}
		if joined < 20 || joined > 40 {
			t.Errorf("it was joined %d times in a minute", joined)
		}
	})
}

// blocked is a keyboard on which nobody types.
func blocked(t *testing.T) io.Reader {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = write.Close(), read.Close() })
	return read
}
