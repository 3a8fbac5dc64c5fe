package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

// crumbled makes data frames of one stream, each of size bytes.
func crumbled(id uint32, data []byte, size int) []byte {
	var b []byte
	for piece := range bytesIn(data, size) {
		b = append(b, frame(cmdData, id, piece...)...)
	}
	return b
}

func bytesIn(data []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(size, len(data))
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

// differing makes bytes that differ from those near them.
func differing(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// stalled returns streams that a peer filled with frames of single bytes and
// nobody reads, and the peer's connection.
func stalled(t *testing.T, streams int, data []byte) (net.Conn, *Tunnel, []Stream) {
	t.Helper()
	h := NewHost(Config{})
	t.Cleanup(func() { _ = h.Close() })
	conn, _ := firstCarrier(t, h, Peer{})
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(opening())
	all := make([]Stream, streams)
	for i := range all {
		id := uint32(firstID + 2*i)
		_, _ = conn.Write(opened(id, Interactive))
		if all[i], err = tun.Accept(); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(crumbled(id, data, 1)); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(saying(signal{kind: sigEnd, id: id, value: uint32(len(data))}))
	}
	return conn, tun, all
}

// TestSingleBytesCostNoMoreThanTheWindow sees what a reader that has stopped
// costs when its peer sends byte by byte.
func TestSingleBytesCostNoMoreThanTheWindow(t *testing.T) {
	const streams, size = 2, FirstWindow / 4
	data := differing(size)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // pools let go of what they keep
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	_, tun, all := stalled(t, streams, data)
	if after := heap(); after > before+streams*2*size+1<<20 {
		t.Errorf("%d streams of %d bytes cost %d", streams, size, after-before)
	}
	for i, s := range all {
		var got bytes.Buffer
		var err error
		if i%2 == 0 {
			_, err = io.Copy(&got, s)
		} else {
			_, err = io.Copy(&got, struct{ io.Reader }{s})
		}
		if err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("stream %d: %d bytes, %v", i, got.Len(), err)
		}
	}
	if err := tun.Err(); err != nil {
		t.Error(err)
	}
}

// TestALostCarrierLeavesWhatCame cuts a connection in the middle of a frame that
// waits beside the library.
func TestALostCarrierLeavesWhatCame(t *testing.T) {
	data := differing(2000)
	h := NewHost(Config{})
	defer h.Close()
	conn, _ := firstCarrier(t, h, Peer{})
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(append(opening(), opened(firstID, Bulk)...))
	s, err := tun.Accept()
	if err != nil {
		t.Fatal(err)
	}
	whole := frame(cmdData, firstID, data[1000:]...)
	_, _ = conn.Write(append(crumbled(firstID, data[:1000], 1), whole[:headerSize+300]...))
	_ = conn.Close()
	<-tun.Done()
	if got, err := io.ReadAll(s); !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(got, data[:1300]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestReadersMeetWhatComesInCrumbs has readers of both kinds and deadlines wait
// for, and run behind, frames of all sizes.
func TestReadersMeetWhatComesInCrumbs(t *testing.T) {
	h := NewHost(Config{})
	defer h.Close()
	conn, _ := firstCarrier(t, h, Peer{})
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(append(opening(), opened(firstID, Interactive)...))
	s, err := tun.Accept()
	if err != nil {
		t.Fatal(err)
	}
	data := differing(200_000)
	go func() {
		for i, rest := 0, data; len(rest) > 0; i++ {
			n := min(1+i%300, len(rest))
			if i%4000 < 1000 {
				n = min(1, len(rest))
			}
			_, _ = conn.Write(frame(cmdData, firstID, rest[:n]...))
			rest = rest[n:]
		}
		_, _ = conn.Write(saying(signal{kind: sigEnd, id: firstID, value: uint32(len(data))}))
	}()
	var got bytes.Buffer
	for i := 0; got.Len() < len(data)/2; i++ {
		_ = s.SetReadDeadline(time.Now().Add(time.Duration(1+i%3) * time.Millisecond))
		_, _ = io.CopyN(&got, struct{ io.Reader }{s}, 777)
		if i%5 == 0 {
			time.Sleep(2 * time.Millisecond) // it falls behind
		}
	}
	_ = s.SetReadDeadline(time.Time{})
	if _, err := io.Copy(&slow{Writer: &got}, s); err != nil || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes of %d, %v", got.Len(), len(data), err)
	}
}

// slow is a writer that is behind now and then.
type slow struct {
	io.Writer
	n int
}

func (s *slow) Write(p []byte) (int, error) {
	if s.n++; s.n%100 == 0 {
		time.Sleep(2 * time.Millisecond)
	}
	return s.Writer.Write(p)
}

// TestWindowsCountWhatTheLibraryDoesNotSee sends far more beside the library
// than its own window, and holds what the host says of windows to the rules.
func TestWindowsCountWhatTheLibraryDoesNotSee(t *testing.T) {
	const much = streamWindow
	h := NewHost(Config{})
	defer h.Close()
	conn, result := served(t, h, Peer{})
	if _, err := greet(conn, Config{}.withDefaults(), wantTunnel, tunnelID{}, secret{}); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	limits := make(chan uint32, 1<<16)
	library := &allowance{}
	library.begin()
	go observe(t, conn, library, limits)
	_, _ = conn.Write(append(opening(), opened(firstID, Bulk)...))
	s, err := tun.Accept()
	if err != nil {
		t.Fatal(err)
	}
	sent, limit := uint32(0), uint32(FirstWindow)
	for sent < much {
		from := sent
		for sent < limit {
			n := min(MaxFrame, limit-sent)
			if sent < from+2*maxCrumbs {
				n = 1
			}
			sent += n
			library.sent.Store(sent)
			if _, err := conn.Write(frame(cmdData, firstID, make([]byte, n)...)); err != nil {
				t.Fatalf("%v, %v", err, tun.Err())
			}
		}
		if _, err := io.CopyN(io.Discard, s, int64(sent-from)); err != nil {
			t.Fatalf("%v, %v", err, tun.Err())
		}
		for limit-sent < FirstWindow/2 {
			limit = <-limits
		}
	}
}

// observe follows what a host says of the windows of the first stream.
func observe(t *testing.T, conn net.Conn, library *allowance, limits chan<- uint32) {
	head := make([]byte, headerSize)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		hd, err := parseHeader(head)
		body := make([]byte, hd.length)
		if _, failed := io.ReadFull(conn, body); err != nil || failed != nil {
			return
		}
		switch {
		case hd.cmd == cmdUpdate && hd.id == firstID:
			if !library.update(binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:])) {
				t.Errorf("invalid update: % x", body)
			}
		case hd.cmd == cmdData:
			for len(body) > 0 {
				s, size, err := parseSignal(body)
				if err != nil || size == 0 {
					t.Errorf("signals in pieces: %v", err)
					return
				}
				if s.kind == sigGrant {
					if int32(library.limit()-(s.value+s.window)) < 0 {
						t.Errorf("a grant of %d above %d beyond the library's %d", s.window, s.value, library.limit())
					}
					limits <- s.value + s.window
				}
				body = body[size:]
			}
		}
	}
}
