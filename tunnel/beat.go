package tunnel

import (
	"context"
	"maps"
	"net"
	"time"
)

// Stats describes a tunnel.
type Stats struct {
	RTT       time.Duration // smoothed round trip of the heartbeat
	BaseRTT   time.Duration // the shortest seen
	LastHeard time.Time     // when the last byte of the peer arrived
	Since     time.Time     // when the handshake was over
	Carriers  int           // 2 when bulk has one of its own
	Streams   int           // open now, opened by either side
	Sent      uint64        // bytes written to the carriers
	Received  uint64        // bytes read from the carriers
	Version   int           // of SPEC.md
	Window    int           // bytes of bulk that may be on their way
}

func (t *Tunnel) Stats() Stats {
	t.mu.Lock()
	carriers := t.carriers()
	s := Stats{Carriers: len(carriers), Streams: t.ours + t.theirs}
	t.mu.Unlock()
	s.RTT, s.BaseRTT = time.Duration(t.smoothRTT.Load()), time.Duration(t.leastRTT.Load())
	s.LastHeard, s.Since = time.Unix(0, t.lastHeard.Load()), t.start
	s.Sent, s.Received, s.Version = t.sent.Load(), t.received.Load(), int(t.version)
	carriers[0].answer(func(c *carrier) { s.Window = c.gate.window })
	return s
}

// Probe pings the peer over the first carrier and waits for the answer. It fails with ctx's error or, when the tunnel
// has ended, net.ErrClosed.
func (t *Tunnel) Probe(ctx context.Context) error {
	answered := make(chan struct{})
	if !t.ping(answered) {
		return net.ErrClosed
	}
	select {
	case <-answered:
		return nil
	case <-t.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxPings is how many pings may be without an answer.
const maxPings = 64

// ping pings the peer. answered, unless nil, is closed by the answer. It reports false when the tunnel has ended.
func (t *Tunnel) ping(answered chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return false
	}
	t.pinged++
	number := t.pinged
	if answered != nil {
		t.probes[number] = answered
	}
	if len(t.pingAt) < maxPings {
		t.pingAt[number] = time.Now()
	}
	t.primary.answer(func(c *carrier) {
		if len(c.pings) < maxPings {
			c.pings = append(c.pings, number)
		} else {
			c.pings[maxPings-1] = number // its answer is one to all before it
		}
	})
	return true
}

// ponged handles the answer to a ping and all pings before it.
func (t *Tunnel) ponged(value uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if value > t.pinged {
		return
	}
	if at, ok := t.pingAt[value]; ok {
		t.measured(time.Since(at))
	}
	maps.DeleteFunc(t.pingAt, func(n uint64, _ time.Time) bool { return n <= value })
	for n, answered := range t.probes {
		if n <= value {
			close(answered)
			delete(t.probes, n)
		}
	}
}

func (t *Tunnel) measured(rtt time.Duration) {
	measured, old, least := int64(rtt), t.smoothRTT.Load(), t.leastRTT.Load()
	if old == 0 {
		old, least = measured, measured
	}
	t.smoothRTT.Store(old + (measured-old)/8)
	t.leastRTT.Store(min(least, measured))
}

// beat pings on every carrier and ends one that has been silent for too long.
func (t *Tunnel) beat() {
	ticker := time.NewTicker(min(t.cfg.Heartbeat, t.cfg.Silence/2))
	defer ticker.Stop()
	t.ping(nil)
	for {
		select {
		case <-t.done:
			return
		case <-ticker.C:
		}
		t.mu.Lock()
		carriers := t.carriers()
		t.mu.Unlock()
		for _, c := range carriers {
			switch {
			case time.Since(time.Unix(0, c.lastHeard.Load())) > t.cfg.Silence:
				t.lose(c, ErrSilent)
			case c == t.primary:
				t.ping(nil)
			default:
				c.answer(func(c *carrier) {
					if len(c.pings) == 0 {
						c.pings = append(c.pings, 0) // it measures nothing
					}
				})
			}
		}
	}
}

// pathKind is what a socket is set to.
type pathKind uint8

const (
	pathUnknown pathKind = iota
	pathShort            // the gate steps aside
	pathLong
	pathLossy // long, and it loses packets even without congestion
)

// settle sets the socket when the kind of the path, or the rate that the kernel keeps to, has changed.
func (c *carrier) settle(now time.Time) {
	c.mu.Lock()
	kind, rate := c.gate.kind(now), c.gate.kernelRate(now)
	change, repace := kind != c.kind, differs(rate, c.kernelRate)
	c.kind = kind
	if kind == pathLossy {
		c.t.lossy.Store(c.gate.lossy.UnixNano())
	}
	if repace {
		c.kernelRate = rate
	}
	c.mu.Unlock()
	if change {
		c.socket.set(kind)
	}
	if repace {
		c.socket.pace(rate)
	}
}

// differs reports whether a rate has changed enough to set it in the kernel.
func differs(now, before uint64) bool {
	return (now == 0) != (before == 0) || max(now, before)-min(now, before) > before/20
}
