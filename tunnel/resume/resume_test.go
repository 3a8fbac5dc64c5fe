package resume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/tunnel"
)

func TestWhatIsSaidWhileThePathIsGoneComesAfterwards(t *testing.T) {
	overOutages(t, func(t *testing.T, w *world) {
		near, far := w.pair(t)
		say(t, near, "run")
		hear(t, far, "run")
		say(t, far, "begun ")
		hear(t, near, "begun ")
		w.fail()
		say(t, far, "arrived") // before anybody knows
		say(t, near, "go on")
		time.Sleep(5 * time.Minute)
		near.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // always nil
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading while the path is gone ended as %v", err)
		}
		near.SetReadDeadline(time.Time{}) //nolint:errcheck // see above
		w.mend()
		hear(t, near, "arrived")
		hear(t, far, "go on")
		say(t, far, "!")
		if err := far.Close(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(near); string(rest) != "!" || err != nil {
			t.Errorf("the end came as %q, %v", rest, err)
		}
		near.Close()
	})
}

func TestWhoLeftWhileThePathWasGoneIsMissed(t *testing.T) {
	overOutages(t, func(t *testing.T, w *world) {
		near, far := w.pair(t)
		say(t, near, "hello")
		hear(t, far, "hello")
		w.fail()
		time.Sleep(time.Minute)
		say(t, near, "farewell")
		near.Close()
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("reading what was closed ended as %v", err)
		}
		if _, err := io.WriteString(near, "more"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("writing to what was closed ended as %v", err)
		}
		w.mend()
		if rest, err := io.ReadAll(far); string(rest) != "farewell" || err != nil {
			t.Errorf("the far side was told %q, %v", rest, err)
		}
		if _, err := io.WriteString(far, "x"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("writing to who has left ended as %v", err)
		}
		far.Close()
	})
}

func TestEachDirectionEndsByItself(t *testing.T) {
	overOutages(t, func(t *testing.T, w *world) {
		near, far := w.pair(t)
		say(t, near, "question")
		if err := near.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		w.fail()
		time.Sleep(time.Minute)
		w.mend()
		if all, err := io.ReadAll(far); string(all) != "question" || err != nil {
			t.Errorf("%q, %v", all, err)
		}
		w.fail()
		say(t, far, "answer")
		far.Close()
		time.Sleep(time.Minute)
		w.mend()
		if all, err := io.ReadAll(near); string(all) != "answer" || err != nil {
			t.Errorf("%q, %v", all, err)
		}
		near.Close()
	})
}

func TestAStreamIsNotKeptForEver(t *testing.T) {
	overOutages(t, func(t *testing.T, w *world) {
		near, far := w.pair(t)
		w.fail()
		time.Sleep(keptFor + 5*time.Minute)
		for which, s := range map[string]tunnel.Stream{"near": near, "far": far} {
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, ErrLost) {
				t.Errorf("the %s end was told %v", which, err)
			}
		}
		w.mend()
	})
}

func TestStreamsThatAreLostAreBounded(t *testing.T) {
	overOutages(t, func(t *testing.T, w *world) {
		var near, far []tunnel.Stream
		for range lostOfPeer + 1 {
			a, b := w.pair(t)
			say(t, b, "x")
			hear(t, a, "x")
			near, far = append(near, a), append(far, b)
			time.Sleep(time.Second)
		}
		w.fail()
		time.Sleep(2 * time.Minute)
		gone := 0
		for _, s := range far {
			s.SetReadDeadline(time.Now().Add(time.Second)) //nolint:errcheck // always nil
			if _, err := s.Read(make([]byte, 1)); errors.Is(err, ErrLost) {
				gone++
			}
		}
		if gone != 1 {
			t.Errorf("%d of %d streams were given up", gone, len(far))
		}
		w.mend()
		time.Sleep(time.Minute)
		forgotten := 0
		for i, s := range near {
			io.WriteString(far[i], "x") //nolint:errcheck // what is read shows it
			if _, err := io.ReadFull(s, make([]byte, 1)); errors.Is(err, ErrForgotten) {
				forgotten++
			} else if err != nil {
				t.Error(err)
			}
			s.Close()
			far[i].Close()
		}
		if forgotten != 1 {
			t.Errorf("%d streams were told that they are forgotten", forgotten)
		}
		time.Sleep(time.Minute)
		w.empty(t)
	})
}

