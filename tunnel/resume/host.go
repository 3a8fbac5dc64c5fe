package resume

import (
	"net"
	"slices"
	"sync"
	"time"

	"slipway/tunnel"
)

// Bounds of a [Host].
const (
	keptOfPeer = 1024 // streams of one peer
	lostOfPeer = 64   // of them that run over nothing; the one that was lost first goes first
	lostOfAll  = 256  // of all peers; then of the peer that has most
	keptFor    = time.Hour
	// greetWithin is how long a stream of a tunnel may take to say what it is.
	greetWithin = 30 * time.Second
	// transit is more than a greeting is under way between its age being written and read.
	transit = 30 * time.Second
)

// Host takes in the streams that peers open and resume, over any number of tunnels.
type Host struct {
	running sync.WaitGroup // of what serves streams

	mu     sync.Mutex // guards everything below
	known  map[key]*hosted
	ofPeer map[tunnel.Peer]int
	lost   []*hosted // run over nothing, in the order of their loss
	closed bool
	// since is the time from which on every stream is known: the beginning of the host, or of the youngest stream that
	// was given up.
	since time.Time
}

// key names a stream. Peers do not see one another's.
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

// Take takes in a stream of a tunnel and returns when nobody needs it any more. serve is called with what it carries,
// unless that is a stream which was known before: with raw itself where the peer does not want it resumed, else with
// one that lives on when raw is lost, in a goroutine of its own. serve closes it.
func (h *Host) Take(peer tunnel.Peer, raw tunnel.Stream, serve func(tunnel.Stream)) {
	w := newWire(raw)
	_ = raw.SetReadDeadline(time.Now().Add(greetWithin)) // a stream that is lost shows in what follows
	first, err := w.in.Peek(1)
	if err == nil && first[0] != kindResume {
		_ = raw.SetReadDeadline(time.Time{}) // likewise
		serve(plain{raw, w.in})
		return
	}
	g, err := w.greeted()
	if err == nil {
		err = raw.SetReadDeadline(time.Time{})
	}
	if err != nil {
		_ = raw.Close() // a peer that is gone, or none of ours
		return
	}
	s, fresh, why := h.join(peer, g, raw)
	if why != 0 {
		_ = w.write(kindRefuse, []byte{why}) // a peer that is gone needs no answer
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

// carry has a stream run over w.
func (h *Host) carry(s *hosted, w *wire, g greeting) {
	received, err := s.attach(w, g)
	if err != nil {
		_ = w.raw.Close() // the peer breaks the rules
		return
	}
	h.found(s)
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

// join returns the stream that a greeting is about, or why there is none. fresh: it is a new one, and counted as
// running.
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

// drop needs mu.
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

// giveUp drops a stream that the peer may still ask for, unless it is back.
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

// found notes that a stream runs over something again.
func (h *Host) found(s *hosted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unlist(s)
}

// unlist needs mu.
func (h *Host) unlist(s *hosted) {
	if at := slices.Index(h.lost, s); at >= 0 {
		h.lost = slices.Delete(h.lost, at, at+1)
		s.expiry.Stop()
	}
}

// lose keeps a stream that runs over nothing, for a time and in bounds.
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

// Close ends all streams and returns when nobody serves one.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	known := make([]*hosted, 0, len(h.known))
	for _, s := range h.known {
		known = append(known, s)
	}
	h.mu.Unlock()
	for _, s := range known {
		s.finish(net.ErrClosed)
		h.forget(s)
	}
	h.running.Wait()
}
