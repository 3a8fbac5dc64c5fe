package tunnel

import (
	"bytes"
	"io"
	"net"
	"testing"
)

func FuzzHeader(f *testing.F) {
	f.Add(frame(cmdData, 7, 1, 2, 3, 4, 5))
	f.Add(update(1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		if again := frame(h.cmd, h.id, make([]byte, h.length)...); !bytes.Equal(again[:headerSize], b[:headerSize]) {
			t.Errorf("%x became %x", b[:headerSize], again[:headerSize])
		}
		if h.length > MaxFrame || h.cmd == cmdData && h.length == 0 {
			t.Errorf("command %d of %d bytes", h.cmd, h.length)
		}
	})
}

func FuzzSignal(f *testing.F) {
	for k := sigOpen; k <= sigBye; k++ {
		f.Add(signal{kind: k, id: 1, value: 2, window: 3, number: 4, at: 5}.append(nil))
	}
	f.Add(signal{kind: sigCopy, id: 1, value: 2, asked: true, data: []byte("key")}.append(nil))
	f.Add([]byte{byte(sigUnkept) + 9, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, n, err := parseSignal(b)
		if err != nil || n == 0 {
			return
		}
		if n > len(b) || n != signalHead+int(b[1]) {
			t.Fatalf("%d bytes of %d", n, len(b))
		}
		if s.kind > sigCopy || s.kind == sigCopy && b[signalHead+8] > 1 {
			return
		}
		if again := s.append(nil); !bytes.Equal(again, b[:n]) {
			t.Errorf("%x became %x", b[:n], again)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(encode(hello{Versions: versionRange{1, 2}, Want: wantJoin, Streams: 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			return
		}
		if again := encode(h); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func FuzzWelcome(f *testing.F) {
	f.Add(encode(welcome{Versions: versionRange{1, 2}, Version: 2, Streams: 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := parseWelcome(b)
		if err != nil {
			return
		}
		if again := encode(w); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(helloMagic + "\x02\x00ab"))
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := receiveMessage(bytes.NewReader(b))
		if err == nil && len(body) > maxHello {
			t.Errorf("a message of %d bytes", len(body))
		}
	})
}

// FuzzFrames feeds a tunnel whatever a greeted peer may say. It must neither
// panic nor hang, and what its streams deliver is bounded by what came in.
func FuzzFrames(f *testing.F) {
	data := frame(cmdData, firstID, 1, 2, 3)
	for _, frames := range [][][]byte{
		{opened(firstID, Bulk), data},
		{opened(firstID, Control), data, saying(signal{kind: sigEnd, id: firstID, value: 3},
			signal{kind: sigStop, id: firstID})},
		{saying(signal{kind: sigMark, number: 5}, signal{kind: sigAck, at: 3}, signal{kind: sigPing},
			signal{kind: sigPong})},
		{opened(firstID, Interactive), update(firstID, 0, streamWindow),
			saying(signal{kind: sigGrant, id: firstID, window: 1 << 20}), frame(cmdOver, firstID)},
		{opened(firstID, Bulk), saying(signal{kind: sigReset, id: firstID, value: 2}, signal{kind: sigBye})},
		{opened(firstID, Control), saying(signal{kind: sigCopy, id: firstID, data: []byte{1, 2}}), data,
			saying(signal{kind: sigEnd, id: firstID, value: 3})},
	} {
		f.Add(append(opening(), bytes.Join(frames, nil)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, theirs := net.Pipe()
		tun := newTunnel(Config{}.withDefaults(), theirs, Peer{}, Version, 8, false)
		close(tun.joining)
		tun.run()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		go func() {
			for {
				s, err := tun.Accept()
				if err != nil {
					return
				}
				go func() {
					defer s.Close()
					if n, _ := io.Copy(io.Discard, s); n > int64(len(b)) {
						t.Errorf("%d bytes of %d", n, len(b))
					}
				}()
			}
		}()
		_, _ = ours.Write(b)
		_ = ours.Close()
		<-tun.Done()
		_ = tun.Close()
	})
}