// empty fails where the host still keeps a stream.
func (w *world) empty(t *testing.T) {
	t.Helper()
	synctest.Wait()
	w.host.mu.Lock()
	defer w.host.mu.Unlock()
	if len(w.host.known)+len(w.host.lost)+len(w.host.ofPeer) != 0 {
		t.Errorf("%d streams of %d peers are known and %d lost when all are closed", len(w.host.known),
			len(w.host.ofPeer), len(w.host.lost))
	}
}

func TestAReaderThatStopsHoldsItsStreamUp(t *testing.T) {
	overOutages(t, func(t *testing.T, w *world) {
		near, far := w.pair(t)
		near.SetWriteDeadline(time.Now().Add(time.Hour)) //nolint:errcheck // always nil
		wrote, err := near.Write(make([]byte, 8*window))
		if !errors.Is(err, os.ErrDeadlineExceeded) || wrote != window {
			t.Errorf("%d bytes were taken of one that reads nothing: %v", wrote, err)
		}
		near.Close()
		if n, err := io.Copy(io.Discard, far); err != nil || n != window {
			t.Errorf("%d bytes came when the reader woke up: %v", n, err)
		}
		far.Close()
		time.Sleep(time.Minute)
		w.empty(t)
	})
}

func TestAStreamThatMayBeForgottenIsNotBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHost()
		ada := tunnel.Peer{Key: "ada"}
		raw := &said{in: bytes.NewReader(nil)}
		if _, _, why := h.join(ada, greeting{Begun: true}, raw); why != refusedUnknown {
			t.Errorf("what was begun: %d", why)
		}
		if _, _, why := h.join(ada, greeting{Age: time.Second}, raw); why != refusedUnknown {
			t.Errorf("what may have begun before the host did: %d", why)
		}
		time.Sleep(time.Minute)
		s, fresh, why := h.join(ada, greeting{Age: time.Second}, raw)
		if !fresh || why != 0 {
			t.Fatalf("what cannot have begun: %v, %d", fresh, why)
		}
		ada.Address = "elsewhere"
		if again, fresh, why := h.join(ada, greeting{Age: time.Second}, raw); again != s || fresh || why != 0 {
			t.Errorf("a repetition has a stream of its own: %v, %d", fresh, why)
		}
		if other, fresh, _ := h.join(tunnel.Peer{Key: "eve"}, greeting{}, raw); other == s || !fresh {
			t.Error("another peer joined the stream")
		}
		h.lose(s)
		time.Sleep(time.Second) // it is as impatient as can be
		if _, _, why := h.join(ada, greeting{Age: time.Second}, raw); why != refusedUnknown {
			t.Errorf("what was given up: %d", why)
		}
	})
}

func TestStreamsOfAPeerAreBounded(t *testing.T) {
	h := NewHost()
	join := func(peer string, i int) byte {
		_, _, why := h.join(tunnel.Peer{Key: peer}, greeting{ID: [idSize]byte{byte(i), byte(i >> 8)}},
			&said{in: bytes.NewReader(nil)})
		return why
	}
	for i := range keptOfPeer {
		if why := join("eve", i); why != 0 {
			t.Fatalf("stream %d: %d", i, why)
		}
	}
	if why := join("eve", keptOfPeer); why != refusedFull {
		t.Errorf("one more: %d", why)
	}
	if why := join("ann", 0); why != 0 {
		t.Errorf("another's: %d", why)
	}
}

// TestAFarewellIntoAPathThatIsGoneArrives has one side say its last and leave around the moment in which the path goes,
// which nobody is told: every byte and the end arrive when the path is back, and neither side is kept beyond that.
func TestAFarewellIntoAPathThatIsGoneArrives(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			overOutages(t, func(t *testing.T, w *world) {
				random := rand.New(rand.NewPCG(seed, 3))
				speaker, listener := w.pair(t)
				if seed%3 == 2 {
					speaker, listener = listener, speaker
				}
				text := make([]byte, random.IntN(300<<10))
				for i := range text {
					text[i] = byte(random.Uint32())
				}
				failAt := time.Duration(random.IntN(4000)) * time.Millisecond
				leaveAt := failAt + time.Duration(random.IntN(8000)-2000)*time.Millisecond
				backAt := failAt + time.Duration(random.IntN(60_000))*time.Millisecond
				var going sync.WaitGroup
				going.Go(func() {
					time.Sleep(failAt)
					w.fail()
					time.Sleep(backAt - failAt)
					w.mend()
				})
				going.Go(func() {
					pause := max(leaveAt, 0) / 10
					for rest := text; ; time.Sleep(pause) {
						chunk := min(len(text)/9+1, len(rest))
						if _, err := speaker.Write(rest[:chunk]); err != nil {
							t.Errorf("%d bytes were not written: %v", chunk, err)
							return
						}
						if rest = rest[chunk:]; len(rest) == 0 {
							break
						}
					}
					if seed%3 == 1 {
						speaker.CloseWrite() //nolint:errcheck // it lives
						time.Sleep(pause)
					}
					speaker.Close()
				})
				within(t, 5*time.Minute, "the last word", func() {
					if heard, err := io.ReadAll(listener); err != nil || !bytes.Equal(heard, text) {
						t.Errorf("%d of %d bytes were heard: %v", len(heard), len(text), err)
					}
				})
				listener.Close()
				going.Wait()
				time.Sleep(5 * time.Minute)
				w.empty(t)
			})
		})
	}
}

