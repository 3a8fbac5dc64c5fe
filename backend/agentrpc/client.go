package agentrpc

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// Opener opens streams to the agent. It fails at once where there is no
// connection.
type Opener interface {
	Open(ctx context.Context, class tunnel.Class) (tunnel.Stream, error)
}

// Waiter is an [Opener] that can wait for its connection to come back. With
// one, calls that are cut are made again and downloads go on where they were.
type Waiter interface {
	WaitUp(ctx context.Context) error
}

// ClientConfig says what a client stands on.
type ClientConfig struct {
	Name   func() string // of the agent, for people, as it is now
	Opener Opener
	// Patience is how long a call that was cut waits for the connection to come
	// back; 0: 15 s, negative: not at all.
	Patience time.Duration
	// Distrust, unless nil, is called with everything that the agent sent and may not send.
	Distrust func(error)
}

// Client is a [session.Agent] whose machine is elsewhere. It holds no
// connection of its own and has nothing to close.
type Client struct {
	name     func() string
	opener   Opener
	waiter   Waiter // nil: the opener cannot wait
	patience time.Duration
	distrust func(error)
	codec    codec
}

var _ session.Agent = (*Client)(nil)

// NewClient returns a client. It says nothing before it is asked.
func NewClient(config ClientConfig) *Client {
	c := &Client{name: config.Name, opener: config.Opener, patience: config.Patience, distrust: config.Distrust}
	c.waiter, _ = config.Opener.(Waiter)
	if c.name == nil {
		c.name = func() string { return "" }
	}
	if c.patience == 0 {
		c.patience = 15 * time.Second
	}
	return c
}

// Hello asks the handler what it is. agent_connect_version where it is too old
// or too new.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	hello, err := methodHello.call(ctx, c, none{})
	if err == nil && hello.Version < Version-1 {
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
	// release ends the hold that the call's context has on the stream. It
	// reports false where the context has ended and closes the stream already.
	release func() bool
}

// start opens a stream, asks and waits for the first answer. While the call
// lives, the end of ctx gives it up and closes its stream. It fails with the
// handler's [session.Error], a [*lostError], or another error that asking again
// would not mend.
func (c *Client) start(ctx context.Context, s spec, frame []byte) (*opened, error) {
	stream, err := c.opener.Open(ctx, s.class)
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
	// A write may fail after the answer was sent: a handler that refuses does
	// not read on.
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
	return errors.As(err, &broken)
}

// wish is one call through all of its tries.
type wish struct {
	client *Client
	spec   spec
	args   json.RawMessage
	id     string
	began  time.Time
	// lasting is where the caller stands in the stream that is opened; nil: it
	// ends with its tunnel.
	lasting *lastingAt
}

func (c *Client) wish(s spec, args any) (*wish, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return nil, &session.Error{Code: codeOf(s.verb, session.DetailInternal),
			Message: "The call cannot be written down.", Err: err}
	}
	w := &wish{client: c, spec: s, args: body, began: time.Now()}
	if s.effect != read {
		w.id = rand.Text()
	}
	return w, nil
}

// frame is the request of the next try, which is made before ctx ends.
func (w *wish) frame(ctx context.Context, try int) ([]byte, error) {
	req := request{Version: Version, Method: w.spec.name, ID: w.id, Args: w.args, Lasting: w.lasting}
	if try > 0 {
		// Time asleep counts, and not every clock counts it.
		req.Age = max(time.Since(w.began), time.Now().Round(0).Sub(w.began.Round(0)), 1)
	}
	if deadline, ok := ctx.Deadline(); ok {
		req.Limit = max(time.Until(deadline), 1)
	}
	frame, err := w.client.codec.encode(kindRequest, req)
	var large *tooLargeError
	if errors.As(err, &large) {
		return nil, &session.Error{Code: CodeTooLarge, Message: "This is more than can be sent to an agent at once.",
			Hint: "Ask for less at a time.", Err: err}
	}
	return frame, err
}

