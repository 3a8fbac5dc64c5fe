package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
)

// call is one request on its way.
type call struct {
	router   *Router
	request  *http.Request
	answer   *answer
	record   Record
	service  *service // nil: none was found
	set      Service  // the service when the request was accepted
	target   target
	body     payload
	stream   bool // it asks for a stream
	remove   bool // the usage in the stream is only for the router
	key      conversation
	avoid    session.ID // a replica that left it without an answer
	deadline time.Time  // of its wait for a replica; zero: it has not waited
}

func (r *Router) handle(w http.ResponseWriter, request *http.Request) {
	control := http.NewResponseController(w)
	c := &call{router: r, request: request,
		answer: &answer{w: w, control: control, silence: Limits{}.orDefault().Silence},
		record: Record{At: time.Now(), Outcome: OutcomeFailed}}
	defer c.end()
	if p := c.serve(); p != nil {
		c.record.Outcome = p.outcome
		if c.body.rest != nil && !c.answer.began {
			w.Header().Set("Connection", "close") // the rest of the body is in the way of another request
		}
		c.answer.fail(p)
	}
}

// end accounts for the call, also if a panic ends it.
func (c *call) end() {
	now := time.Now()
	if c.service != nil {
		c.router.mu.Lock()
		c.service.leave(c.record.Token, now)
		c.router.mu.Unlock()
	}
	c.record.Whole = now.Sub(c.record.At)
	c.record.Status, c.record.BytesOut = c.answer.status, c.answer.bytes
	if !c.answer.first.IsZero() {
		c.record.FirstWord = c.answer.first.Sub(c.record.At)
	}
	c.record.BytesIn = c.body.read()
	c.record.Stream = c.record.Stream || c.stream
	c.router.config.Account(c.record)
}

func (c *call) serve() *problem {
	if p := c.router.guard(c.request); p != nil {
		return p
	}
	path := c.request.URL.Path
	switch {
	case path == modelsPath || strings.HasPrefix(path, modelsPath+"/"):
		return c.listModels()
	case strings.HasPrefix(path, "/v1/"):
		return c.byModel()
	case strings.HasPrefix(path, servicesPath):
		return c.byName()
	}
	return refused(http.StatusNotFound, "not_found", "There is nothing at this path; use /v1 or /services/NAME.")
}

// byModel serves a request under /v1, for the service that has the model in its body.
func (c *call) byModel() *problem {
	if c.request.Method != http.MethodPost {
		return refused(http.StatusMethodNotAllowed, "unsupported",
			"The model of this request is unknown; use /services/NAME for all that is not POST.")
	}
	visitor := visitorOf(c.request.Header)
	c.router.mu.Lock()
	known := c.router.table.standing(visitor, c.record.At)
	c.router.mu.Unlock()
	if p := known.refusal(visitor); p != nil { // before it may send a long body
		return p
	}
	c.target = sameTarget(c.request)
	o, p := c.peek()
	switch {
	case p != nil:
		return p
	case o.how == broken:
		return refused(http.StatusBadRequest, "", "The body of the request is not a JSON object.")
	case !o.hasModel:
		p := refused(http.StatusBadRequest, "", "The request names no model in the first MiB of its body.")
		p.param = "model"
		return p
	}
	p = c.accept(visitor, noModel(o.model), func(s *service) bool { return slices.Contains(s.Models, o.model) })
	if p != nil {
		return p
	}
	c.prepare(o)
	return c.forward()
}

// byName serves a request under /services/NAME.
func (c *call) byName() *problem {
	name, to := namedTarget(c.request)
	c.target = to
	p := c.accept(visitorOf(c.request.Header), noService(name), func(s *service) bool { return s.Name == name })
	if p != nil {
		return p
	}
	if c.target.json {
		o, p := c.peek()
		if p != nil {
			return p
		}
		c.prepare(o)
	} else {
		c.body = unread(c.request, c.answer.control)
	}
	return c.forward()
}

