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

// streamPatience is how long a duplex, an upload or an image that is sent waits for the connection to come back.
const streamPatience = time.Hour

// Opener opens streams to the agent. It fails at once where there is no connection.
type Opener interface {
	Open(ctx context.Context, class tunnel.Class) (tunnel.Stream, error)
}

// ClientConfig says what a client stands on.
type ClientConfig struct {
	Name func() string // of the agent, for people, as it is now
	// Opener opens the streams. With a [resume.Line] calls survive cuts.
	Opener Opener
	// Patience is how long a call that was cut waits for the connection to come back; 0: 15 s, negative: not at all.
	Patience time.Duration
	// Distrust, unless nil, is called with everything that the agent sent and may not send.
	Distrust func(error)
}

// Client calls an agent on another machine. It holds no connection of its own and has nothing to close.
type Client struct {
	name     func() string
	opener   Opener
	line     resume.Line // nil: the opener cannot wait for its connection
	patience time.Duration
	distrust func(error)
	codec    codec
}

// NewClient returns a client. It says nothing before it is asked.
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

// Agent returns the agent that is called.
func (c *Client) Agent() session.Agent { return session.AgentOf(c, c) }

// Hello asks the handler what it is. agent_connect_version where it is too old or too new.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	hello, err := methodHello.call(ctx, c, none{})
	if err == nil && hello.Version < oldest {
		err = checkVersion(Version + 2)
	}
	return hello, err
}

// lostError says that a stream broke, or could not be opened.
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
	// release ends the hold that the call's context has on the stream. It reports false where the context has ended and
	// closes the stream already.
	release func() bool
}

// open opens a stream, which is resumed when it is cut, if it can be within patience; 0: it ends with its tunnel.
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

// start opens a stream, asks and waits for the first answer. While the call lives, the end of ctx gives it up and
// closes its stream. It fails with the handler's [session.Error], a [*lostError], or another error that asking again
// would not mend.
func (c *Client) start(ctx context.Context, s spec, frame []byte, patience time.Duration) (*opened, error) {
	stream, err := c.open(ctx, s.class, patience)
	if err != nil {
		return nil, &lostError{err: err}
	}
	w := newWire(stream, &c.codec)
	release := context.AfterFunc(ctx, func() {
		_ = stream.SetReadDeadline(time.Unix(1, 0)) // releases whoever reads
		w.abandon()
	})
	answer, err := ask(w, frame)
	if err == nil {
		return &opened{wire: w, answer: answer, release: release}, nil
	}
	if release() {
		stream.Close()
	}
	return nil, err
}

// ask writes a request and reads the first answer.
func ask(w *wire, frame []byte) ([]byte, error) {
	// A write may fail after the answer was sent: a handler that refuses does not read on.
	wrote := w.write(frame)
	answer, err := readAnswer(w)
	var lost *lostError
	if errors.As(err, &lost) && wrote != nil {
		lost.err = errors.Join(wrote, lost.err)
	}
	return answer, err
}

// readAnswer reads an answer or a failure.
func readAnswer(w *wire) ([]byte, error) {
	h, err := w.head()
	if err == nil && h.kind != kindAnswer && h.kind != kindFailure {
		err = broken("frame %q is no answer", byte(h.kind))
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
	var broken *protocolError
	return errors.As(err, &broken) || errors.Is(err, tunnel.ErrProtocol)
}

// wish is one call through all of its tries.
type wish struct {
	client *Client
	spec   spec
	args   json.RawMessage
	// patience is how long its stream waits for the next tunnel when it is cut; 0: it ends then.
	patience time.Duration
	bad      error // why the arguments cannot be sent
}

func (c *Client) wish(s spec, args any, patience time.Duration) *wish {
	body, err := json.Marshal(args)
	return &wish{client: c, spec: s, args: body, patience: patience, bad: err}
}

// frame is the request of the next try, which is made before ctx ends.
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
	var large *tooLargeError
	if errors.As(err, &large) {
		return nil, session.WrapError(err, session.CodeTooLarge, "The request is too large for one call to an agent.",
			"Ask for less at a time.")
	}
	return frame, err
}

// make makes the call, if repeat again where its stream is lost and that does no harm. ctx ends it.
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
		var lost *lostError
		if !errors.As(err, &lost) || ctx.Err() != nil || !repeat || try == 0 && !lost.opened ||
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

// within makes the call within the method's limit. The stream is the caller's to close where live is true; else the end
// of ctx or of the limit closes it.
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

// open makes a call that outlives its answer: the method's limit is for the answer alone, and what follows ends with
// ctx.
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

// fail turns the failure of a call into what its caller gets: its own context's end where it gave up, the handler's
// answer, or that nothing is known.
func (c *Client) fail(ctx context.Context, err error) error {
	var answered *session.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil: // what is answered to one that has given up tells nothing
		err = context.DeadlineExceeded
	case errors.As(err, &answered):
		return err
	case refused(err):
		return c.refuse(err)
	case isTimeout(err):
		err = errors.Join(context.DeadlineExceeded, err)
	}
	return unavailable(c.name(), err)
}

// call makes a plain call whose answer is good and fits.
func (m plain[A, R]) call(ctx context.Context, c *Client, args A, fits ...fit[R]) (R, error) {
	patience := c.patience
	if m.effect == read { // what is only asked for is asked again
		patience = 0
	}
	call, live, err := c.wish(m.spec, args, patience).within(ctx, true)
	if err != nil {
		var nothing R
		return nothing, err
	}
	if live {
		call.wire.stream.Close()
	}
	return judge(c, m.spec, call.answer, fits)
}

// judge reads the answer to a call.
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

// follow calls fn for everything that is watched until ctx ends, fn fails or the stream is lost. What fits refuses does
// not reach fn.
func (m feed[A, V]) follow(ctx context.Context, c *Client, args A, fn, fits func(V) error) error {
	call, err := c.wish(m.spec, args, 0).open(ctx)
	if err != nil {
		return c.fail(ctx, err)
	}
	err = watchFrames(call.wire, fn, fits)
	if call.release() {
		call.wire.abandon()
	}
	var own *ownError
	if errors.As(err, &own) {
		return own.err
	}
	return c.fail(ctx, err)
}

// ownError is what the caller's function failed with.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }

func watchFrames[V any](w *wire, fn, fits func(V) error) error {
	for {
		if err := w.stream.SetReadDeadline(time.Now().Add(aliveWithin)); err != nil {
			return err
		}
		k, body, err := w.next()
		if err != nil {
			return err
		}
		switch k {
		case kindAlive:
		case kindFailure:
			return parseFailure(body)
		case kindEvent:
			var value V
			if err := decodeReply(body, &value); err != nil {
				return err
			}
			if err := fits(value); err != nil {
				return err
			}
			if err := fn(value); err != nil {
				return &ownError{err}
			}
		default:
			return broken("frame %q among events", byte(k))
		}
	}
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
