package secure

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/tunnel/cpace"
)

// message is a pairing message as whoever stands on the path sees it.
type message map[string]any

// impostor listens with a key of its own in an agent's place and plays the
// listener's side of a pairing as play says. It knows no code.
func impostor(t *testing.T, play func(net.Conn)) Address {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig(newIdentity(t), protoPair))
	if err != nil {
		t.Fatal(err)
	}
	var playing sync.WaitGroup
	playing.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			playing.Go(func() {
				play(conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		playing.Wait()
	})
	return Address{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port}
}

// answer reads a message and sends the same back with some fields changed.
func answer(conn net.Conn, change message) error {
	heard := message{}
	if err := readMessage(conn, &heard); err != nil {
		return err
	}
	maps.Copy(heard, change)
	return writeMessage(conn, heard)
}

func pairAt(t *testing.T, address Address) (Paired, error) {
	dial := DialConfig{Identity: newIdentity(t), Address: address}
	return Pair(t.Context(), PairConfig{Dial: dial, Code: "42-4821-7390", Name: "laptop"})
}

// deceive has a new laptop pair with what is at address, which must fail.
func deceive(t *testing.T, address Address, want string) {
	t.Helper()
	paired, err := pairAt(t, address)
	if err == nil {
		t.Fatalf("a listener that does not know the code is pinned: %+v", paired)
	}
	wantCode(t, err, want)
}

func TestAReflectedPairingIsNotTrusted(t *testing.T) {
	for name, change := range map[string]message{
		"all of it":         {"status": statusOK},
		"another name":      {"status": statusOK, "info": []byte(`{"name":"lab"}`)},
		"no associated one": {"status": statusOK, "info": []byte{}},
	} {
		t.Run(name, func(t *testing.T) {
			deceive(t, impostor(t, func(conn net.Conn) {
				if answer(conn, change) == nil { // the share is the dialer's own
					_ = answer(conn, message{"status": statusOK, "role": RoleAdmin}) // and so is the tag
				}
			}), "agent_pair_refused")
		})
	}
}

// With a share of its own, a listener without the code has nothing but the
// dialer's tag to send back.
func TestAReflectedTagIsNotTrusted(t *testing.T) {
	deceive(t, impostor(t, func(conn net.Conn) {
		exchange, err := cpace.Start(cpace.Responder, cpace.Input{Password: []byte("00000000")})
		if err != nil {
			return
		}
		if answer(conn, message{"status": statusOK, "share": exchange.Share()}) == nil {
			_ = answer(conn, message{"status": statusOK, "role": RoleAdmin})
		}
	}), "agent_pair_wrong-code")
}

