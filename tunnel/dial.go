package tunnel

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Times of a second carrier.
const (
	joinTime     = 30 * time.Second // for one try
	joinPatience = 2 * time.Second  // that a bulk stream waits for it
	joinAgain    = 5 * time.Second  // after the first failure, doubled each time
	joinRarely   = 5 * time.Minute  // at most between two tries
)

// Dial opens a tunnel to the peer that d reaches. The first carrier may ask a person; a second one for bulk is dialled
// silently in the background, and its loss ends only the streams on it. Dial fails with d's error, [*VersionError],
// [ErrHandshake], [ErrDowngrade], [ErrRefused] or ctx's error.
func Dial(ctx context.Context, d Dialer, c Config) (*Tunnel, error) {
	c = c.withDefaults()
	conn, err := d.Dial(ctx, false)
	if err != nil {
		return nil, err
	}
	g, err := handshake(ctx, conn, c, wantTunnel, tunnelID{}, secret{})
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	t := newTunnel(c, conn, peerOf(conn), g.welcome.Version, g.welcome.Streams, true)
	t.id, t.secret = g.welcome.ID, g.welcome.Secret
	t.measured(g.rtt)
	t.run()
	if c.OneCarrier {
		close(t.joining)
	} else {
		t.all.Go(func() { t.keepJoined(d) })
	}
	return t, nil
}

// peerOf returns the peer of a carrier, zero for other connections.
func peerOf(conn net.Conn) Peer {
	c, _ := conn.(Carrier)
	return c.Peer
}

// handshake greets the host within ctx and c.Handshake.
func handshake(ctx context.Context, conn net.Conn, c Config, want uint8, id tunnelID, s secret) (greeting, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Handshake)
	defer cancel()
	late := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(longAgo()) })
	g, err := greet(conn, c, want, id, s)
	if !late() {
		return g, errors.Join(ctx.Err(), err)
	}
	return g, err
}

// keepJoined dials a second carrier, and another when it is lost, until the dialer would have to ask or the tunnel
// ends.
func (t *Tunnel) keepJoined(d Dialer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t.all.Go(func() {
		select {
		case <-t.done:
			cancel()
		case <-ctx.Done():
		}
	})
	tried, pause := sync.OnceFunc(func() { close(t.joining) }), joinAgain
	for ctx.Err() == nil {
		lost, err := t.join(ctx, d)
		tried()
		switch {
		case errors.Is(err, ErrWouldAsk):
			return
		case err == nil:
			pause = joinAgain
			select {
			case <-lost:
			case <-ctx.Done():
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, joinRarely)
	}
}

// join dials one further carrier and returns a channel that is closed when it is lost.
func (t *Tunnel) join(ctx context.Context, d Dialer) (<-chan struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	conn, err := d.Dial(ctx, true)
	if err != nil {
		return nil, err
	}
	if !t.peer.same(peerOf(conn)) {
		return nil, errors.Join(ErrRefused, conn.Close())
	}
	if _, err := handshake(ctx, conn, t.cfg, wantJoin, t.id, t.secret); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return t.attach(conn)
}

// same reports whether two peers are the same, whatever their addresses.
func (p Peer) same(other Peer) bool {
	p.Address, other.Address = "", ""
	return p == other
}

func (t *Tunnel) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bulk != nil
}

// attach makes a greeted connection the tunnel's second carrier.
func (t *Tunnel) attach(conn net.Conn) (<-chan struct{}, error) {
	c := newCarrier(t, conn, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || t.bulk != nil {
		return nil, errors.Join(ErrRefused, conn.Close())
	}
	t.bulk = c
	t.carry(c)
	return c.lost, nil
}

// silentDialer never asks.
type silentDialer struct{ Dialer }

func (d silentDialer) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	return d.Dialer.Dial(ctx, true)
}
