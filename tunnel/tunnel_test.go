package tunnel_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"slipway/tunnel"
)

// wire is a host behind a loopback listener, and a Dialer that reaches it.
type wire struct {
	host     *tunnel.Host
	listener net.Listener
	peer     func(n int) tunnel.Peer // of the nth carrier

	mu    sync.Mutex // guards what follows
	conns []net.Conn // dialled
	asks  bool       // a silent dial would ask
}

var _ tunnel.Dialer = (*wire)(nil)

func newWire(t testing.TB, c tunnel.Config) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{host: tunnel.NewHost(c), listener: listener,
		peer: func(int) tunnel.Peer { return tunnel.Peer{Transport: "test", Key: "k"} }}
	go func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			peer := w.peer(n)
			go func() { _ = w.host.Serve(tunnel.Carrier{Conn: conn, Peer: peer}) }()
		}
	}()
	t.Cleanup(func() { _, _ = listener.Close(), w.host.Close() })
	return w
}

// Dial dials one carrier.
func (w *wire) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if silent && w.asks {
		return nil, tunnel.ErrWouldAsk
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", w.listener.Addr().String())
	if err == nil {
		w.conns = append(w.conns, conn)
	}
	return conn, err
}

// tunnels makes both ends of one tunnel.
func tunnels(t testing.TB, w *wire, c tunnel.Config) (near, far *tunnel.Tunnel) {
	t.Helper()
	near, err := tunnel.Dial(t.Context(), w, c)
	if err != nil {
		t.Fatal(err)
	}
	if far, err = w.host.Accept(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	return near, far
}

// joined waits until a tunnel has both carriers.
func joined(t testing.TB, all ...*tunnel.Tunnel) {
	t.Helper()
	for _, each := range all {
		for end := time.Now().Add(time.Minute); each.Stats().Carriers < 2; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no second carrier came")
			}
		}
	}
}

