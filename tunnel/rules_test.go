package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// attacked greets a host and then says what a peer must not.
func attacked(t *testing.T, c Config, say func(conn net.Conn)) error {
	t.Helper()
	h := NewHost(c)
	defer h.Close()
	conn, _ := firstCarrier(t, h, Peer{})
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	say(conn)
	select {
	case <-tun.Done():
		return tun.Err()
	case <-time.After(time.Minute):
		t.Fatal("the tunnel went on")
		return nil
	}
}

// frame makes one frame of the library's.
func frame(cmd command, id uint32, body ...byte) []byte {
	b := []byte{frameVersion, byte(cmd)}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(body)))
	b = binary.LittleEndian.AppendUint32(b, id)
	return append(b, body...)
}

// voiceID is the number of the stream that carries a dialling peer's signals;
// the next that it opens is the first of its own.
const (
	voiceID = 3
	firstID = 5
)

// saying makes the frame that carries signals of a dialling peer.
func saying(signals ...signal) []byte {
	var b []byte
	for _, s := range signals {
		b = s.append(b)
	}
	return frame(cmdData, voiceID, b...)
}

// opening is what a dialling peer begins with.
func opening() []byte { return frame(cmdOpen, voiceID) }

// opened makes what opens a stream of a dialling peer.
func opened(id uint32, class Class) []byte {
	return append(frame(cmdOpen, id), saying(signal{kind: sigOpen, id: id, value: uint32(class)})...)
}

func update(id, consumed, window uint32) []byte {
	return frame(cmdUpdate, id, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, consumed),
		window)...)
}

func TestPeersThatBreakTheRules(t *testing.T) {
	data := func(n int) []byte { return frame(cmdData, firstID, make([]byte, n)...) }
	stream := opened(firstID, Bulk)
	for name, frames := range map[string][][]byte{
		"an oversized frame":                  {stream, data(MaxFrame + 1)},
		"an empty data frame":                 {stream, data(0)},
		"another frame version":               {{1, 0, 0, 0, firstID, 0, 0, 0}},
		"an unknown command":                  {frame(40, 0)},
		"a frame with a body that it has not": {frame(cmdNone, 0, 1)},
		"an update of the wrong size":         {stream, frame(cmdUpdate, firstID, 1, 2, 3)},
		"an update of bytes never sent":       {stream, update(firstID, 77, streamWindow)},
		"an update that narrows the window":   {stream, update(firstID, 0, 9)},
		"an update that narrows the signals":  {update(2, 0, 9)},
		"an unknown signal":                   {frame(cmdData, voiceID, 40, 0)},
		"a signal of the wrong size": {frame(cmdData, voiceID,
			append([]byte{byte(sigPing), 9}, make([]byte, 9)...)...)},
		"a class that does not exist": {opened(firstID, 9)},
		"a class beyond a byte": {frame(cmdOpen, firstID),
			saying(signal{kind: sigOpen, id: firstID, value: 257})},
		"a class twice": {stream,
			saying(signal{kind: sigOpen, id: firstID, value: uint32(Bulk)})},
		"a class of a stream that never began":  {saying(signal{kind: sigOpen, id: 9, value: uint32(Bulk)})},
		"a signal of a stream without a class":  {frame(cmdOpen, firstID), saying(signal{kind: sigStop, id: firstID})},
		"a stream of the host's own numbers":    {opened(4, Bulk)},
		"the same stream twice":                 {stream, stream},
		"a stream of a number that went before": {opened(9, Bulk), stream},
		"more bytes than granted":               {stream, bytes.Repeat(data(MaxFrame), FirstWindow/MaxFrame+1)},
		"bytes after the end":                   {stream, saying(signal{kind: sigEnd, id: firstID}), data(1)},
		"an end before all its bytes":           {stream, saying(signal{kind: sigEnd, id: firstID, value: 1})},
		"an end of fewer bytes than came":       {stream, data(2), saying(signal{kind: sigEnd, id: firstID, value: 1})},
		"a grant of bytes never sent": {stream,
			saying(signal{kind: sigGrant, id: firstID, value: 77, window: FirstWindow})},
		"a grant beyond the library's window": {stream,
			saying(signal{kind: sigGrant, id: firstID, window: FirstWindow + 1})},
		"an answer to a mark never sent": {saying(signal{kind: sigAck, number: 1 << 40})},
		"an answer to a third carrier":   {saying(signal{kind: sigAck, id: 2})},
	} {
		t.Run(name, func(t *testing.T) {
			err := attacked(t, Config{}, func(conn net.Conn) {
				_, _ = conn.Write(append(opening(), bytes.Join(frames, nil)...))
			})
			if !errors.Is(err, ErrProtocol) {
				t.Error(err)
			}
		})
	}
	t.Run("signals of a later version are skipped", func(t *testing.T) {
		err := attacked(t, Config{}, func(conn net.Conn) {
			_, _ = conn.Write(opening())
			_, _ = conn.Write(frame(cmdData, voiceID, byte(sigUnkept)+5, 3, 1, 2, 3, byte(sigBye), 0))
		})
		if !errors.Is(err, ErrClosedByPeer) {
			t.Error(err)
		}
	})
	t.Run("signals may come in pieces", func(t *testing.T) {
		err := attacked(t, Config{}, func(conn net.Conn) {
			_, _ = conn.Write(opening())
			for _, b := range append(signal{kind: sigPing, number: 1}.append(nil), byte(sigBye), 0) {
				_, _ = conn.Write(frame(cmdData, voiceID, b))
			}
		})
		if !errors.Is(err, ErrClosedByPeer) {
			t.Error(err)
		}
	})
	t.Run("bytes of a stream that never began are dropped", func(t *testing.T) {
		err := attacked(t, Config{}, func(conn net.Conn) {
			_, _ = conn.Write(append(opening(), data(MaxFrame)...))
			_, _ = conn.Write(saying(signal{kind: sigBye}))
		})
		if !errors.Is(err, ErrClosedByPeer) {
			t.Error(err)
		}
	})
}

