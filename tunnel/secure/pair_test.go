package secure

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/cpace"
)

func (a *agent) offer(t *testing.T) Offer {
	t.Helper()
	o, err := a.pairings.Offer(Grant{Owner: "ann", Role: RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhatHappensIsObserved(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	a := startAgent(t, func(c *ListenConfig) {
		c.Observe = func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			if !strings.HasPrefix(e.Address, "127.0.0.1:") || !ValidFingerprint(e.Key) {
				t.Errorf("the event is %+v", e)
			}
			seen = append(seen, string(e.Kind)+" "+e.Name)
		}
	})
	laptop, stranger := newIdentity(t), newIdentity(t)
	offer := a.offer(t)
	_, _ = a.pair(t, stranger, wrong(offer.Code))
	_, _ = a.pair(t, stranger, wrong(offer.Code)) // too soon
	a.clock.add(failureWait)
	if _, err := a.pair(t, laptop, offer.Code); err != nil {
		t.Fatal(err)
	}
	a.connect(t, a.dialer(t, laptop, nil))
	next, err := laptop.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	a.connect(t, a.dialer(t, next, nil))
	conn, err := a.dialer(t, stranger, nil).Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Read(make([]byte, 1))
	const want = "wrong-code laptop, no-code laptop, paired laptop, connected laptop, key-moved laptop, connected " +
		"laptop, refused "
	waitFor(t, want, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(seen, ", ") == want
	})
}

func (a *agent) pair(t *testing.T, i *Identity, text string) (Paired, error) {
	t.Helper()
	return Pair(soon(t), PairConfig{Dial: DialConfig{Identity: i, Address: a.address(false)}, Code: text,
		Name: "laptop"})
}

// wrong is a code for the same offer that is not its code.
func wrong(text string) string {
	last := text[len(text)-1]
	return text[:len(text)-1] + string('0'+(last-'0'+1)%10)
}

func TestACodeMakesTwoClientsKnownToOneAnother(t *testing.T) {
	for _, web := range []bool{false, true} {
		a, laptop := startAgent(t, nil), newIdentity(t)
		offer := a.offer(t)
		typed := " " + strings.ReplaceAll(offer.Code, "-", " ")
		paired, err := Pair(soon(t), PairConfig{Dial: DialConfig{Identity: laptop, Address: a.address(web)},
			Code: typed, Name: "laptop"})
		if err != nil {
			t.Fatal(err)
		}
		if want := (Paired{Key: a.identity.Fingerprint(), Name: "lab", Owner: "ann", Role: RoleAdmin}); paired != want {
			t.Errorf("the laptop knows %+v", paired)
		}
		client := <-offer.Taken
		if client.Key != laptop.Fingerprint() || client.Name != "laptop" || client.Owner != "ann" ||
			client.Role != RoleAdmin {
			t.Errorf("the agent knows %+v", client)
		}
		conn, carrier := a.connect(t, a.dialer(t, laptop, func(c *DialConfig) { c.Key = paired.Key }))
		exchange(t, conn, carrier)
	}
}

func TestACodeIsGoodOnce(t *testing.T) {
	a := startAgent(t, nil)
	offer, other := a.offer(t), a.offer(t)
	if _, err := a.pair(t, newIdentity(t), offer.Code); err != nil {
		t.Fatal(err)
	}
	_, err := a.pair(t, newIdentity(t), offer.Code)
	wantCode(t, err, "agent_pair_expired")
	if _, err := a.pair(t, newIdentity(t), other.Code); err != nil {
		t.Errorf("another code is no longer good: %v", err)
	}
	_, err = a.pair(t, newIdentity(t), other.Code)
	wantCode(t, err, "agent_pair_expired")
	if n := len(a.clients.List()); n != 2 {
		t.Errorf("%d clients are listed", n)
	}
}

func TestCodesExpire(t *testing.T) {
	a := startAgent(t, nil)
	old := a.offer(t)
	a.clock.add(OfferTTL)
	_, err := a.pair(t, newIdentity(t), old.Code)
	wantCode(t, err, "agent_pair_expired")
	a.offer(t)
	if _, err = a.pair(t, newIdentity(t), old.Code); err == nil {
		t.Error("an expired code was accepted")
	}
}

func TestGuessingEndsTheOffer(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	a.offer(t) // keeps the port open for pairing
	for i := range maxFailures {
		_, err := a.pair(t, newIdentity(t), wrong(offer.Code))
		wantCode(t, err, "agent_pair_wrong-code")
		if i == 0 {
			_, err := a.pair(t, newIdentity(t), offer.Code)
			wantCode(t, err, "agent_pair_expired")
		}
		a.clock.add(time.Duration(i+1) * failureWait)
	}
	_, err := a.pair(t, newIdentity(t), offer.Code)
	wantCode(t, err, "agent_pair_expired")
	if n := len(a.clients.List()); n != 0 {
		t.Errorf("%d clients are listed", n)
	}
}

func TestGuessesAtOneTimeAreCountedOneByOne(t *testing.T) {
	a := startAgent(t, func(c *ListenConfig) { c.PerAddress = 64 })
	offer := a.offer(t)
	a.offer(t)
	results := make(chan error)
	for range 20 {
		go func() {
			_, err := a.pair(t, newIdentity(t), wrong(offer.Code))
			results <- err
		}()
	}
	wrongs := 0
	for range 20 {
		switch err := <-results; codeOf(err) {
		case "agent_pair_wrong-code":
			wrongs++
		case "agent_pair_expired":
		default:
			t.Errorf("a guess ended with %v", err)
		}
	}
	if wrongs != 1 {
		t.Errorf("%d of 20 guesses at one time were judged, not 1", wrongs)
	}
}

func TestGuessingAtManyOffersStopsPairing(t *testing.T) {
	a := startAgent(t, nil)
	for a.clock.now().Before(newClock().now().Add(30 * time.Minute)) {
		offer, err := a.pairings.Offer(Grant{})
		if err != nil {
			wantCode(t, err, "agent_pair_refused")
			break
		}
		for range maxFailures {
			_, _ = a.pair(t, newIdentity(t), wrong(offer.Code))
			a.clock.add(maxFailures * failureWait)
		}
	}
	if n := len(a.pairings.failures); n != maxAllFailures {
		t.Errorf("pairing stopped after %d wrong codes", n)
	}
	a.clock.add(failuresKept)
	if _, err := a.pair(t, newIdentity(t), a.offer(t).Code); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

func TestABrokenOffGuessTellsNothingAndCostsNothing(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	c, err := parseCode(offer.Code)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * maxFailures {
		conn, err := tls.Dial("tcp", a.Addr().String(),
			clientConfig(newIdentity(t), protoPair, func(proven) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		share := make([]byte, 32)
		share[0] = 2 // some bytes; the answer does not depend on the code
		_ = writeMessage(conn, pairHello{Version: pairVersion, Plate: c.plate, Share: share,
			Info: []byte(`{"name":"x"}`)})
		_ = conn.Close()
	}
	if _, err := a.pair(t, newIdentity(t), offer.Code); err != nil {
		t.Errorf("the code is no longer good: %v", err)
	}
}

// middle stands between a laptop and an agent with a key of its own and passes
// every pairing message on: the code's owner types the right code.
func middle(t *testing.T, a *agent) (address Address, over chan struct{}) {
	t.Helper()
	identity := newIdentity(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig(identity, protoPair))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	over = make(chan struct{})
	go func() {
		defer close(over)
		near, err := listener.Accept()
		if err != nil {
			return
		}
		defer near.Close()
		far, err := tls.Dial("tcp", a.Addr().String(),
			clientConfig(identity, protoPair, func(proven) error { return nil }))
		if err != nil {
			return
		}
		defer far.Close()
		go func() {
			_, _ = io.Copy(far, near)
			_ = far.CloseWrite()
		}()
		_, _ = io.Copy(near, far)
	}()
	return Address{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port}, over
}

func TestAManInTheMiddleGainsNothing(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	offer := a.offer(t)
	address, over := middle(t, a)
	_, err := Pair(soon(t), PairConfig{Dial: DialConfig{Identity: laptop, Address: address}, Code: offer.Code,
		Name: "laptop"})
	wantCode(t, err, "agent_pair_wrong-code")
	<-over
	if n := len(a.clients.List()); n != 0 {
		t.Errorf("the agent lists %+v", a.clients.List())
	}
}

func TestSomebodyWithoutTheCodeIsNotTrusted(t *testing.T) {
	// The agent's address leads to somebody else, who plays the whole protocol
	// without knowing the code and claims that it was right.
	theirs := newIdentity(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", serverConfig(theirs, protoPair))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var hello pairHello
		if err := readMessage(conn, &hello); err != nil {
			return
		}
		exchange, err := cpace.Start(cpace.Responder, cpace.Input{Password: []byte("00000000")})
		if err != nil {
			return
		}
		reply := pairReply{Status: statusOK, Version: pairVersion, Share: exchange.Share(),
			Info: []byte(`{"name":"lab"}`)}
		_ = writeMessage(conn, reply)
		var confirm pairConfirm
		_ = readMessage(conn, &confirm)
		_ = writeMessage(conn, pairResult{Status: statusOK, Tag: confirm.Tag, Role: RoleAdmin})
	}()
	_, err = Pair(soon(t), PairConfig{
		Dial: DialConfig{Identity: newIdentity(t),
			Address: Address{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port}},
		Code: "42-4821-7390", Name: "laptop",
	})
	wantCode(t, err, "agent_pair_wrong-code")
}

func TestARecordedPairingCannotBePlayedAgain(t *testing.T) {
	a, identity := startAgent(t, nil), newIdentity(t)
	c, err := parseCode(a.offer(t).Code)
	if err != nil {
		t.Fatal(err)
	}
	dial := func() (*tls.Conn, []byte) {
		conn, err := tls.Dial("tcp", a.Addr().String(),
			clientConfig(identity, protoPair, func(proven) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		session, err := sessionOf(conn)
		if err != nil {
			t.Fatal(err)
		}
		return conn, session
	}
	conn, session := dial()
	recorded := &recorder{Conn: conn}
	if _, err := pairOver(recorded, session, identity.Fingerprint(), a.identity.Fingerprint(), c,
		"laptop"); err != nil {
		t.Fatal(err)
	}
	// The worst case: TLS hid nothing, the same client sends it, and the very
	// same code is out again.
	a.pairings.mu.Lock()
	a.pairings.offers[c.plate] = &offer{secret: c.secret, expires: a.clock.now().Add(OfferTTL),
		taken: make(chan Client, 1)}
	a.pairings.mu.Unlock()
	if err := a.clients.Revoke(identity.Fingerprint()); err != nil {
		t.Fatal(err)
	}
	again, _ := dial()
	var reply pairReply
	for i, message := range recorded.written {
		if _, err := again.Write(message); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := readMessage(again, &reply); err != nil || reply.Status != statusOK {
				t.Fatalf("the first message was answered %+v, %v", reply, err)
			}
		}
	}
	var result pairResult
	if err := readMessage(again, &result); err != nil || result.Status != statusWrong {
		t.Errorf("the recording was answered %+v, %v", result, err)
	}
	if n := len(a.clients.List()); n != 0 {
		t.Errorf("%d clients are listed", n)
	}
}

// recorder keeps what is written, message by message.
type recorder struct {
	net.Conn
	written [][]byte
}

func (r *recorder) Write(p []byte) (int, error) {
	r.written = append(r.written, slices.Clone(p))
	return r.Conn.Write(p)
}

func TestUnreadablePairingMessagesEndTheConnection(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	for name, raw := range map[string][]byte{
		"too long":    {0xff, 0xff, '{'},
		"not JSON":    {0, 3, 'a', 'b', 'c'},
		"two values":  append([]byte{0, 5}, "{} {}"...),
		"no share":    append([]byte{0, 2}, "{}"...),
		"cut off":     {0, 100, '{'},
		"an old name": append([]byte{0, 45}, `{"plate":"42","share":"","info":"e30=","x":1}`...),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", a.Addr().String(),
				clientConfig(newIdentity(t), protoPair, func(proven) error { return nil }))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write(raw); err != nil {
				t.Fatal(err)
			}
			_ = conn.CloseWrite()
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("it was answered: %v", err)
			}
		})
	}
	if _, err := a.pair(t, newIdentity(t), offer.Code); err != nil {
		t.Errorf("the code is no longer good: %v", err)
	}
}

func TestPairingEndsWithItsContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Pair(ctx, PairConfig{Dial: DialConfig{Identity: newIdentity(t),
		Address: Address{Host: "127.0.0.1", Port: silent.Addr().(*net.TCPAddr).Port}}, Code: "42-4821-7390", Name: "x"})
	wantCode(t, err, "agent_connect_unavailable")
}

func TestMistypedCodesAreToldBeforeAnythingIsSent(t *testing.T) {
	for _, text := range []string{"", "42-4821-739", "42-4821-73900", "42-4821-739O", "drop table"} {
		_, err := Pair(t.Context(), PairConfig{Dial: DialConfig{}, Code: text, Name: "x"})
		wantCode(t, err, "agent_pair_wrong-code")
		if text != "" && err != nil && strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the code: %v", err)
		}
	}
	var fault *tunnel.Fault
	if _, err := Pair(t.Context(), PairConfig{Code: "42-4821-7390", Name: "a\nb"}); !errors.As(err, &fault) {
		t.Errorf("an unprintable name gave %v", err)
	}
}