// vanishing is a connection whose bytes are lost without a word once it is cut.
type vanishing struct {
	net.Conn
	mu  sync.Mutex // guards cut
	cut bool
}

func (v *vanishing) Class() tunnel.Class { return tunnel.Interactive }
func (v *vanishing) CloseWrite() error   { return nil }

func (v *vanishing) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cut {
		return len(p), nil
	}
	return v.Conn.Write(p)
}

func (v *vanishing) lose() {
	v.Conn.SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // lets go of a write that holds mu
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cut = true
}

// carryBetween has two ends run over one fresh wire until stop is closed.
func carryBetween(t *testing.T, a, b *Stream, stop <-chan struct{}) {
	near, far := net.Pipe()
	conns := [2]*vanishing{{Conn: near}, {Conn: far}}
	ends := [2]*Stream{a, b}
	var got [2]greeting
	for i, s := range ends {
		s.mu.Lock()
		s.wire = nil // lost
		got[i] = greeting{Received: s.received(), Window: s.in.window}
		s.mu.Unlock()
	}
	var carrying sync.WaitGroup
	for i, s := range ends {
		w := newWire(conns[i])
		if _, err := s.attach(w, got[1-i]); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		carrying.Go(func() { s.carry(w) })
	}
	<-stop
	for _, c := range conns {
		c.lose()
	}
	for _, c := range conns {
		c.Close() //nolint:errcheck // it is lost
	}
	carrying.Wait()
}

// TestEveryByteIsCarriedOnce has two ends talk over wires that are cut at any moment.
func TestEveryByteIsCarriedOnce(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			near, far := net.Pipe()
			a, b := newStream(&vanishing{Conn: near}, tunnel.Interactive, true),
				newStream(&vanishing{Conn: far}, tunnel.Interactive, false)
			a.in.window, b.in.window = 1<<10+uint64(random.IntN(64<<10)), 1<<10+uint64(random.IntN(64<<10))
			var talking sync.WaitGroup
			talk := func(from, to *Stream, seed uint64) {
				random := rand.New(rand.NewPCG(seed, 2))
				text := make([]byte, 200<<10)
				for i := range text {
					text[i] = byte(random.Uint32())
				}
				talking.Go(func() {
					for rest := text; len(rest) > 0; {
						n := min(len(rest), 1+random.IntN(9<<10))
						if _, err := from.Write(rest[:n]); err != nil {
							t.Error(err)
							return
						}
						rest = rest[n:]
					}
					from.CloseWrite() //nolint:errcheck // it lives
				})
				talking.Go(func() {
					if heard, err := io.ReadAll(to); err != nil || !bytes.Equal(heard, text) {
						t.Errorf("%d of %d bytes came: %v", len(heard), len(text), err)
					}
				})
			}
			a.out.room, b.out.room = b.in.window, a.in.window
			talk(a, b, seed)
			talk(b, a, seed+100)
			done := make(chan struct{})
			go func() { talking.Wait(); close(done) }()
			for {
				stop, ctx := make(chan struct{}), context.Background()
				ctx, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(3000))*time.Microsecond)
				go func() {
					defer close(stop)
					select {
					case <-ctx.Done():
					case <-done:
					}
				}()
				carryBetween(t, a, b, stop)
				cancel()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
}

// said is a stream of which everything was said before.
type said struct {
	net.Conn
	in *bytes.Reader
}

func (s *said) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *said) Write(p []byte) (int, error)      { return len(p), nil }
func (s *said) Close() error                     { return nil }
func (s *said) CloseWrite() error                { return nil }
func (s *said) Class() tunnel.Class              { return tunnel.Control }
func (s *said) LocalAddr() net.Addr              { return nil }
func (s *said) RemoteAddr() net.Addr             { return nil }
func (s *said) SetReadDeadline(time.Time) error  { return nil }
func (s *said) SetWriteDeadline(time.Time) error { return nil }