// Two laptops are given the same code, and whoever stands between them passes
// their messages to each other.
func TestTwoDialersDoNotPairWithEachOther(t *testing.T) {
	waiting := make(chan net.Conn, 1)
	address := impostor(t, func(conn net.Conn) {
		select {
		case waiting <- conn: // the first stays open until the second has ended
			<-t.Context().Done()
		case other := <-waiting:
			relay(conn, other)
			_ = other.Close()
		}
	})
	results := make(chan error)
	for range 2 {
		go func() {
			_, err := pairAt(t, address)
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; codeOf(err) != "agent_pair_wrong-code" {
			t.Errorf("a dialer ended with %v", err)
		}
	}
}

// relay passes the messages of two dialers to each other as a listener's.
func relay(a, b net.Conn) {
	for range 2 {
		var fromA, fromB message
		if readMessage(a, &fromA) != nil || readMessage(b, &fromB) != nil {
			return
		}
		fromA["status"], fromB["status"] = statusOK, statusOK
		if writeMessage(a, fromB) != nil || writeMessage(b, fromA) != nil {
			return
		}
	}
}

// badShares are no shares, or ones that would make the key known.
func badShares(t *testing.T) map[string][]byte {
	t.Helper()
	shares := map[string][]byte{"none": nil, "short": make([]byte, 31), "long": make([]byte, 33)}
	for name, text := range map[string]string{
		"the neutral element":         "0000000000000000000000000000000000000000000000000000000000000000",
		"a point of order 2":          "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"a point of order 8":          "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"an element, not canonical":   "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"something outside the group": "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
	} {
		share, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		shares[name] = share
	}
	return shares
}

func TestADialerSendsNoTagForABadShare(t *testing.T) {
	for name, share := range badShares(t) {
		t.Run(name, func(t *testing.T) {
			heard := make(chan error, 1)
			deceive(t, impostor(t, func(conn net.Conn) {
				_ = answer(conn, message{"status": statusOK, "share": share})
				heard <- readMessage(conn, &pairConfirm{})
			}), "agent_connect_version")
			if err := <-heard; err == nil {
				t.Error("the dialer sent a tag, which a guess could be tested against")
			}
		})
	}
}

// pairing is a client that an agent pairs with, message by message.
type pairing struct {
	*tls.Conn
	plate string
	info  []byte
}

func (a *agent) pairing(t *testing.T, offer Offer) pairing {
	t.Helper()
	c, err := parseCode(offer.Code)
	if err != nil {
		t.Fatal(err)
	}
	config := clientConfig(newIdentity(t), protoPair, func(proven) error { return nil })
	conn, err := tls.Dial("tcp", a.Addr().String(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return pairing{conn, c.plate, []byte(`{"name":"x"}`)}
}

func (p pairing) hello(t *testing.T) pairHello {
	t.Helper()
	exchange, err := cpace.Start(cpace.Initiator, cpace.Input{Password: []byte("00000000")})
	if err != nil {
		t.Fatal(err)
	}
	return pairHello{Version: pairVersion, Plate: p.plate, Share: exchange.Share(), Info: p.info}
}

// silent fails unless the agent ends the connection without a word, or with a
// refusal.
func (p pairing) silent(t *testing.T) {
	t.Helper()
	var reply pairReply
	if err := readMessage(p, &reply); err == nil && reply.Status == statusOK || isTimeout(err) {
		t.Errorf("it was answered: %+v, %v", reply, err)
	}
}

// stillGood checks that no guess was counted and nobody listed.
func (a *agent) stillGood(t *testing.T, offer Offer) {
	t.Helper()
	if n, list := len(a.pairings.failures), a.clients.List(); n != 0 || len(list) != 0 {
		t.Errorf("%d guesses are counted, the agent lists %+v", n, list)
	}
	if _, err := a.pair(t, newIdentity(t), offer.Code); err != nil {
		t.Errorf("the code is no longer good: %v", err)
	}
}

func TestAListenerAnswersNoBadShare(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	for name, share := range badShares(t) {
		t.Run(name, func(t *testing.T) {
			p := a.pairing(t, offer)
			hello := p.hello(t)
			hello.Share = share
			if err := writeMessage(p, hello); err != nil {
				t.Fatal(err)
			}
			p.silent(t)
		})
	}
	a.stillGood(t, offer)
}

func TestMessagesOutOfTurnEndThePairing(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	for name, turns := range map[string]func(pairing) []any{
		"the tag first":     func(p pairing) []any { return []any{pairConfirm{Tag: make([]byte, cpace.TagSize)}} },
		"a reply":           func(p pairing) []any { return []any{pairReply{statusOK, pairVersion, nil, p.info}} },
		"a result":          func(pairing) []any { return []any{pairResult{Status: statusOK, Role: RoleAdmin}} },
		"a tag, then hello": func(p pairing) []any { return []any{pairConfirm{}, p.hello(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			p := a.pairing(t, offer)
			for _, m := range turns(p) {
				_ = writeMessage(p, m) // it may have ended by then
			}
			p.silent(t)
		})
	}
	a.stillGood(t, offer)
}

// A second hello is read as a confirmation without a tag, which is a guess: with
// it nothing can be tried for nothing.
func TestWhatIsNoTagIsAGuess(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	a.offer(t) // keeps the port open for pairing
	for i, wrong := range []func(pairing, pairReply) any{
		func(p pairing, _ pairReply) any { return p.hello(t) },
		func(pairing, pairReply) any { return pairConfirm{} },
		func(pairing, pairReply) any { return pairConfirm{Tag: make([]byte, cpace.TagSize)} },
		func(_ pairing, r pairReply) any { return pairConfirm{Tag: r.Share} },
		func(_ pairing, r pairReply) any { return r },
	} {
		p := a.pairing(t, offer)
		if err := writeMessage(p, p.hello(t)); err != nil {
			t.Fatal(err)
		}
		var reply pairReply
		if err := readMessage(p, &reply); err != nil || reply.Status != statusOK {
			t.Fatalf("the hello was answered %+v, %v", reply, err)
		}
		if err := writeMessage(p, wrong(p, reply)); err != nil {
			t.Fatal(err)
		}
		var result pairResult
		if err := readMessage(p, &result); err != nil || result.Status != statusWrong || result.Tag != nil {
			t.Errorf("guess %d was answered %+v, %v", i, result, err)
		}
		a.clock.add(maxFailures * failureWait)
	}
	_, err := a.pair(t, newIdentity(t), offer.Code)
	wantCode(t, err, "agent_pair_expired")
}

// A listener that knows the code says who the client belongs to. What it says is
// kept and shown, so it must be as the list of clients would take it.
func TestAnAgentNamesOnlyValidOwnersAndRoles(t *testing.T) {
	c, session, laptop := code{"42", "48217390"}, []byte("session"), newIdentity(t).Fingerprint()
	for name, result := range map[string]pairResult{
		"good":                  {Owner: "ann", Role: RoleUser},
		"none":                  {},
		"an escape sequence":    {Owner: "\x1b]0;owned\a", Role: RoleUser},
		"two lines":             {Owner: "ann\nhost: evil", Role: RoleUser},
		"a very long owner":     {Owner: strings.Repeat("a", 65), Role: RoleUser},
		"a role that is no one": {Owner: "ann", Role: "root"},
	} {
		near, far := net.Pipe()
		go func() {
			defer far.Close() //nolint:errcheck // a pipe
			info := []byte(`{"name":"lab"}`)
			var hello pairHello
			_ = readMessage(far, &hello)
			exchange, err := cpace.Start(cpace.Responder, cpace.Input{
				Password: []byte(c.secret), Channel: channelOf(laptop, "l"), Session: session, Associated: info,
			})
			if err != nil {
				return
			}
			done, err := exchange.Finish(hello.Share, hello.Info)
			if err != nil {
				return
			}
			_ = writeMessage(far, pairReply{Status: statusOK, Version: pairVersion, Share: exchange.Share(),
				Info: info})
			_ = readMessage(far, &pairConfirm{})
			result.Status, result.Tag = statusOK, done.Tag()
			_ = writeMessage(far, result)
		}()
		_, err := pairOver(near, session, laptop, "l", c, "laptop")
		if good := name == "good" || name == "none"; (err == nil) != good || !good && !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
		_ = near.Close()
	}
}

func TestVersionsThatDoNotPairSaySo(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	for _, version := range []int{0, 1, 3} {
		p := a.pairing(t, offer)
		hello := p.hello(t)
		hello.Version = version
		var reply pairReply
		err := errors.Join(writeMessage(p, hello), readMessage(p, &reply))
		if err != nil || reply.Status != statusVersion || reply.Share != nil {
			t.Errorf("version %d was answered %+v, %v", version, reply, err)
		}
		deceive(t, impostor(t, func(conn net.Conn) {
			_ = answer(conn, message{"status": statusOK, "version": version})
		}), "agent_connect_version")
	}
	if got := statusError("of a later version").fault(); got.Code != "agent_pair_refused" || got.Hint == "" {
		t.Errorf("an unknown status says %+v", got)
	}
	a.stillGood(t, offer)
}

// cutter ends a connection after so many bytes in one direction.
type cutter struct {
	net.Conn
	in, out atomic.Int64
}

func (c *cutter) Read(p []byte) (int, error) {
	left := c.in.Load()
	if left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.in.Add(-int64(n))
	return n, err
}

func (c *cutter) Write(p []byte) (int, error) {
	left := c.out.Load()
	n, err := c.Conn.Write(p[:min(int64(len(p)), left)])
	c.out.Add(-int64(n))
	if err == nil && n < len(p) {
		_ = c.Close()
		err = io.ErrShortWrite
	}
	return n, err
}

// TestACutPairingTrustsNobody cuts the connection at many places. The dialer
// trusts the agent only where all has come through; the agent lists the dialer
// only where its tag has arrived.
func TestACutPairingTrustsNobody(t *testing.T) {
	const whole = 1 << 20
	a := startAgent(t, nil)
	pair := func(offer Offer, in, out int64) (*cutter, error) {
		c := &cutter{}
		c.in.Store(in)
		c.out.Store(out)
		_, err := Pair(soon(t), PairConfig{Code: offer.Code, Name: "laptop", Dial: DialConfig{
			Identity: newIdentity(t), Address: a.address(false),
			Network: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
				c.Conn = conn
				return c, err
			},
		}})
		return c, err
	}
	// What a pairing takes, by far the most of it the handshake of TLS. An ECDSA or
	// a ticket of another size may make the next one differ by some bytes.
	c, err := pair(a.offer(t), whole, whole)
	if err != nil {
		t.Fatal(err)
	}
	in, out := whole-c.in.Load(), whole-c.out.Load()
	listed := len(a.clients.List())
	offer := a.offer(t)
	for _, part := range []int64{1, 20, 40, 60, 80, 90, 95, 97} {
		for _, at := range [][2]int64{{in * part / 100, whole}, {whole, out * part / 100}} {
			if _, err := pair(offer, at[0], at[1]); err == nil {
				t.Errorf("cut after %d bytes in and %d out, of %d and %d, it succeeded", at[0], at[1], in, out)
			}
			waitFor(t, "the agent to end the connection", func() bool {
				a.gate.mu.Lock()
				defer a.gate.mu.Unlock()
				return a.gate.count == 0
			})
			if n := len(a.clients.List()); n != listed {
				listed = n
				if at[1] != whole {
					t.Errorf("cut after %d of %d bytes out, the agent lists the client", at[1], out)
				}
				offer = a.offer(t)
			}
		}
	}
	if n := len(a.pairings.failures); n != 0 {
		t.Errorf("%d guesses are counted", n)
	}
}

func FuzzListenersMessages(f *testing.F) {
	c := code{"42", "48217390"}
	session := bytes.Repeat([]byte{7}, 32)
	f.Add([]byte{0, 2, '{', '}'})
	f.Add(fmt.Appendf(nil, "\x00\x2b%s", `{"status":"ok","version":2,"share":"","x":1}`))
	f.Add(append([]byte{0x0f, 0xff}, bytes.Repeat([]byte{'['}, 0xfff)...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		stream := struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(raw), io.Discard}
		if paired, err := pairOver(stream, session, "dialer", "listener", c, "laptop"); err == nil {
			t.Fatalf("%x is trusted: %+v", raw, paired)
		}
	})
}
