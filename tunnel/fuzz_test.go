package tunnel

import (
	"bytes"
	"io"
	"net"
	"testing"
)

func FuzzHeader(f *testing.F) {
	f.Add(appendHeader(nil, cmdData, 5, 7))
	f.Add(appendNumber(nil, cmdMark, 1, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		if again := appendHeader(nil, h.cmd, h.length, h.id); !bytes.Equal(again, b[:headerSize]) {
			t.Errorf("%x became %x", b[:headerSize], again)
		}
		if h.cmd == cmdData && (h.length == 0 || h.length > MaxFrame) {
			t.Errorf("a data frame of %d bytes", h.length)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(hello{versions: versionRange{1, 2}, want: wantJoin, streams: 3}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			return
		}
		if again := h.encode(); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func FuzzWelcome(f *testing.F) {
	f.Add(welcome{versions: versionRange{1, 2}, version: 2, streams: 3}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := parseWelcome(b)
		if err != nil {
			return
		}
		if again := w.encode(); !bytes.Equal(again, b[:len(again)]) {
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
	data := append(appendHeader(nil, cmdData, 3, 1), "abc"...)
	f.Add(append(openFrame(nil, 1, Bulk), data...))
	f.Add(append(appendHeader(append(openFrame(nil, 1, Control), data...), cmdEnd, 0, 1), appendHeader(nil, cmdStop, 0, 1)...))
	f.Add(appendAck(appendNumber(nil, cmdMark, 0, 5), 0, 0, 3))
	f.Add(appendHeader(appendNumber(openFrame(nil, 3, Interactive), cmdGrant, 3, 1<<40), cmdBye, 0, 0))
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