// TestARuleBreakerLosesItsStream says what no peer may say.
func TestARuleBreakerLosesItsStream(t *testing.T) {
	for name, raw := range map[string]string{
		"more than the window":    "D\x00\x00\x00\x05abcde",
		"taken what was not sent": "T\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x04",
		"taken without a number":  "T\x00\x00\x00\x00",
		"data behind the end":     "E\x00\x00\x00\x00D\x00\x00\x00\x01x",
		"a second end":            "E\x00\x00\x00\x00E\x00\x00\x00\x00",
		"an unknown frame":        "V\x00\x00\x00\x00",
		"a long frame":            "D\x00\x01\x00\x00",
		"no data":                 "D\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			from := &said{in: bytes.NewReader([]byte(raw))}
			s := newStream(from, tunnel.Control, true)
			s.in.window = 4
			w := newWire(from)
			if _, err := s.attach(w, greeting{Window: 1 << 10}); err != nil {
				t.Fatal(err)
			}
			s.Write([]byte("abc")) //nolint:errcheck // there is room
			s.carry(w)
			if _, err := s.Write([]byte("x")); !errors.Is(err, tunnel.ErrProtocol) {
				t.Errorf("a write was told %v", err)
			}
		})
	}
	s := newStream(&said{}, tunnel.Control, false)
	if _, err := s.attach(nil, greeting{Received: 1}); !errors.Is(err, tunnel.ErrProtocol) {
		t.Errorf("a peer that received what was never sent was told %v", err)
	}
}

// Who never ends a stream behind the last word holds nobody for ever.
func TestAFarewellIsNotWaitedForWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		go io.Copy(io.Discard, far) //nolint:errcheck // it reads and says nothing
		raw := &vanishing{Conn: near}
		s := newStream(raw, tunnel.Interactive, true)
		w := newWire(raw)
		if _, err := s.attach(w, greeting{Window: 1 << 10}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		began := time.Now()
		s.carry(w)
		if took := time.Since(began); took != leaveWithin || !s.isOver() {
			t.Errorf("it was waited for %v", took)
		}
	})
}

func TestAStreamThatDoesNotResumeIsTakenAsItIs(t *testing.T) {
	taken := make(chan string, 1)
	NewHost().Take(tunnel.Peer{}, &said{in: bytes.NewReader([]byte("Question"))}, func(s tunnel.Stream) {
		all, _ := io.ReadAll(s)
		taken <- string(all)
	})
	if got := <-taken; got != "Question" {
		t.Errorf("it said %q", got)
	}
}

// FuzzStream has the peer of a stream say anything.
func FuzzStream(f *testing.F) {
	for _, raw := range []string{"D\x00\x00\x00\x01xE\x00\x00\x00\x00",
		"T\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x03", "T\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff",
		"C\x00\x00\x00\x00", "X\x00\x00\x00\x01\x01", string(append([]byte("R\x00\x00\x00\x31"),
			greeting{Received: 3, Window: 9}.encode()...))} {
		f.Add([]byte(raw), uint8(0))
		f.Add([]byte(raw+raw), uint8(7))
	}
	f.Fuzz(func(t *testing.T, raw []byte, how uint8) {
		const room = 1 << 10
		from := &said{in: bytes.NewReader(raw)}
		s := newStream(from, tunnel.Control, how&1 != 0)
		s.in.window = room
		w := newWire(from)
		if _, err := s.attach(w, greeting{Window: room}); err != nil {
			t.Fatal(err)
		}
		s.Write([]byte("abc")) //nolint:errcheck // there is room
		if how&2 != 0 {
			s.CloseWrite() //nolint:errcheck // it lives
		}
		if how&4 != 0 {
			s.Close()
		}
		s.carry(w)
		if len(s.in.kept.data) > room || s.out.sent > 5 || s.out.kept.begin > 3 {
			t.Errorf("%d bytes are kept, %d of 3 sent and %d taken", len(s.in.kept.data), s.out.sent, s.out.kept.begin)
		}
		NewHost().Take(tunnel.Peer{}, &said{in: bytes.NewReader(raw)}, func(s tunnel.Stream) {
			io.Copy(io.Discard, s) //nolint:errcheck // it may be lost
			s.Close()
		})
	})
}
