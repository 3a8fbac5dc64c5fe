package agentrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/resume"
)

// streamPatience is how long the stream of a duplex, upload or download waits for the connection to come back.
const streamPatience = time.Hour

// Opener opens streams to the agent. It fails at once if there is no connection.
type Opener interface {
	Open(ctx context.Context, class tunnel.Class) (tunnel.Stream, error)
}

// ClientConfig configures a client.
type ClientConfig struct {
	Name     func() string // of the agent, for people, at present
	Opener   Opener        // with a [resume.Line] calls survive cuts
	Patience time.Duration // for the connection to come back during a call; 0: 15 s, negative: none
	Distrust func(error)   // called with invalid data of the agent; may be nil
}

// Client calls an agent on another machine. It has no connection of its own and nothing to close.
type Client struct {
	name     func() string
	opener   Opener
	line     resume.Line // nil: the opener cannot wait for its connection
	patience time.Duration
	distrust func(error)
	codec    codec
}

// NewClient returns a client. It sends nothing before the first call.
func NewClient(config ClientConfig) *Client {
	c := &Client{name: config.Name, opener: config.Opener, patience: config.Patience, distrust: config.Distrust}
	if c.name == nil {
		c.name = func() string { return "" }
	}
	if c.patience == 0 {
		c.patience = 15 * time.Second
	}
	if c.patience > 0 {
		c.line, _ = config.Opener.(resume.Line)
	}
	return c
}

func (c *Client) Agent() session.Agent { return session.AgentOf(c, c) }

// Hello asks the handler for its description. It fails with agent_connect_version if that is too old or too new.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	hello, err := methodHello.call(ctx, c, none{})
	if err == nil && hello.Version < oldest {
		err = checkVersion(Version + 2)
	}
	return hello, err
}

// lostError means that a stream was lost, or could not be opened.
type lostError struct {
	err    error
	opened bool // the request may have arrived
}

func (e *lostError) Error() string { return "agentrpc: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// opened is a call whose answer has come.
type opened struct {
	wire   *wire
	answer []byte
	// release lets the stream live on after the call's context. It reports false if that has ended and closes it
	// already.
	release func() bool
}

func (o *opened) discard() {
	if o.release() {
		o.wire.abandon()
	}
}

// open opens a stream, which is resumed after a cut within patience; 0: it ends with its tunnel.
func (c *Client) open(ctx context.Context, class tunnel.Class, patience time.Duration) (tunnel.Stream, error) {
	if c.line == nil || patience == 0 {
		return c.opener.Open(ctx, class)
	}
	s, err := resume.Open(ctx, c.line, class, patience)
	if err != nil {
		return nil, err // not a nil stream in disguise
	}
	return s, nil
}

// start opens a stream, sends a request and waits for the first answer. Until release the end of ctx cancels the call
// and closes its stream. It fails with the handler's [session.Error], a [*lostError], or an error that a repetition
// would not avoid.
func (c *Client) start(ctx context.Context, s spec, frame []byte, patience time.Duration) (*opened, error) {
	stream, err := c.open(ctx, s.class, patience)
	if err != nil {
		return nil, &lostError{err: err}
	}
	w := newWire(stream, &c.codec)
	release := context.AfterFunc(ctx, func() {
		_ = stream.SetReadDeadline(time.Unix(1, 0)) // interrupts the reader
		w.abandon()
	})
	wrote := w.write(frame) // may fail although an answer was sent: a handler that refuses stops reading
	answer, err := readAnswer(w)
	if err == nil {
		return &opened{wire: w, answer: answer, release: release}, nil
	}
	if lost, ok := errors.AsType[*lostError](err); ok {
		lost.err = errors.Join(wrote, lost.err)
	}
	if release() {
		stream.Close()
	}
	return nil, err
}

// readAnswer reads an answer or a failure.
func readAnswer(w *wire) ([]byte, error) {
	h, err := w.head()
	if err == nil && h.kind != kindAnswer && h.kind != kindFailure {
		err = broken("unexpected frame %q instead of an answer", byte(h.kind))
	}
	var body []byte
	if err == nil {
		body, err = w.body(h)
	}
	switch {
	case isProtocol(err):
		return nil, err
	case err != nil:
		return nil, &lostError{err: err, opened: true}
	case h.kind == kindFailure:
		return nil, parseFailure(body)
	}
	return body, nil
}

func isProtocol(err error) bool {
	_, broken := errors.AsType[*protocolError](err)
	return broken || errors.Is(err, tunnel.ErrProtocol)
}

// wish is one call with all of its tries.
type wish struct {
	client   *Client
	spec     spec
	args     json.RawMessage
	patience time.Duration // that its stream waits for the next tunnel after a cut; 0: it ends
	bad      error         // why the arguments cannot be sent
}

func (c *Client) wish(s spec, args any, patience time.Duration) *wish {
	body, err := json.Marshal(args)
	return &wish{client: c, spec: s, args: body, patience: patience, bad: err}
}

// frame returns the request of the next try, with the deadline of ctx.
func (w *wish) frame(ctx context.Context) ([]byte, error) {
	if w.bad != nil {
		return nil, session.WrapError(w.bad, session.CodeAgentInternal,
			"Internal error: the call cannot be encoded.", "")
	}
	req := request{Version: Version, Method: w.spec.name, Args: w.args}
	if deadline, ok := ctx.Deadline(); ok {
		req.Limit = max(time.Until(deadline), 1)
	}
	frame, err := w.client.codec.encode(kindRequest, req)
	if _, large := errors.AsType[*tooLargeError](err); large {
		return nil, session.WrapError(err, session.CodeTooLarge, "The request is too large for one call to an agent.",
			"Ask for less at a time.")
	}
	return frame, err
}

// make makes the call until ctx ends. If repeat, it repeats the call after the loss of its stream, where that is
// harmless.
func (w *wish) make(ctx context.Context, repeat bool) (*opened, error) {
	var giveUp time.Time
	for try := 0; ; try++ {
		frame, err := w.frame(ctx)
		if err != nil {
			return nil, err
		}
		call, err := w.client.start(ctx, w.spec, frame, w.patience)
		if err == nil {
			return call, nil
		}
		lost, ok := errors.AsType[*lostError](err)
		if !ok || ctx.Err() != nil || !repeat || try == 0 && !lost.opened ||
			w.client.line == nil || w.spec.effect == once || errors.Is(err, resume.ErrLost) {
			return nil, err
		}
		if try == 0 {
			giveUp = time.Now().Add(w.client.patience)
		}
		waiting, cancel := context.WithDeadline(ctx, giveUp)
		up := resume.WaitUp(waiting, w.client.line, try)
		cancel()
		if !up {
			return nil, err
		}
	}
}

// within makes the call within the method's limit. If live the caller closes the stream, else the end of ctx or of the
// limit has.
func (w *wish) within(ctx context.Context, repeat bool) (call *opened, live bool, err error) {
	limited, cancel := context.WithTimeout(ctx, w.spec.limit)
	defer cancel()
	if call, err = w.make(limited, repeat); err == nil {
		return call, call.release(), nil
	}
	if limited.Err() != nil {
		err = errors.Join(limited.Err(), err)
	}
	return nil, false, w.client.fail(ctx, err)
}

// open makes a call whose stream continues after its answer. The method's limit is for the answer; ctx ends the rest.
func (w *wish) open(ctx context.Context) (*opened, error) {
	opening, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(w.spec.limit, func() { cancel(context.DeadlineExceeded) })
	call, err := w.make(opening, false)
	if err == nil && !timer.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		err = errors.Join(context.Cause(opening), err)
		cancel(nil)
		return nil, err
	}
	release := call.release
	call.release = func() bool {
		defer cancel(nil)
		return release()
	}
	return call, nil
}