func openStream(t testing.TB, from *tunnel.Tunnel, class tunnel.Class) tunnel.Stream {
	t.Helper()
	s, err := from.Open(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// link opens a stream and returns both ends.
func link(t testing.TB, from, to *tunnel.Tunnel, class tunnel.Class) (near, far tunnel.Stream) {
	t.Helper()
	near = openStream(t, from, class)
	far, err := to.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

var classes = []tunnel.Class{tunnel.Control, tunnel.Interactive, tunnel.Bulk}

// pattern makes bytes that differ everywhere.
func pattern(seed byte, n int) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func TestEveryClassCarriesBothWays(t *testing.T) {
	for _, one := range []bool{false, true} {
		w := newWire(t, tunnel.Config{})
		near, far := tunnels(t, w, tunnel.Config{OneCarrier: one})
		if !one {
			joined(t, near, far)
		}
		for i, class := range classes {
			for _, ends := range [][2]*tunnel.Tunnel{{near, far}, {far, near}} {
				a, b := link(t, ends[0], ends[1], class)
				if b.Class() != class || a.Class() != class {
					t.Fatalf("class %v arrived as %v", class, b.Class())
				}
				sent := pattern(byte(i), 3<<20)
				go func() { _, _ = io.Copy(b, b); _ = b.CloseWrite() }()
				go func() { _, _ = a.Write(sent); _ = a.CloseWrite() }()
				got, err := io.ReadAll(a)
				if err != nil || sha256.Sum256(got) != sha256.Sum256(sent) {
					t.Fatalf("%v: %d of %d bytes came back, %v", class, len(got), len(sent), err)
				}
				_, _ = a.Close(), b.Close()
			}
		}
	}
}

func TestHalfOpen(t *testing.T) {
	w := newWire(t, tunnel.Config{})
	near, far := tunnels(t, w, tunnel.Config{})
	t.Run("after CloseWrite the answer still comes", func(t *testing.T) {
		a, b := link(t, near, far, tunnel.Control)
		_, _ = a.Write([]byte("question"))
		_ = a.CloseWrite()
		if q, err := io.ReadAll(b); string(q) != "question" || err != nil {
			t.Fatalf("%q, %v", q, err)
		}
		_, _ = b.Write([]byte("answer"))
		_ = b.Close()
		if r, err := io.ReadAll(a); string(r) != "answer" || err != nil {
			t.Fatalf("%q, %v", r, err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Fatal(err)
		}
	})
	t.Run("who writes to a closed stream is told", func(t *testing.T) {
		a, b := link(t, near, far, tunnel.Interactive)
		_ = b.Close()
		for end := time.Now().Add(time.Minute); ; {
			if _, err := a.Write([]byte("x")); errors.Is(err, net.ErrClosed) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("never told")
			}
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
	t.Run("deadlines end reads and blocked writes, which go on afterwards", func(t *testing.T) {
		a, b := link(t, near, far, tunnel.Interactive)
		_ = a.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		_ = a.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		data := pattern(1, 4<<20)
		n, err := a.Write(data)
		if !errors.Is(err, os.ErrDeadlineExceeded) || n == len(data) {
			t.Fatal(n, err)
		}
		_ = a.SetDeadline(time.Time{})
		go func() { _, _ = a.Write(data[n:]); _ = a.Close() }()
		if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	})
}

func TestLastBytesOfATunnelArrive(t *testing.T) {
	w := newWire(t, tunnel.Config{})
	for i := range 30 {
		near, far := tunnels(t, w, tunnel.Config{OneCarrier: i%2 == 0})
		class := classes[i%3]
		a, b := link(t, near, far, class)
		sent := pattern(byte(i), 200_000)
		if _, err := a.Write(sent); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = a.Close(), near.Close() }()
		if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("round %d: %d bytes, %v", i, len(got), err)
		}
	}
}

func TestStalledStreamStallsItselfAlone(t *testing.T) {
	for _, one := range []bool{false, true} {
		w := newWire(t, tunnel.Config{})
		near, far := tunnels(t, w, tunnel.Config{OneCarrier: one})
		if !one {
			joined(t, near, far)
		}
		for _, class := range classes {
			for range 20 {
				a, _ := link(t, near, far, class)
				go func() { _, _ = a.Write(make([]byte, 2<<20)) }() // nobody reads it
			}
		}
		for _, class := range classes {
			a, b := link(t, near, far, class)
			go func() { _, _ = io.Copy(b, b) }()
			for range 100 {
				roundTrip(t, a, "still here")
			}
		}
	}
}

func TestEndsOfATunnel(t *testing.T) {
	t.Run("a lost carrier ends everything at once", func(t *testing.T) {
		w := newWire(t, tunnel.Config{})
		near, far := tunnels(t, w, tunnel.Config{OneCarrier: true})
		a, b := link(t, near, far, tunnel.Control)
		_ = w.conns[0].Close()
		for _, each := range []*tunnel.Tunnel{near, far} {
			select {
			case <-each.Done():
			case <-time.After(time.Minute):
				t.Fatal("the loss was not noticed")
			}
			if each.Err() == nil {
				t.Error("no cause")
			}
		}
		for _, s := range []tunnel.Stream{a, b} {
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a lost stream reads as %v", err)
			}
		}
		if _, err := near.Open(t.Context(), tunnel.Bulk); !errors.Is(err, net.ErrClosed) {
			t.Errorf("open: %v", err)
		}
		if _, err := near.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		if err := near.Probe(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("probe: %v", err)
		}
	})
	t.Run("a lost second carrier takes its streams alone", func(t *testing.T) {
		w := newWire(t, tunnel.Config{})
		near, far := tunnels(t, w, tunnel.Config{})
		joined(t, near, far)
		a, _ := link(t, near, far, tunnel.Bulk)
		c, d := link(t, near, far, tunnel.Interactive)
		go func() { _, _ = io.Copy(d, d) }()
		w.mu.Lock()
		_ = w.conns[1].Close()
		w.mu.Unlock()
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a lost stream reads as %v", err)
		}
		roundTrip(t, c, "alive")
		e, f := link(t, near, far, tunnel.Bulk)
		go func() { _, _ = io.Copy(f, f) }()
		roundTrip(t, e, "on the first carrier")
	})
	t.Run("the peer's closing is told apart", func(t *testing.T) {
		w := newWire(t, tunnel.Config{})
		near, far := tunnels(t, w, tunnel.Config{})
		if err := far.Close(); err != nil {
			t.Fatal(err)
		}
		<-near.Done()
		if !errors.Is(near.Err(), tunnel.ErrClosedByPeer) || !errors.Is(far.Err(), net.ErrClosed) {
			t.Error(near.Err(), far.Err())
		}
	})
}

func TestProbeAndStats(t *testing.T) {
	w := newWire(t, tunnel.Config{})
	near, far := tunnels(t, w, tunnel.Config{})
	if err := errors.Join(near.Probe(t.Context()), far.Probe(t.Context())); err != nil {
		t.Fatal(err)
	}
	s := near.Stats()
	if s.RTT <= 0 || s.BaseRTT <= 0 || s.Version != tunnel.Version || s.Sent == 0 || s.Received == 0 ||
		time.Since(s.LastHeard) > time.Hour {
		t.Errorf("%+v", s)
	}
	if far.Peer().Key != "k" {
		t.Errorf("peer %+v", far.Peer())
	}
}
