package router

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// longestKept is how much of a body the router keeps. A longer one is streamed, and so cannot be repeated.
const longestKept = 1 << 20

// payload is the body of a request.
type payload struct {
	kept []byte  // all of it, or its beginning
	rest *upload // what follows; nil: nothing
	size int64   // bytes that the client declared; -1: unknown
	n    int64   // bytes of kept as the client sent them
}

// peek reads the beginning of a JSON body.
func (c *call) peek() (outline, *problem) {
	c.body = unread(c.request, c.answer.control)
	if c.body.rest == nil {
		return read(nil), nil
	}
	var kept bytes.Buffer
	n, err := kept.ReadFrom(io.LimitReader(c.body.rest, longestKept+1))
	c.body.kept, c.body.n = kept.Bytes(), n
	if err != nil {
		return outline{}, c.unreadable(err)
	}
	if n <= longestKept {
		c.body.rest = nil
	}
	return read(c.body.kept), nil
}

func (c *call) unreadable(err error) *problem {
	switch {
	case timedOut(err):
		return refused(http.StatusRequestTimeout, "timeout", "The body of the request did not come in time.")
	case errors.Is(err, io.ErrUnexpectedEOF), c.request.Context().Err() != nil:
		return left()
	}
	return refused(http.StatusBadRequest, "", "The body of the request cannot be read.")
}

// unread is the body of a request of which nothing was read.
func unread(request *http.Request, control *http.ResponseController) payload {
	if request.Body == nil || request.Body == http.NoBody {
		return payload{}
	}
	return payload{size: request.ContentLength, rest: &upload{body: request.Body, control: control,
		silence: Limits{}.orDefault().Silence, most: longestKept + 1}}
}

// limit applies the limits of the service.
func (p *payload) limit(limits Limits) *problem {
	if p.rest != nil {
		p.rest.silence, p.rest.most = limits.Silence, limits.Body
	}
	if p.read() > limits.Body {
		return tooLarge(limits.Body)
	}
	return nil
}

// read returns how many bytes the client sent.
func (p *payload) read() int64 {
	if p.rest != nil {
		return p.rest.n
	}
	return p.n
}

// attach makes it the body of a request to a replica.
func (p *payload) attach(out *http.Request) {
	switch {
	case p.rest != nil:
		out.ContentLength = p.size
		out.Body = p.rest
		p.rest.begun.Reset(p.kept)
	case len(p.kept) > 0:
		out.ContentLength = int64(len(p.kept))
		out.Body = io.NopCloser(bytes.NewReader(p.kept))
	}
}
