package tunnel_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"slipway/tunnel"
)

// pair makes two ends of a real connection and a Mux on each.
func pair(t testing.TB) (opener, accepter *tunnel.Mux, conns [2]net.Conn) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if opener, err = tunnel.NewMux(dialled, tunnel.Opener); err != nil {
		t.Fatal(err)
	}
	if accepter, err = tunnel.NewMux(accepted, tunnel.Accepter); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = opener.Close(), accepter.Close() })
	return opener, accepter, [2]net.Conn{dialled, accepted}
}

// echo answers every stream with what it sends.
func echo(accepter *tunnel.Mux) {
	for {
		stream, err := accepter.Accept()
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			_, _ = io.Copy(stream, stream)
		}()
	}
}

func open(t testing.TB, m *tunnel.Mux) net.Conn {
	t.Helper()
	stream, err := m.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func roundTrip(t testing.TB, stream net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(stream, text); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(text))
	if _, err := io.ReadFull(stream, answer); err != nil || string(answer) != text {
		t.Fatalf("answer %q, %v", answer, err)
	}
}

func TestManyStreamsAtOnce(t *testing.T) {
	opener, accepter, _ := pair(t)
	go echo(accepter)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			stream, err := opener.Open(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			sent := bytes.Repeat([]byte{byte(i)}, 300_000)
			go func() { _, _ = stream.Write(sent) }()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(stream, got); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func TestStalledReadersHoldUpNobody(t *testing.T) {
	opener, accepter, _ := pair(t)
	go func() {
		for i := 0; ; i++ {
			stream, err := accepter.Accept()
			if err != nil {
				return
			}
			if i < 100 {
				go func() { // nobody reads what it says
					_, _ = stream.Read(make([]byte, 1))
					_, _ = stream.Write(make([]byte, 10<<20))
				}()
				continue
			}
			go func() { _, _ = io.Copy(stream, stream) }()
		}
	}()
	for range 100 {
		if _, err := open(t, opener).Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
	}
	lively := open(t, opener)
	for range 100 {
		roundTrip(t, lively, "still here")
	}
}

func TestLastBytesArrive(t *testing.T) {
	for range 50 {
		opener, accepter, _ := pair(t)
		go func() {
			stream, err := accepter.Accept()
			if err != nil {
				return
			}
			_, _ = stream.Read(make([]byte, 1))
			_, _ = stream.Write(make([]byte, 100_000))
			_ = stream.Close()
			_ = accepter.Close() // the program ends at once
		}()
		stream := open(t, opener)
		_, _ = stream.Write([]byte("?")) // the end may come before this returns
		got, err := io.ReadAll(stream)
		if len(got) != 100_000 {
			t.Fatalf("%d bytes arrived, %v", len(got), err)
		}
	}
}

func TestEnds(t *testing.T) {
	t.Run("a closed stream reads as its end and takes no more", func(t *testing.T) {
		opener, accepter, _ := pair(t)
		stream := open(t, opener)
		far, err := accepter.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := far.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read: %v", err)
		}
		if _, err := stream.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if err := errors.Join(stream.Close(), stream.Close()); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		if _, err := stream.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read after close: %v", err)
		}
	})
	t.Run("a lost connection ends everything at once", func(t *testing.T) {
		opener, accepter, conns := pair(t)
		stream := open(t, opener)
		_ = conns[1].Close()
		for _, m := range []*tunnel.Mux{opener, accepter} {
			select {
			case <-m.Done():
			case <-time.After(time.Minute):
				t.Fatal("the loss was not noticed")
			}
		}
		if _, err := stream.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a lost stream reads as %v", err)
		}
		if _, err := opener.Open(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("open: %v", err)
		}
		if _, err := accepter.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	})
	t.Run("too many streams are refused until some are closed", func(t *testing.T) {
		opener, accepter, _ := pair(t)
		go echo(accepter)
		var streams []net.Conn
		for range tunnel.MaxStreams {
			streams = append(streams, open(t, opener))
		}
		if _, err := opener.Open(t.Context()); !errors.Is(err, tunnel.ErrTooManyStreams) {
			t.Errorf("open: %v", err)
		}
		_ = streams[0].Close()
		roundTrip(t, open(t, opener), "room again")
	})
	t.Run("garbage from the peer ends the tunnel", func(t *testing.T) {
		ours, theirs := net.Pipe()
		m, err := tunnel.NewMux(ours, tunnel.Accepter)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = theirs.Write(bytes.Repeat([]byte{0xff}, 100)) }()
		<-m.Done()
	})
	t.Run("a role that does not exist is refused", func(t *testing.T) {
		ours, theirs := net.Pipe()
		if _, err := tunnel.NewMux(ours, 0); err == nil {
			t.Error("it was taken")
		}
		if _, err := theirs.Read(make([]byte, 1)); err == nil {
			t.Error("the connection was left open")
		}
	})
}

// BenchmarkEcho measures one small message there and back.
func BenchmarkEcho(b *testing.B) {
	opener, accepter, _ := pair(b)
	go echo(accepter)
	stream := open(b, opener)
	for b.Loop() {
		roundTrip(b, stream, "x")
	}
}

// BenchmarkBulk measures one stream's throughput.
func BenchmarkBulk(b *testing.B) {
	opener, accepter, _ := pair(b)
	go func() {
		stream, err := accepter.Accept()
		if err == nil {
			_, _ = io.Copy(io.Discard, stream)
		}
	}()
	stream := open(b, opener)
	block := make([]byte, 1<<20)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		if _, err := stream.Write(block); err != nil {
			b.Fatal(err)
		}
	}
}
