package nonblock_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway/tunnel/nonblock"
)

// pairs calls test with two ends of a connection of each kind: one of a listener, and one that was dialled.
func pairs(t *testing.T, test func(t *testing.T, accepted, dialled net.Conn)) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0",
		"unix": filepath.Join(t.TempDir(), "socket")} {
		t.Run(network, func(t *testing.T) {
			plain, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			l := nonblock.Listen(plain)
			defer l.Close()
			dialled, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer accepted.Close()
			defer dialled.Close()
			test(t, accepted, nonblock.Conn(dialled))
		})
	}
}

func TestBytesArriveBothWays(t *testing.T) {
	pairs(t, func(t *testing.T, a, b net.Conn) {
		data := make([]byte, 8<<20) // more than the buffers of a socket hold
		_, _ = rand.Read(data)
		var all sync.WaitGroup
		for _, ends := range [][2]net.Conn{{a, b}, {b, a}} {
			all.Go(func() {
				n, err := ends[0].Write(data)
				if n != len(data) || err != nil {
					t.Errorf("wrote %d: %v", n, err)
				}
				if err := ends[0].(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				sum := sha256.New()
				n, err := io.Copy(sum, ends[1])
				if want := sha256.Sum256(data); n != int64(len(data)) || err != nil ||
					!bytes.Equal(sum.Sum(nil), want[:]) {
					t.Errorf("read %d: %v", n, err)
				}
			})
		}
		all.Wait()
	})
}

func TestDeadlinesInterrupt(t *testing.T) {
	pairs(t, func(t *testing.T, a, _ net.Conn) {
		if err := a.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, read := a.Read(make([]byte, 1))
		n, write := a.Write(make([]byte, 64<<20))
		for _, err := range []error{read, write} {
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%v is no timeout", err)
			}
		}
		if n == 64<<20 {
			t.Error("all of it was written, though nobody read")
		}
	})
}

func TestCloseInterrupts(t *testing.T) {
	pairs(t, func(t *testing.T, a, _ net.Conn) {
		ended := make(chan error)
		go func() {
			_, err := a.Read(make([]byte, 1))
			ended <- err
		}()
		a.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v is not that of a closed connection", err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v is not that of a closed connection", err)
		}
	})
}

func TestTheOtherEndCloses(t *testing.T) {
	pairs(t, func(t *testing.T, a, b net.Conn) {
		a.Close()
		if n, err := b.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("read %d: %v", n, err)
		}
		err := error(nil)
		for range 1000 { // the first may still be taken
			if _, err = b.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("writing ended with %v", err)
		}
	})
}

func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if nonblock.Conn(a) != a {
		t.Error("a pipe was wrapped")
	}
}

func TestNothingIsReadAtOnce(t *testing.T) {
	pairs(t, func(t *testing.T, a, _ net.Conn) {
		if n, err := a.Read(nil); n != 0 || err != nil {
			t.Errorf("nothing was read as %d, %v", n, err)
		}
	})
}
