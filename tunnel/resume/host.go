package resume

import (
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"slipway/tunnel"
)

// Bounds of a [Host].
const (
	keptOfPeer  = 1024             // streams of one peer
	lostOfPeer  = 64               // streams of one peer without a wire; the one that was lost first is dropped
	lostOfAll   = 256              // streams of all peers without a wire; one of the peer with most is dropped
	keptFor     = time.Hour        // the longest patience of a caller
	greetWithin = 30 * time.Second // for the first frame of a tunnel's stream
	transit     = 30 * time.Second // more than a greeting takes from writing its age to reading it
)

// Host accepts the streams that peers open and resume, over any number of tunnels.
type Host struct {
	running sync.WaitGroup // of the functions that serve streams

	mu     sync.Mutex // guards everything below
	known  map[key]*hosted
	ofPeer map[tunnel.Peer]int
	lost   []*hosted // streams without a wire, in the order of their loss
	closed bool
	since  time.Time // every stream that began later is known
}

// key identifies a stream, for each peer separately.
type key struct {
	peer tunnel.Peer // without its address
	id   [idSize]byte
}

// hosted is a stream of a peer.
type hosted struct {
	*Stream
	key      key
	began    time.Time
	patience time.Duration
	expiry   *time.Timer
}

// NewHost returns a host without streams.
func NewHost() *Host {
	return &Host{known: map[key]*hosted{}, ofPeer: map[tunnel.Peer]int{}, since: time.Now()}
}

// Take accepts a stream of a tunnel and returns when it is no longer needed. It calls serve with a new stream, in a
// goroutine of its own, which survives the loss of raw, or with raw itself if the peer does not want it resumed. serve
// closes the stream.
func (h *Host) Take(peer tunnel.Peer, raw tunnel.Stream, serve func(tunnel.Stream)) {
	w := newWire(raw)
	_ = raw.SetReadDeadline(time.Now().Add(greetWithin)) // a lost stream fails below
	first, err := w.in.Peek(1)
	if err == nil && first[0] != kindResume {
		_ = raw.SetReadDeadline(time.Time{})
		serve(plain{raw, w.in})
		return
	}
	g, err := w.greeted()
	if err == nil {
		err = raw.SetReadDeadline(time.Time{})
	}
	if err != nil {
		_ = raw.Close()
		return
	}
	s, fresh, why := h.join(peer, g, raw)
	if why != 0 {
		_ = w.write(kindRefuse, []byte{why}) // the peer may have left
		_ = raw.Close()
		return
	}
	if fresh {
		go func() {
			defer h.running.Done()
			serve(s.Stream)
		}()
	}
	h.carry(s, w, g)
}

// carry carries a stream over w.
func (h *Host) carry(s *hosted, w *wire, g greeting) {
	received, err := s.attach(w, g)
	if err != nil {
		_ = w.raw.Close()
		return
	}
	h.mu.Lock()
	h.unlist(s)
	h.mu.Unlock()
	if w.write(kindResume, greeting{Received: received, Window: s.in.window}.encode()) == nil {
		s.carry(w)
	} else {
		_ = w.raw.Close()
	}
	s.mu.Lock()
	s.detach(w)
	gone := s.gone != nil
	s.mu.Unlock()
	if gone {
		h.forget(s)
	} else {
		h.lose(s)
	}
}

// join returns the stream of a greeting, or why there is none. fresh: it is new, and counted as running.
func (h *Host) join(peer tunnel.Peer, g greeting, raw tunnel.Stream) (s *hosted, fresh bool, why byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	peer.Address = ""
	now := time.Now()
	k := key{peer, g.ID}
	switch known := h.known[k]; {
	case known != nil:
		return known, false, 0
	case g.Begun || g.Age > 0 && now.Add(-g.Age-transit).Before(h.since):
		return nil, false, refusedUnknown
	case h.closed || h.ofPeer[peer] >= keptOfPeer:
		return nil, false, refusedFull
	}
	s = &hosted{Stream: newStream(raw, raw.Class(), false), key: k, began: now, patience: min(g.Patience, keptFor)}
	h.known[k] = s
	h.ofPeer[peer]++
	h.running.Add(1)
	return s, true, 0
}

// forget drops a stream that is over.
func (h *Host) forget(s *hosted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(s)
}

// drop removes a stream. It needs mu.
func (h *Host) drop(s *hosted) {
	h.unlist(s)
	if h.known[s.key] != s {
		return
	}
	delete(h.known, s.key)
	if h.ofPeer[s.key.peer]--; h.ofPeer[s.key.peer] == 0 {
		delete(h.ofPeer, s.key.peer)
	}
}

// giveUp drops a lost stream, unless it was resumed meanwhile.
func (h *Host) giveUp(s *hosted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.lost, s) {
		return
	}
	h.drop(s)
	if s.began.After(h.since) {
		h.since = s.began
	}
	s.finish(lost(ErrLost))
}

// unlist removes a stream from those without a wire. It needs mu.
func (h *Host) unlist(s *hosted) {
	if at := slices.Index(h.lost, s); at >= 0 {
		h.lost = slices.Delete(h.lost, at, at+1)
		s.expiry.Stop()
	}
}

// lose keeps a stream without a wire, within the bounds of time and number.
func (h *Host) lose(s *hosted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	runs := s.wire != nil
	s.mu.Unlock()
	if runs || h.known[s.key] != s || slices.Contains(h.lost, s) {
		return
	}
	s.expiry = time.AfterFunc(s.patience, func() { h.giveUp(s) })
	h.lost = append(h.lost, s)
	ofPeer, most := map[tunnel.Peer]int{}, s.key.peer
	for _, other := range h.lost {
		peer := other.key.peer
		if ofPeer[peer]++; ofPeer[peer] > ofPeer[most] {
			most = peer
		}
	}
	if ofPeer[most] > lostOfPeer || len(h.lost) > lostOfAll {
		first := slices.IndexFunc(h.lost, func(other *hosted) bool { return other.key.peer == most })
		go h.giveUp(h.lost[first])
	}
}

// Close ends all streams and waits until none is served.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	known := slices.Collect(maps.Values(h.known))
	h.mu.Unlock()
	for _, s := range known {
		s.finish(net.ErrClosed)
		h.forget(s)
	}
	h.running.Wait()
}
