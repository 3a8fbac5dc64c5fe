package tunnel

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// maxHandshakes is how many carriers may be in their handshake at a time.
const maxHandshakes = 64

// Host makes tunnels from the carriers that a listener accepts. All methods are safe for concurrent use.
type Host struct {
	cfg     Config
	waiting chan *Tunnel
	done    chan struct{}

	mu      sync.Mutex // guards what follows
	tunnels map[tunnelID]*booking
	pending map[net.Conn]bool // in their handshake
	closed  bool
}

// booking reserves room for one tunnel. It is made before the peer knows the tunnel's ID, so that the second carrier
// may come at any time.
type booking struct {
	settled chan struct{} // closed when the first carrier's handshake is over
	t       *Tunnel       // set before settled is closed; nil if the handshake failed
}

// NewHost returns a Host without tunnels.
func NewHost(c Config) *Host {
	c = c.withDefaults()
	return &Host{
		cfg: c, waiting: make(chan *Tunnel, 2*c.MaxTunnels), done: make(chan struct{}),
		tunnels: map[tunnelID]*booking{}, pending: map[net.Conn]bool{},
	}
}

// Serve does the handshake on an accepted carrier, which belongs to the Host. When it returns, within the time of the
// Config, the carrier belongs to a tunnel, or is closed because of the error.
func (h *Host) Serve(c Carrier) error {
	if !h.begin(c.Conn) {
		return errors.Join(fmt.Errorf("%w: too many at once", ErrRefused), c.Close())
	}
	defer h.end(c.Conn)
	err := c.SetDeadline(time.Now().Add(h.cfg.Handshake))
	if err == nil {
		err = h.greeted(c)
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	return nil
}

func (h *Host) begin(conn net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.pending) >= maxHandshakes {
		return false
	}
	h.pending[conn] = true
	return true
}

func (h *Host) end(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pending, conn)
}

func (h *Host) greeted(c Carrier) error {
	asked, err := receiveMessage(c)
	if err != nil {
		return err
	}
	hi, err := parseHello(asked)
	if err != nil {
		return err
	}
	w := welcome{Versions: h.cfg.versions, Version: h.cfg.versions.best(hi.Versions), Streams: uint32(h.cfg.MaxStreams)}
	_, _ = rand.Read(w.Nonce[:])
	if w.Version == 0 {
		w.Status = statusVersion
		_ = sendMessage(c, encode(w))
		return &VersionError{w.Versions.Min, w.Versions.Max, hi.Versions.Min, hi.Versions.Max}
	}
	if hi.Want == wantJoin {
		return h.joined(c, hi, w, asked)
	}
	return h.begun(c, hi, w, asked)
}

func (h *Host) begun(c Carrier, hi hello, w welcome, asked []byte) error {
	_, _ = rand.Read(w.ID[:])
	_, _ = rand.Read(w.Secret[:])
	b := h.book(w.ID)
	if b == nil {
		w.Status, w.ID, w.Secret = statusFull, tunnelID{}, secret{}
		return refuse(c, w)
	}
	defer close(b.settled)
	if err := agree(c, w, w.Secret, asked); err != nil {
		h.forget(w.ID)
		return err
	}
	t := newTunnel(h.cfg, c, c.Peer, w.Version, hi.Streams, false)
	t.id, t.secret = w.ID, w.Secret
	close(t.joining)
	t.onEnd = func() { h.forget(t.id) }
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return net.ErrClosed
	}
	b.t = t
	t.run()
	h.waiting <- t // has room for every tunnel; see Accept for those that ended
	return nil
}

func (h *Host) joined(c Carrier, hi hello, w welcome, asked []byte) error {
	t := h.find(hi.ID)
	switch {
	case t == nil || !t.peer.same(c.Peer) || t.version != w.Version:
		w.Status = statusUnknown
		return refuse(c, w)
	case t.full():
		w.Status = statusFull
		return refuse(c, w)
	}
	w.ID = hi.ID
	if err := agree(c, w, t.secret, asked); err != nil {
		return err
	}
	_, err := t.attach(c)
	return err
}

// agree answers and waits for the proof. Afterwards the carrier has no deadline but those of its writes.
func agree(c Carrier, w welcome, s secret, asked []byte) error {
	answer := encode(w)
	if err := sendMessage(c, answer); err != nil {
		return err
	}
	if err := confirm(c, s, asked, answer); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

func refuse(c Carrier, w welcome) error {
	_ = sendMessage(c, encode(w))
	return fmt.Errorf("%w: status %d", ErrRefused, w.Status)
}

// book reserves room for a tunnel, nil if there is none. A tunnel that waits to be accepted needs room even when it has
// ended.
func (h *Host) book(id tunnelID) *booking {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.tunnels)+len(h.waiting) >= h.cfg.MaxTunnels {
		return nil
	}
	b := &booking{settled: make(chan struct{})}
	h.tunnels[id] = b
	return b
}

// find returns the tunnel with an ID, nil if there is none.
func (h *Host) find(id tunnelID) *Tunnel {
	h.mu.Lock()
	b := h.tunnels[id]
	h.mu.Unlock()
	if b == nil {
		return nil
	}
	<-b.settled // no later than the deadline of the first carrier's handshake
	return b.t
}

func (h *Host) forget(id tunnelID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tunnels, id)
}

// Accept returns the next new tunnel; it may have ended already. It fails with net.ErrClosed once the Host is closed,
// or ctx's error.
func (h *Host) Accept(ctx context.Context) (*Tunnel, error) {
	select {
	case t := <-h.waiting:
		return t, nil
	case <-h.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends every tunnel and every handshake. From then on Serve refuses carriers.
func (h *Host) Close() error {
	var all sync.WaitGroup
	defer all.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	close(h.done)
	for _, b := range h.tunnels {
		if t := b.t; t != nil {
			all.Go(func() { _ = t.Close() })
		}
	}
	for conn := range h.pending {
		_ = conn.Close()
	}
	return nil
}
