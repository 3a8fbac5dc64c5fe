package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// copying returns what a dialling peer says that its stream carries behind so
// many bytes.
func copying(at uint32, data string) []byte {
	return saying(signal{kind: sigCopy, id: firstID, value: at, data: []byte(data)})
}

// twoCarriers greets a host by hand, twice, and returns the tunnel, both of the
// peer's connections and a stream that the peer has opened.
func twoCarriers(t *testing.T) (tun *Tunnel, first, second net.Conn, s Stream) {
	t.Helper()
	h := NewHost(Config{})
	t.Cleanup(func() { _ = h.Close() })
	first, w := firstCarrier(t, h, Peer{})
	tun, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, result := served(t, h, Peer{})
	if _, err := greet(second, Config{}.withDefaults(), wantJoin, w.ID, w.Secret); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, second) }()
	_, _ = first.Write(append(opening(), opened(firstID, Interactive)...))
	_, _ = second.Write(opening())
	if s, err = tun.Accept(); err != nil {
		t.Fatal(err)
	}
	return tun, first, second, s
}

func reads(t *testing.T, s Stream, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(s, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v, not %q", got, err, want)
	}
}

func TestACopyStandsInForWhatIsLate(t *testing.T) {
	_, first, second, s := twoCarriers(t)
	_, _ = second.Write(copying(9, "of what comes later"))
	_, _ = second.Write(copying(0, "ab"))
	reads(t, s, "ab")
	_, _ = second.Write(copying(0, "ab"))
	_, _ = second.Write(copying(2, "c"))
	reads(t, s, "c")
	_, _ = first.Write(frame(cmdData, firstID, []byte("a")...)) // not cut as the copies were
	_, _ = first.Write(frame(cmdData, firstID, []byte("bcd")...))
	reads(t, s, "d")
	_, _ = second.Write(copying(3, "d"))
	_, _ = first.Write(frame(cmdData, firstID, []byte("ef")...))
	_, _ = first.Write(saying(signal{kind: sigEnd, id: firstID, value: 6}))
	if rest, err := io.ReadAll(s); string(rest) != "ef" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestCopiesThatBreakTheRules(t *testing.T) {
	for name, say := range map[string]func(first, second net.Conn, s Stream){
		"without bytes": func(_, second net.Conn, _ Stream) { _, _ = second.Write(copying(0, "")) },
		"too long": func(_, second net.Conn, _ Stream) {
			_, _ = second.Write(copying(0, string(make([]byte, maxCopy+1))))
		},
		"beyond the window": func(_, second net.Conn, _ Stream) {
			piece := string(make([]byte, maxCopy))
			for at := 0; at <= FirstWindow; at += len(piece) {
				_, _ = second.Write(copying(uint32(at), piece))
			}
		},
		"of bytes that never came by themselves": func(first, second net.Conn, s Stream) {
			_, _ = second.Write(copying(0, "k"))
			reads(t, s, "k")
			_, _ = first.Write(saying(signal{kind: sigEnd, id: firstID, value: 1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			tun, first, second, s := twoCarriers(t)
			go say(first, second, s)
			<-tun.Done()
			if !errors.Is(tun.Err(), ErrProtocol) {
				t.Error(tun.Err())
			}
		})
	}
}

// heldDialer dials a host over pipes; what the first writes can be held up, as
// by a lost packet.
type heldDialer struct {
	pipeDialer
	hold *sync.Mutex
}

type heldConn struct {
	net.Conn
	hold *sync.Mutex
}

func (c heldConn) Write(b []byte) (int, error) {
	c.hold.Lock()
	defer c.hold.Unlock()
	return c.Conn.Write(b)
}

func (d heldDialer) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	conn, err := d.pipeDialer.Dial(ctx, silent)
	if !silent {
		conn = heldConn{conn, d.hold}
	}
	return conn, err
}

// TestKeyStrokesPassALostPacket sees a key stroke arrive while all that its own
// carrier sends is held up, once the path is known to lose packets, and the echo
// come back by both.
func TestKeyStrokesPassALostPacket(t *testing.T) {
	h := NewHost(Config{})
	defer h.Close()
	var hold sync.Mutex
	near, err := Dial(t.Context(), heldDialer{pipeDialer{t, h, Peer{}}, &hold}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := h.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-near.joining
	a, err := near.Open(t.Context(), Interactive)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = a.Write([]byte("1"))
	b, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	reads(t, b, "1")
	if found, asked := far.copies(time.Now()); found || asked {
		t.Error("the far side sends copies unasked")
	}
	near.lossy.Store(time.Now().Add(time.Hour).UnixNano())
	hold.Lock()
	_, _ = a.Write([]byte("23"))
	reads(t, b, "23")
	hold.Unlock()
	if found, asked := far.copies(time.Now()); found || !asked {
		t.Errorf("the far side sends copies: %v of its own, %v asked", found, asked)
	}
	for range 100 { // whichever carrier is first, each byte comes once
		_, _ = a.Write([]byte("45"))
		reads(t, b, "45")
		_, _ = b.Write([]byte("6"))
		reads(t, a, "6")
	}
	if found, asked := near.copies(time.Now()); !found || asked {
		t.Errorf("a copy in return asks for copies")
	}
	_ = a.CloseWrite()
	if rest, err := io.ReadAll(b); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}
