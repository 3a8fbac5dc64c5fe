package agentrpc

import (
	"sync"
	"time"

	"slipway/tunnel"
)

// maxIdlePeers is from how many peers on those that have nothing under way and
// nothing to remember are forgotten.
const maxIdlePeers = 64

// peerState is what a handler keeps of one peer. What a peer does is bounded by
// itself, so that it keeps no other from anything.
type peerState struct {
	memory *memory
	large  chan struct{} // one token for each long request that is being read
	visits int           // calls that are being answered; peers.mu guards it
}

// peers are those of a handler, by what names a peer in a [callKey].
type peers struct {
	mu    sync.Mutex // guards everything below
	known map[callKey]*peerState
	// since is the moment from which on a peer that is not known has called
	// nothing; see memory.since.
	since time.Time
}

func newPeers() *peers { return &peers{known: map[callKey]*peerState{}, since: time.Now()} }

// enter returns what is kept of a peer that calls. leave is called when it is
// answered.
func (p *peers) enter(peer tunnel.Peer) (state *peerState, leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := keyOf(peer, "")
	state = p.known[key]
	if state == nil {
		if len(p.known) >= maxIdlePeers {
			p.forgetIdle()
		}
		state = &peerState{memory: newMemory(p.since), large: make(chan struct{}, largeRequests)}
		p.known[key] = state
	}
	state.visits++
	return state, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		state.visits--
	}
}

// forgetIdle needs mu.
func (p *peers) forgetIdle() {
	for key, state := range p.known {
		if since, is := state.memory.idle(); is && state.visits == 0 {
			delete(p.known, key)
			if since.After(p.since) {
				p.since = since
			}
		}
	}
}