// fail returns the error of a call for its caller: the end of its context, the handler's answer, or that the outcome is
// unknown.
func (c *Client) fail(ctx context.Context, err error) error {
	_, answered := errors.AsType[*session.Error](err)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil: // an answer after that is only about the deadline
		err = context.DeadlineExceeded
	case answered:
		return err
	case refused(err):
		return c.refuse(err)
	case isTimeout(err):
		err = errors.Join(context.DeadlineExceeded, err)
	}
	return unavailable(c.name(), err)
}

// call makes a plain call and checks its answer.
func (m plain[A, R]) call(ctx context.Context, c *Client, args A, fits ...fit[R]) (result R, err error) {
	patience := c.patience
	if m.effect == read { // it is repeated instead
		patience = 0
	}
	call, live, err := c.wish(m.spec, args, patience).within(ctx, true)
	if err != nil {
		return result, err
	}
	if live {
		call.wire.stream.Close()
	}
	return judge(c, m.spec, call.answer, fits)
}

// judge decodes and checks the answer to a call.
func judge[R any](c *Client, s spec, answer []byte, fits []fit[R]) (R, error) {
	var result, nothing R
	err := decodeReply(answer, &result)
	for _, fit := range fits {
		if err == nil {
			if problem := fit(&result); problem != "" {
				err = misfit(problem)
			}
		}
	}
	if err != nil {
		return nothing, c.refuse(fmt.Errorf("the answer to %s: %w", s.name, err))
	}
	return result, nil
}

// follow calls fn for every event until ctx ends, fits refuses one, fn fails or the stream is lost.
func (m feed[A, V]) follow(ctx context.Context, c *Client, args A, fn, fits func(V) error) error {
	call, err := c.wish(m.spec, args, 0).open(ctx)
	if err != nil {
		return c.fail(ctx, err)
	}
	defer call.discard()
	for {
		event, err := nextEvent[V](call.wire)
		if err == nil && event != nil {
			err = fits(*event)
		}
		if err != nil {
			return c.fail(ctx, err)
		}
		if event != nil {
			if err := fn(*event); err != nil {
				return err
			}
		}
	}
}

// nextEvent reads the next event, nil for an alive frame.
func nextEvent[V any](w *wire) (*V, error) {
	if err := w.stream.SetReadDeadline(time.Now().Add(aliveWithin)); err != nil {
		return nil, err
	}
	k, body, err := w.next()
	switch {
	case err != nil || k == kindAlive:
		return nil, err
	case k == kindFailure:
		return nil, parseFailure(body)
	case k != kindEvent:
		return nil, broken("frame %q among events", byte(k))
	}
	event := new(V)
	return event, decodeReply(body, event)
}

// open opens a stream of bytes both ways. ctx bounds only the opening.
func (m duplex[A]) open(ctx context.Context, c *Client, args A) (net.Conn, error) {
	call, live, err := c.wish(m.spec, args, streamPatience).within(ctx, false)
	if err == nil && !live {
		err = c.fail(ctx, context.DeadlineExceeded)
	}
	if err != nil {
		return nil, err
	}
	return &conn{Stream: call.wire.stream, wire: call.wire, client: c}, nil
}