// accept finds the service, checks the token, and counts the request.
func (c *call) accept(v visitor, absent *problem, match func(*service) bool) *problem {
	r := c.router
	r.mu.Lock()
	defer r.mu.Unlock()
	s, token, p := r.table.find(v, c.record.At, absent, match)
	if p != nil {
		return p
	}
	c.record.Service, c.record.Owner, c.record.Revision = s.Name, s.Owner, s.Revision
	if token != nil {
		c.record.Token = token.ID
	}
	if p := s.enter(token, c.record.At); p != nil {
		return p
	}
	c.service, c.set = s, s.Service
	c.answer.silence = s.Limits.Silence
	if c.request.ContentLength > s.Limits.Body {
		return tooLarge(s.Limits.Body)
	}
	return nil
}

// prepare takes over what the body asks for.
func (c *call) prepare(o outline) {
	c.stream = o.stream && o.how != broken
	if id := c.request.Header.Get("X-Session-Id"); id != "" {
		c.key = namedConversation(id, c.record.Token)
	} else {
		c.key = o.conversation(c.body.kept, c.record.Token)
	}
	if c.stream && c.set.IncludeUsage && o.how == whole && !o.usage && c.target.completions {
		c.body.kept = o.withUsage(c.body.kept)
		c.remove = true
	}
}

// mostAttempts bounds how often a request is sent elsewhere because no connection could be opened.
const mostAttempts = 8

// forward passes the request to a replica, and to another one if no connection could be opened.
func (c *call) forward() *problem {
	if p := c.body.limit(c.set.Limits); p != nil {
		return p
	}
	if c.body.rest != nil {
		_ = c.answer.control.EnableFullDuplex() // an answer may begin before the body ends; HTTP/1 has it
	}
	for range mostAttempts {
		one, p := c.router.place(c.request.Context(), c)
		if p != nil {
			return p
		}
		if again, p := c.try(one); !again {
			return p
		}
	}
	return unavailable(OutcomeFailed, "No replica of this service accepted a connection.")
}

// try passes the request to a replica, and gives its place back. It reports whether the request may be sent again.
func (c *call) try(one *replica) (again bool, p *problem) {
	r, ctx := c.router, c.request.Context()
	defer r.release(one)
	own := c.stream || c.target.webSocket
	connection, err := r.connect(ctx, one, c.set.Limits, own)
	if err != nil {
		if ctx.Err() != nil {
			return false, left()
		}
		r.exclude(c.record.Service, one, err)
		return true, nil
	}
	c.record.Replica, c.record.Revision = one.id, one.revision
	x, err := r.send(ctx, connection, c.outgoing(one, own), c.set.Limits)
	reuse := false
	defer func() { x.finish(reuse) }()
	if err != nil {
		return c.unanswered(x, err)
	}
	reuse, p = c.pass(x)
	return false, p
}

// exclude keeps requests from a replica until the next Set.
func (r *Router) exclude(name string, one *replica, err error) {
	r.mu.Lock()
	before := one.out
	one.out = true
	r.mu.Unlock()
	if !before {
		r.config.Log.Info("no connection to a replica", "service", name, "replica", one.id, "err", err)
		r.config.Refused(name, one.id)
	}
}

// unanswered says what to do if there is no head of an answer.
func (c *call) unanswered(x *exchange, err error) (again bool, p *problem) {
	sent := x.settle()
	switch {
	case c.request.Context().Err() != nil:
		return false, left()
	case errors.Is(sent, errTooLarge):
		return false, tooLarge(c.set.Limits.Body)
	case sent != nil:
		return false, c.unreadable(sent)
	case timedOut(err):
		return false, failed(http.StatusGatewayTimeout, "timeout",
			fmt.Sprintf("The replica sent no answer within %s.", c.set.Limits.FirstByte))
	case x.conn.got == 0 && c.repeatable():
		c.avoid = c.record.Replica
		return true, nil
	}
	return false, failed(http.StatusBadGateway, "bad_gateway",
		"The replica closed its connection without a valid answer.")
}

// repeatable reports whether the request may be sent to a second replica after it was sent to one.
func (c *call) repeatable() bool {
	return c.set.RetryUnanswered && c.avoid == "" && c.target.openAI && !c.stream && c.body.rest == nil
}

// left is the end of a request whose client is gone.
func left() *problem { return &problem{outcome: OutcomeClientLeft} }

// gone reports why a body could not be passed on.
func gone(ctx context.Context, outcome Outcome) *problem {
	if ctx.Err() != nil {
		return left()
	}
	return &problem{outcome: outcome}
}
