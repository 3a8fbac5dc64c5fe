package agentrpc

import (
	"sync"

	"slipway/tunnel"
)

// maxChanges is how many calls of one peer that change something may be under way.
const maxChanges = 512

// peerState is what a handler keeps of one peer while it answers it. What a peer does is bounded by itself, so that it
// keeps no other from anything.
type peerState struct {
	changes chan struct{} // one token for each call that changes something
	large   chan struct{} // one token for each long request that is being read
	visits  int           // calls that are being answered; peers.mu guards it
}

// peers are those of a handler.
type peers struct {
	mu    sync.Mutex // guards what follows
	known map[tunnel.Peer]*peerState
}

func newPeers() *peers { return &peers{known: map[tunnel.Peer]*peerState{}} }

// enter returns what is kept of a peer that calls. leave is called when it is answered.
func (p *peers) enter(peer tunnel.Peer) (state *peerState, leave func()) {
	peer.Address = "" // it moves
	p.mu.Lock()
	defer p.mu.Unlock()
	if state = p.known[peer]; state == nil {
		state = &peerState{changes: make(chan struct{}, maxChanges), large: make(chan struct{}, largeRequests)}
		p.known[peer] = state
	}
	state.visits++
	return state, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if state.visits--; state.visits == 0 {
			delete(p.known, peer)
		}
	}
}
