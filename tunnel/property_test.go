package tunnel_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"slipway/tunnel"
)

// TestRandomInterleavings opens, writes, ends and closes streams of all classes
// from both sides in random order, and cuts carriers. Whatever arrives is a
// beginning of what was sent, and all of it when the end arrives.
func TestRandomInterleavings(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := newWire(t, tunnel.Config{})
		near, far := tunnels(t, w, tunnel.Config{OneCarrier: seed%3 == 0})
		if seed%3 != 0 {
			joined(t, near, far)
		}
		cut := seed%2 == 1
		var all, senders sync.WaitGroup
		for _, ends := range [][2]*tunnel.Tunnel{{near, far}, {far, near}} {
			all.Go(func() { receiveAll(t, ends[1], &all) })
			for i := range 12 {
				class := classes[random.IntN(3)]
				size, piece := random.IntN(2<<20), 1+random.IntN(100_000)
				ending := random.IntN(3)
				senders.Go(func() { sendOne(t, ends[0], class, byte(i), size, piece, ending, cut) })
			}
		}
		if cut {
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
			w.mu.Lock()
			conn := w.conns[random.IntN(len(w.conns))]
			w.mu.Unlock()
			_ = conn.Close()
			time.Sleep(20 * time.Millisecond)
		}
		done := make(chan struct{})
		go func() { senders.Wait(); all.Wait(); close(done) }()
		if !cut {
			senders.Wait()
			for end := time.Now().Add(2 * time.Minute); near.Stats().Streams > 0 ||
				far.Stats().Streams > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("seed %d: streams remain: %+v", seed, near.Stats())
				}
			}
		}
		_ = near.Close()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			buffer := make([]byte, 1<<20)
			t.Fatalf("seed %d hangs\n%s", seed, buffer[:runtime.Stack(buffer, true)])
		}
	}
}

// sendOne sends size bytes of a pattern behind a byte that names it, and ends in
// one of three ways.
func sendOne(t *testing.T, from *tunnel.Tunnel, class tunnel.Class, name byte, size, piece, ending int, cut bool) {
	s, err := from.Open(t.Context(), class)
	if err != nil {
		if !cut {
			t.Error(err)
		}
		return
	}
	defer s.Close()
	data := append([]byte{name}, pattern(name, size)...)
	for len(data) > 0 {
		n, err := s.Write(data[:min(piece, len(data))])
		data = data[n:]
		if err != nil {
			if !cut && ending != 2 {
				t.Errorf("write: %v", err)
			}
			return
		}
	}
	if ending == 0 {
		_ = s.CloseWrite()
		if rest, err := io.ReadAll(s); !cut && (err != nil || string(rest) != "seen") {
			t.Errorf("the answer was %q, %v", rest, err)
		}
	}
}

// receiveAll checks every stream that the peer opens.
func receiveAll(t *testing.T, at *tunnel.Tunnel, all *sync.WaitGroup) {
	for {
		s, err := at.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer s.Close()
			got, err := io.ReadAll(s)
			if len(got) > 1 {
				want := pattern(got[0], len(got)-1)
				if !bytes.Equal(got[1:], want) {
					t.Errorf("%v: wrong bytes among %d", s.Class(), len(got))
				}
			}
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) {
				t.Errorf("read: %v", err)
			}
			_, _ = s.Write([]byte("seen"))
		})
	}
}

func TestIdleStreamsAreCheap(t *testing.T) {
	const streams, limit = 1000, 16 << 20 // bytes, of both sides together
	w := newWire(t, tunnel.Config{})
	near, far := tunnels(t, w, tunnel.Config{})
	joined(t, near, far)
	measure := func() (bytes uint64, goroutines int) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse, runtime.NumGoroutine()
	}
	before, goroutines := measure()
	held := make([]tunnel.Stream, 0, 2*streams)
	for i := range streams {
		a, b := link(t, near, far, classes[i%3])
		_, _ = a.Write([]byte("used once"))
		if _, err := io.ReadFull(b, make([]byte, 9)); err != nil {
			t.Fatal(err)
		}
		held = append(held, a, b)
	}
	after, more := measure()
	if after > before+limit || more > goroutines+8 {
		t.Errorf("%d streams cost %d bytes and %d goroutines", streams, after-before, more-goroutines)
	}
	t.Logf("%d idle streams cost %.2f MiB on both sides together", streams, float64(after-before)/(1<<20))
	for _, s := range held {
		_ = s.Close()
	}
}