// make makes the call, again where it is cut and that is possible. ctx ends it.
func (w *wish) make(ctx context.Context, repeat bool) (*opened, error) {
	var giveUp time.Time
	for try := 0; ; try++ {
		frame, err := w.frame(ctx, try)
		if err != nil {
			return nil, err
		}
		call, err := w.client.start(ctx, w.spec, frame)
		if err == nil {
			return call, nil
		}
		var lost *lostError
		if !errors.As(err, &lost) || ctx.Err() != nil || !repeat || try == 0 && !lost.opened ||
			w.client.waiter == nil || w.client.patience < 0 {
			return nil, err
		}
		if try == 0 {
			giveUp = time.Now().Add(w.client.patience)
		}
		waiting, cancel := context.WithDeadline(ctx, giveUp)
		up := w.client.waitUp(waiting, try)
		cancel()
		if !up {
			return nil, err
		}
	}
}

// waitUp waits for the connection before another try, and ever longer first
// where tries fail although it is up.
func (c *Client) waitUp(ctx context.Context, tries int) bool {
	pause := time.NewTimer(min(time.Duration(tries)*50*time.Millisecond, time.Second))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return false
	}
	return c.waiter.WaitUp(ctx) == nil && ctx.Err() == nil
}

// fail turns the failure of a call into what its caller gets: its own context's
// end where it gave up, the handler's answer, or that nothing is known.
func (c *Client) fail(ctx context.Context, s spec, err error) error {
	var answered *session.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil: // what is answered to one that has given up tells nothing
		err = context.DeadlineExceeded
	case errors.As(err, &answered) && answered.Code != codeForgotten:
		return err
	case refused(err):
		return c.refuse(err)
	case isTimeout(err):
		err = errors.Join(context.DeadlineExceeded, err)
	}
	return unavailable(c.name(), s.verb, err)
}

// call makes a plain call whose answer is good and fits.
func (m plain[A, R]) call(ctx context.Context, c *Client, args A, fits ...fit[R]) (R, error) {
	var result R
	wish, err := c.wish(m.spec, args)
	if err != nil {
		return result, err
	}
	limited, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	call, err := wish.make(limited, true)
	if err != nil {
		if limited.Err() != nil {
			err = errors.Join(limited.Err(), err)
		}
		return result, c.fail(ctx, m.spec, err)
	}
	if call.release() {
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

// follow calls fn for everything that is watched until ctx ends, fn fails or
// the stream is lost. What fits refuses does not reach fn.
func (m feed[A, V]) follow(ctx context.Context, c *Client, args A, fn, fits func(V) error) error {
	wish, err := c.wish(m.spec, args)
	if err != nil {
		return err
	}
	opening, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(m.limit, func() { cancel(context.DeadlineExceeded) })
	call, err := wish.make(opening, false)
	if err == nil && !timer.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		if cause := context.Cause(opening); cause != nil {
			err = errors.Join(cause, err)
		}
		return c.fail(ctx, m.spec, err)
	}
	err = watchFrames(call.wire, fn, fits)
	if call.release() {
		call.wire.abandon()
	}
	var own *ownError
	if errors.As(err, &own) {
		return own.err
	}
	return c.fail(ctx, m.spec, err)
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
	wish, err := c.wish(m.spec, args)
	if err != nil {
		return nil, err
	}
	if m.window > 0 && c.waiter != nil && c.patience > 0 {
		return m.openLasting(ctx, c, wish)
	}
	call, err := wish.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return &conn{wire: call.wire, client: c}, nil
}

// open makes the call and leaves its stream open when ctx ends.
func (w *wish) open(ctx context.Context, repeat bool) (*opened, error) {
	limited, cancel := context.WithTimeout(ctx, w.spec.limit)
	defer cancel()
	call, err := w.make(limited, repeat)
	if err == nil && !call.release() {
		err = limited.Err()
	}
	if err != nil {
		if limited.Err() != nil {
			err = errors.Join(limited.Err(), err)
		}
		return nil, w.client.fail(ctx, w.spec, err)
	}
	return call, nil
}
