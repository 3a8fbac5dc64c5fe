package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// served hands one end of a pipe to a host and returns the other.
func served(t testing.TB, h *Host, peer Peer) (net.Conn, <-chan error) {
	t.Helper()
	ours, theirs := net.Pipe()
	result := make(chan error, 1)
	go func() { result <- h.Serve(Carrier{Conn: theirs, Peer: peer}) }()
	t.Cleanup(func() { _ = ours.Close() })
	return ours, result
}

// pipeDialer dials a host over pipes.
type pipeDialer struct {
	t    testing.TB
	host *Host
	peer Peer
}

func (d pipeDialer) Dial(context.Context, bool) (net.Conn, error) {
	conn, _ := served(d.t, d.host, d.peer)
	return conn, nil
}

func versions(least, most uint8) Config { return Config{versions: versionRange{least, most}} }

func TestVersions(t *testing.T) {
	for name, c := range map[string]struct {
		near, far Config
		chosen    int // 0 for a refusal
	}{
		"the same version":                {versions(3, 4), versions(3, 4), 4},
		"a host one version behind":       {versions(3, 4), versions(2, 3), 3},
		"a host one version ahead":        {versions(3, 4), versions(4, 5), 4},
		"a host too old":                  {versions(3, 4), versions(1, 2), 0},
		"a dialling side that is too old": {versions(1, 2), versions(3, 4), 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHost(c.far)
			defer h.Close()
			c.near.OneCarrier = true
			tun, err := Dial(t.Context(), pipeDialer{t, h, Peer{}}, c.near)
			if c.chosen == 0 {
				var version *VersionError
				if !errors.As(err, &version) || version.TheirsMax != c.far.versions.Max ||
					version.OursMin != c.near.versions.Min {
					t.Fatalf("%v", err)
				}
				if version.Older() != (c.far.versions.Max < c.near.versions.Min) {
					t.Error("it says the wrong side is too old")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer tun.Close()
			if got := tun.Stats().Version; got != c.chosen {
				t.Errorf("version %d was chosen", got)
			}
		})
	}
}

func TestDowngradeIsNoticed(t *testing.T) {
	fake := func(w welcome) error {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			defer theirs.Close()
			if _, err := receiveMessage(theirs); err == nil {
				_ = sendMessage(theirs, encode(w))
				_, _ = receiveMessage(theirs)
			}
		}()
		_, err := greet(ours, versions(1, 3).withDefaults(), wantTunnel, tunnelID{}, secret{})
		return err
	}
	if err := fake(welcome{Versions: versionRange{1, 3}, Version: 2, Streams: 1}); !errors.Is(err, ErrDowngrade) {
		t.Errorf("an older version than the best: %v", err)
	}
	if err := fake(welcome{Versions: versionRange{1, 3}, Version: 4, Streams: 1}); !errors.Is(err, ErrDowngrade) {
		t.Errorf("a version that nobody speaks: %v", err)
	}
	// A middle that also changes the range changes what the confirmation covers.
	h := NewHost(versions(1, 3))
	defer h.Close()
	conn, result := served(t, h, Peer{})
	sent := hello{Versions: versionRange{1, 3}, Want: wantTunnel, Streams: 1}
	changed := sent
	changed.Versions.Max = 1
	_ = sendMessage(conn, encode(changed))
	answer, err := receiveMessage(conn)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := parseWelcome(answer)
	_ = sendMessage(conn, proof(w.Secret, encode(sent), answer))
	if err := <-result; !errors.Is(err, ErrHandshake) {
		t.Errorf("a changed hello was taken: %v", err)
	}
}

