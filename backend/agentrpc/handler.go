package agentrpc

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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

// latitude is how much longer a handler works than its caller waits: a caller that is there gives up by itself, and
// says so as it sees it.
const latitude = 2 * time.Second

// Times and limits of the handler.
const (
	// requestWithin is how long a stream may take to say what it is for.
	requestWithin = 30 * time.Second
	// smallRequest is up to how many bytes a request is read however many there are; of longer ones so many of one peer
	// are read at a time.
	smallRequest  = 16 << 10
	largeRequests = 4
	// aliveEvery is how often a watcher hears that nothing happened.
	aliveEvery = 15 * time.Second
	// aliveWithin is how long a watcher waits for anything to be heard.
	aliveWithin = 4 * aliveEvery
)

// errLeft says that the caller closed its stream or lost it.
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

// HandlerConfig says who answers whom.
type HandlerConfig struct {
	// Resolve returns the agent as a peer may see it. It is asked for each call, and its error is the answer.
	Resolve func(tunnel.Peer) (session.Agent, error)
	Program string       // version of the program
	Log     *slog.Logger // nil: nothing is logged
}

// Handler answers the calls that come through any number of tunnels at a time.
type Handler struct {
	config  HandlerConfig
	codec   codec
	peers   *peers
	methods map[string]served

	streams *resume.Host // of callers who resume them
}

// NewHandler returns a handler.
func NewHandler(config HandlerConfig) *Handler {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{config: config, peers: newPeers(), methods: map[string]served{}, streams: resume.NewHost()}
	for _, m := range methods {
		h.methods[m.about().name] = m
	}
	return h
}

// ServeHost answers the calls of every tunnel of a host, until that is closed or ctx ends. It returns when all of them
// have ended, and the streams that could be resumed on others with them.
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

// Serve answers the calls of one tunnel until it ends or ctx does, and closes it. It returns when every call has ended,
// but for those whose streams can be resumed on another tunnel: they end with the handler's ctx.
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
			// What only asks is told by its own stream's end.
			calls.Wait()
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
	state, leave := h.peers.enter(peer)
	defer leave()
	v := &visit{handler: h, peer: peer, state: state, wire: newWire(stream, &h.codec)}
	defer v.close()
	defer v.survive()
	stop := context.AfterFunc(ctx, v.close)
	defer stop()
	if err := v.listen(); err != nil {
		var broken *protocolError
		if errors.As(err, &broken) {
			h.config.Log.Warn("a peer broke the protocol", "peer", peer.Name, "address", peer.Address, "err", err)
		}
		return
	}
	method, err := h.find(v)
	if err != nil {
		v.fail(err)
		return
	}
	if method == nil {
		_ = v.wire.send(kindAnswer, h.hello()) // a caller that has left needs no answer
		return
	}
	if v.agent, err = h.config.Resolve(peer); err != nil {
		v.fail(session.AsError(err, session.CodeAgentForbidden))
		return
	}
	if limit := v.request.Limit; limit > 0 {
		v.limit = min(limit, method.about().limit) + latitude
	} else {
		v.limit = method.about().limit
	}
	method.serve(ctx, v)
}

// survive keeps what one call breaks from ending the agent of all. It is deferred.
func (v *visit) survive() {
	if cause := recover(); cause != nil {
		v.fail(v.broke(cause))
	}
}

// broke logs a panic and returns what the caller is told.
func (v *visit) broke(cause any) error {
	v.handler.config.Log.Error("a call broke", "method", v.request.Method, "cause", cause, "stack",
		string(debug.Stack()))
	return session.NewError(session.CodeAgentInternal, "Internal agent error.", "Look at the agent's log.")
}

// find returns the method that a request is for, nil for hello.
func (h *Handler) find(v *visit) (served, error) {
	if err := checkVersion(v.request.Version); err != nil {
		return nil, err
	}
	if v.request.Method == methodHello.name {
		return nil, nil
	}
	method, known := h.methods[v.request.Method]
	if !known {
		return nil, unsupported(v.request.Method)
	}
	return method, nil
}

func (h *Handler) hello() Hello {
	hello := Hello{Version: Version, Oldest: max(1, Version-1), Program: h.config.Program}
	for name := range h.methods {
		hello.Methods = append(hello.Methods, name)
	}
	slices.Sort(hello.Methods)
	return hello
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
		return broken("a call begins with frame %q", byte(head.kind))
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
		return broken("a request is no request: %v", err)
	}
	return v.wire.stream.SetReadDeadline(time.Time{})
}

// heed reads what the caller says after its request, which may only be that it gives up, and cancels the call when it
// does or is lost. The channel is closed when nothing more is read, after close at the latest.
func (v *visit) heed(cancel context.CancelCauseFunc) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = v.wire.head() // whatever it is, nothing but a farewell is allowed
		cancel(errLeft)
	}()
	return done
}

// fail tells the caller a failure, if it is still there.
func (v *visit) fail(err error) {
	_ = v.wire.send(kindFailure, failureOf(err))
}

func (v *visit) close() {
	v.closed.Do(func() { v.wire.stream.Close() })
}

// stayAlive tells the caller now and then that nothing happened, until it is stopped.
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

// answer makes the call and sends its outcome.
func (v *visit) answer(ctx context.Context, call func(context.Context) (any, error)) {
	do := func(ctx context.Context) (result any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = v.broke(cause)
			}
		}()
		return call(ctx)
	}
	ctx, expire := context.WithTimeout(ctx, v.limit)
	defer expire()
	if v.handler.methods[v.request.Method].about().effect != read {
		v.change(ctx, do)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	listening := v.heed(cancel)
	frame := v.outcome(do(ctx))
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), errLeft) {
		_ = v.wire.write(frame) // a caller that has left needs no answer
	}
	cancel(nil)
	v.close()
	<-listening
}

// change makes a call that changes something. Only the caller's word cancels it, not the loss of its stream.
func (v *visit) change(ctx context.Context, do func(context.Context) (any, error)) {
	select {
	case v.state.changes <- struct{}{}:
		defer func() { <-v.state.changes }()
	default:
		v.fail(session.NewError(session.CodeAgentBusy, "Too many calls are running.", "Try again in a moment."))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		if head, err := v.wire.head(); err == nil && head.kind == kindCancel {
			cancel()
		}
	}()
	_ = v.wire.write(v.outcome(do(ctx))) // a caller that has left needs no answer
	v.close()
	<-listening
}

// outcome is the frame that tells how a call ended.
func (v *visit) outcome(result any, err error) []byte {
	if err == nil {
		var frame []byte
		if frame, err = v.handler.codec.encode(kindAnswer, result); err == nil {
			return frame
		}
		var large *tooLargeError
		if errors.As(err, &large) {
			err = session.WrapError(err, session.CodeTooLarge, "The answer is too large.", "Ask for less at a time.")
		}
	}
	frame, err := v.handler.codec.encode(kindFailure, failureOf(err))
	if err != nil { // its texts are beyond all bounds
		frame, _ = v.handler.codec.encode(kindFailure, failure{Code: session.CodeAgentInternal,
			Message: "The error message is too large."})
	}
	return frame
}
