package agentrpc

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/resume"
)

// Times and limits of the handler.
const (
	latitude      = 2 * time.Second  // that it works longer than its caller waits, which then has its own error
	requestWithin = 30 * time.Second // for the request of a stream
	smallRequest  = 16 << 10         // bytes of a request that does not count among largeRequests
	largeRequests = 4                // of one peer that are read at a time
	maxChanges    = 512              // calls of one peer that change something and are running
	aliveEvery    = 15 * time.Second // between two alive frames to a watcher
	aliveWithin   = 4 * aliveEvery   // that a watcher waits for a frame
)

// errLeft means that the caller closed or lost its stream.
var errLeft = errors.New("agentrpc: the caller left")

// Tunnel is one connection whose streams are calls. A [tunnel.Tunnel] is one.
type Tunnel interface {
	Accept() (tunnel.Stream, error)
	Peer() tunnel.Peer
	Close() error
}

var (
	_ Tunnel      = (*tunnel.Tunnel)(nil)
	_ Opener      = (*tunnel.Tunnel)(nil)
	_ resume.Line = (*tunnel.Line)(nil)
)

// HandlerConfig configures a handler.
type HandlerConfig struct {
	// Resolve returns the agent as a peer may use it. It is called for each call, and its error is the answer.
	Resolve func(tunnel.Peer) (session.Agent, error)
	Program string       // version of the program
	Log     *slog.Logger // nil: nothing is logged
}

// Handler answers the calls that come through any number of tunnels at a time.
type Handler struct {
	config  HandlerConfig
	codec   codec
	methods map[string]served
	streams *resume.Host // of callers who resume them

	mu    sync.Mutex // guards peers
	peers map[tunnel.Peer]*peerState
}

// NewHandler returns a handler.
func NewHandler(config HandlerConfig) *Handler {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{config: config, methods: map[string]served{}, streams: resume.NewHost(),
		peers: map[tunnel.Peer]*peerState{}}
	for _, m := range methods {
		h.methods[m.about().name] = m
	}
	return h
}

// ServeHost answers the calls of every tunnel of a host, until that is closed or ctx ends. It returns when all tunnels
// and all streams, which could be resumed on others, have ended.
func (h *Handler) ServeHost(ctx context.Context, host *tunnel.Host) error {
	ctx, cancel := context.WithCancel(ctx)
	var tunnels sync.WaitGroup
	defer h.streams.Close()
	defer tunnels.Wait()
	defer cancel()
	for {
		t, err := host.Accept(ctx)
		if err != nil {
			return err
		}
		tunnels.Go(func() {
			if err := h.Serve(ctx, t); err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
				h.config.Log.Info("a tunnel ended", "peer", t.Peer().Name, "address", t.Peer().Address, "err", err)
			}
		})
	}
}

// Serve answers the calls of one tunnel until it or ctx ends, and closes it. It returns when every call has ended,
// except those whose streams can be resumed on another tunnel: they end with ctx.
func (h *Handler) Serve(life context.Context, t Tunnel) error {
	ctx, cancel := context.WithCancel(life)
	var calls sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { t.Close() })
	defer stop()
	for {
		stream, err := t.Accept()
		if err != nil {
			t.Close()
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			calls.Wait() // their streams have ended, which cancels those that only read
			cancel()
			return err
		}
		calls.Go(func() {
			h.streams.Take(t.Peer(), stream, func(s tunnel.Stream) {
				if _, resumes := s.(*resume.Stream); resumes {
					h.answer(life, t.Peer(), s)
				} else {
					h.answer(ctx, t.Peer(), s)
				}
			})
		})
	}
}

// answer serves one stream, which it closes.
func (h *Handler) answer(ctx context.Context, peer tunnel.Peer, stream tunnel.Stream) {
	state, leave := h.enter(peer)
	defer leave()
	v := &visit{handler: h, peer: peer, state: state, wire: newWire(stream, &h.codec)}
	defer v.close()
	defer v.survive()
	stop := context.AfterFunc(ctx, v.close)
	defer stop()
	if err := v.listen(); err != nil {
		if _, broken := errors.AsType[*protocolError](err); broken {
			h.config.Log.Warn("a peer broke the protocol", "peer", peer.Name, "address", peer.Address, "err", err)
		}
		return
	}
	if err := checkVersion(v.request.Version); err != nil {
		v.fail(err)
		return
	}
	if v.request.Method == methodHello.name {
		_ = v.wire.send(kindAnswer, Hello{Version: Version, Oldest: max(1, Version-1), Program: h.config.Program,
			Methods: slices.Sorted(maps.Keys(h.methods))}) // a caller that has left needs no answer
		return
	}
	method, known := h.methods[v.request.Method]
	if !known {
		v.fail(unsupported(v.request.Method))
		return
	}
	var err error
	if v.agent, err = h.config.Resolve(peer); err != nil {
		v.fail(session.AsError(err, session.CodeAgentForbidden))
		return
	}
	v.limit = method.about().limit
	if limit := v.request.Limit; limit > 0 {
		v.limit = min(limit, v.limit) + latitude
	}
	method.serve(ctx, v)
}