// TestOnlyTheSignalEndsAStream has the library's own end of a stream come before
// the bytes and the signal.
func TestOnlyTheSignalEndsAStream(t *testing.T) {
	h := NewHost(Config{})
	defer h.Close()
	conn, _ := firstCarrier(t, h, Peer{})
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(append(append(opening(), opened(firstID, Bulk)...), frame(cmdOver, firstID)...))
	s, err := tun.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(frame(cmdData, firstID, 'a', 'b'))
	_, _ = conn.Write(saying(signal{kind: sigEnd, id: firstID, value: 2}))
	if got, err := io.ReadAll(s); string(got) != "ab" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := s.Write([]byte("answer")); err != nil {
		t.Error(err)
	}
}

// TestSignalsDoNotPileUp sees that no more is read while signals wait.
func TestSignalsDoNotPileUp(t *testing.T) {
	h := NewHost(Config{})
	defer h.Close()
	conn, _ := firstCarrier(t, h, Peer{})
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pongs := make([]signal, 1000)
	for i := range pongs {
		pongs[i] = signal{kind: sigPong}
	}
	words := saying(pongs...)
	_, _ = conn.Write(opening())
	tun.mu.Lock() // which acting upon a pong waits for
	_ = conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	written := 0
	for err == nil && written < 4*maxUnread {
		var n int
		n, err = conn.Write(words)
		written += n
	}
	tun.mu.Unlock()
	if !errors.Is(err, os.ErrDeadlineExceeded) || written > 2*maxUnread {
		t.Errorf("%d bytes of signals were taken in, %v", written, err)
	}
}

func TestFloodOfStreams(t *testing.T) {
	t.Run("streams beyond the limit are reset and the others live", func(t *testing.T) {
		h := NewHost(Config{MaxStreams: 4})
		defer h.Close()
		near, err := Dial(t.Context(), pipeDialer{t, h, Peer{}}, Config{OneCarrier: true})
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		for range 4 {
			if _, err := near.Open(t.Context(), Control); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := near.Open(t.Context(), Control); !errors.Is(err, ErrTooManyStreams) {
			t.Error(err)
		}
		near.mu.Lock()
		near.allowed = 5 // a peer that does not care
		near.mu.Unlock()
		s, err := near.Open(t.Context(), Control)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrTooManyStreams) {
			t.Error(err)
		}
		if err := near.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a peer that does not stop is cut off", func(t *testing.T) {
		h := NewHost(Config{MaxStreams: 4})
		defer h.Close()
		conn, result := served(t, h, Peer{})
		if _, err := greet(conn, Config{}.withDefaults(), wantTunnel, tunnelID{}, secret{}); err != nil {
			t.Fatal(err)
		}
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		tun, _ := h.Accept(t.Context())
		_, _ = conn.Write(opening())
		for id := uint32(firstID); id < 4*maxRefusals; id += 2 { // and nothing of the answers is read
			if _, err := conn.Write(opened(id, Control)); err != nil {
				break
			}
		}
		<-tun.Done()
		if !errors.Is(tun.Err(), ErrProtocol) {
			t.Error(tun.Err())
		}
	})
	t.Run("streams without a class are a flood too", func(t *testing.T) {
		err := attacked(t, Config{MaxStreams: 4}, func(conn net.Conn) {
			_, _ = conn.Write(opening())
			for id := uint32(firstID); id < 4*maxRefusals; id += 2 {
				if _, err := conn.Write(frame(cmdOpen, id)); err != nil {
					break
				}
			}
		})
		if !errors.Is(err, ErrProtocol) {
			t.Error(err)
		}
	})
}