// firstCarrier greets a host by hand and returns the tunnel's name and secret.
func firstCarrier(t *testing.T, h *Host, peer Peer) (net.Conn, welcome) {
	t.Helper()
	conn, result := served(t, h, peer)
	g, err := greet(conn, Config{}.withDefaults(), wantTunnel, tunnelID{}, secret{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	return conn, g.welcome
}

func TestJoining(t *testing.T) {
	someone, other := Peer{Transport: "tls", Key: "a"}, Peer{Transport: "tls", Key: "b"}
	join := func(t *testing.T, h *Host, peer Peer, id tunnelID, s secret) error {
		conn, result := served(t, h, peer)
		_, err := greet(conn, Config{}.withDefaults(), wantJoin, id, s)
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		return errors.Join(err, <-result)
	}
	t.Run("the same peer with the secret joins, once", func(t *testing.T) {
		h := NewHost(Config{})
		defer h.Close()
		_, w := firstCarrier(t, h, someone)
		moved := someone
		moved.Address = "elsewhere"
		if err := join(t, h, moved, w.ID, w.Secret); err != nil {
			t.Fatal(err)
		}
		if err := join(t, h, someone, w.ID, w.Secret); !errors.Is(err, ErrRefused) {
			t.Errorf("a third carrier: %v", err)
		}
	})
	t.Run("another peer, a guess and a wrong secret do not", func(t *testing.T) {
		h := NewHost(Config{})
		defer h.Close()
		_, w := firstCarrier(t, h, someone)
		if err := join(t, h, other, w.ID, w.Secret); !errors.Is(err, ErrRefused) {
			t.Errorf("another peer: %v", err)
		}
		if err := join(t, h, someone, tunnelID{1}, w.Secret); !errors.Is(err, ErrRefused) {
			t.Errorf("a guessed name: %v", err)
		}
		if err := join(t, h, someone, w.ID, secret{1}); !errors.Is(err, ErrHandshake) {
			t.Errorf("a wrong secret: %v", err)
		}
	})
	t.Run("a recorded join played again is refused", func(t *testing.T) {
		h := NewHost(Config{})
		defer h.Close()
		_, w := firstCarrier(t, h, someone)
		asked := encode(hello{Versions: versionRange{oldestVersion, Version}, Want: wantJoin, ID: w.ID, Streams: 9})
		record := func(confirmation []byte) ([]byte, error) {
			conn, result := served(t, h, someone)
			_ = sendMessage(conn, asked)
			answer, err := receiveMessage(conn)
			if err != nil {
				t.Fatal(err)
			}
			if confirmation == nil {
				confirmation = proof(w.Secret, asked, answer)
			}
			_ = sendMessage(conn, confirmation)
			err = <-result
			_ = conn.Close() // the carrier is lost, so that there is room for it again
			return confirmation, err
		}
		genuine, err := record(nil)
		if err != nil {
			t.Fatal(err)
		}
		for h.find(w.ID).full() {
			time.Sleep(time.Millisecond)
		}
		if _, err := record(genuine); !errors.Is(err, ErrHandshake) {
			t.Errorf("the recording was taken: %v", err)
		}
	})
}

func TestHandshakeFaults(t *testing.T) {
	t.Run("one that drips ends at the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := NewHost(Config{Handshake: 10 * time.Second})
			conn, result := served(t, h, Peer{})
			go func() {
				for {
					if _, err := conn.Write([]byte(helloMagic[:1])); err != nil {
						return
					}
					time.Sleep(3 * time.Second)
				}
			}()
			start := time.Now()
			if err := <-result; err == nil || time.Since(start) > 11*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
			time.Sleep(4 * time.Second) // the dripping notices
		})
	})
	t.Run("a host that says nothing ends the dialling at the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := Dial(t.Context(), muteDialer{}, Config{Handshake: 5 * time.Second})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 6*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("too many at once are refused and the others go on", func(t *testing.T) {
		h := NewHost(Config{})
		defer h.Close()
		for range maxHandshakes {
			conn, _ := served(t, h, Peer{})
			_, _ = conn.Write([]byte(helloMagic[:1])) // it is being read: the handshake has begun
		}
		_, result := served(t, h, Peer{})
		if err := <-result; !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	})
	t.Run("garbage is no handshake", func(t *testing.T) {
		h := NewHost(Config{})
		defer h.Close()
		conn, result := served(t, h, Peer{})
		go func() { _, _ = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) }()
		if err := <-result; !errors.Is(err, ErrHandshake) {
			t.Error(err)
		}
	})
	t.Run("more tunnels than the host holds are refused", func(t *testing.T) {
		h := NewHost(Config{MaxTunnels: 1})
		defer h.Close()
		first, _ := firstCarrier(t, h, Peer{})
		if _, err := Dial(t.Context(), pipeDialer{t, h, Peer{}}, Config{}); !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
		tun, _ := h.Accept(t.Context())
		_ = first.Close()
		<-tun.Done()
		again, err := Dial(t.Context(), pipeDialer{t, h, Peer{}}, Config{OneCarrier: true})
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Close()
	})
}

// muteDialer dials somebody who takes everything and says nothing.
type muteDialer struct{}

func (muteDialer) Dial(context.Context, bool) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		_, _ = io.Copy(io.Discard, theirs)
	}()
	return ours, nil
}