// survive is deferred, so that the panic of one call does not end the agent.
func (v *visit) survive() {
	if cause := recover(); cause != nil {
		v.handler.config.Log.Error("a call broke", "method", v.request.Method, "cause", cause, "stack",
			string(debug.Stack()))
		v.fail(session.NewError(session.CodeAgentInternal, "Internal agent error.", "Look at the agent's log."))
	}
}

// visit is one call as the handler sees it.
type visit struct {
	handler *Handler
	peer    tunnel.Peer
	state   *peerState // of the peer
	agent   session.Agent
	wire    *wire
	request request
	limit   time.Duration
	told    atomic.Bool // something was sent since the last look
	closed  sync.Once
}

// listen reads the request.
func (v *visit) listen() error {
	if err := v.wire.stream.SetReadDeadline(time.Now().Add(requestWithin)); err != nil {
		return err
	}
	head, err := v.wire.head()
	if err != nil {
		return err
	}
	if head.kind != kindRequest {
		return broken("unexpected frame %q at the start of a call", byte(head.kind))
	}
	if head.length > smallRequest {
		select {
		case v.state.large <- struct{}{}:
			defer func() { <-v.state.large }()
		case <-time.After(requestWithin):
			return broken("too many long requests at a time")
		}
	}
	body, err := v.wire.body(head)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, &v.request); err != nil {
		return broken("invalid request: %v", err)
	}
	return v.wire.stream.SetReadDeadline(time.Time{})
}

// heed waits for the caller's cancel frame, the only one after its request, and then cancels the call; unless onlyThen
// also when the stream is lost. The channel is closed when it has stopped reading, after close at the latest.
func (v *visit) heed(cancel context.CancelCauseFunc, onlyThen bool) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if head, err := v.wire.head(); !onlyThen || err == nil && head.kind == kindCancel {
			cancel(errLeft)
		}
	}()
	return done
}

// fail sends a failure, if the caller is still there.
func (v *visit) fail(err error) {
	_ = v.wire.send(kindFailure, failureOf(err))
}

func (v *visit) close() {
	v.closed.Do(func() { v.wire.stream.Close() })
}

// stayAlive sends alive frames while nothing else is sent, until it is stopped.
func (v *visit) stayAlive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(aliveEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if !v.told.Swap(false) && v.wire.signal(kindAlive) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// answer makes the call and sends its outcome. The loss of its stream does not cancel a call that changes something.
func (v *visit) answer(ctx context.Context, call func(context.Context) (any, error)) {
	ctx, expire := context.WithTimeout(ctx, v.limit)
	defer expire()
	changes := v.handler.methods[v.request.Method].about().effect != read
	if changes {
		select {
		case v.state.changes <- struct{}{}:
			defer func() { <-v.state.changes }()
		default:
			v.fail(session.NewError(session.CodeAgentBusy, "Too many calls are running.", "Try again in a moment."))
			return
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listening := v.heed(cancel, changes)
	frame := v.outcome(call(ctx))
	if changes || !errors.Is(context.Cause(ctx), errLeft) {
		_ = v.wire.write(frame) // a caller that has left needs no answer
	}
	v.close()
	<-listening
}

// outcome is the frame with the outcome of a call.
func (v *visit) outcome(result any, err error) []byte {
	if err == nil {
		var frame []byte
		if frame, err = v.handler.codec.encode(kindAnswer, result); err == nil {
			return frame
		}
		if _, large := errors.AsType[*tooLargeError](err); large {
			err = session.WrapError(err, session.CodeTooLarge, "The answer is too large.", "Ask for less at a time.")
		}
	}
	frame, err := v.handler.codec.encode(kindFailure, failureOf(err))
	if err != nil { // its texts are too large
		frame, _ = v.handler.codec.encode(kindFailure, failure{Code: session.CodeAgentInternal,
			Message: "The error message is too large."})
	}
	return frame
}

// peerState has the limits of one peer while it has calls. Limits are by peer, so that none affects another.
type peerState struct {
	changes chan struct{} // one token for each running call that changes something
	large   chan struct{} // one token for each large request that is being read
	visits  int           // running calls; Handler.mu guards it
}

// enter returns the state of a peer with a call. leave is called when that is answered.
func (h *Handler) enter(peer tunnel.Peer) (state *peerState, leave func()) {
	peer.Address = "" // it moves
	h.mu.Lock()
	defer h.mu.Unlock()
	if state = h.peers[peer]; state == nil {
		state = &peerState{changes: make(chan struct{}, maxChanges), large: make(chan struct{}, largeRequests)}
		h.peers[peer] = state
	}
	state.visits++
	return state, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if state.visits--; state.visits == 0 {
			delete(h.peers, peer)
		}
	}
}
