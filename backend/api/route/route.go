// Package route declares every endpoint of the loopback API once: method, path,
// parameters, and the types of its request and its answer. The server gives each
// route a handler of those types, Go programs call it with [Route.Ask], and
// build/tsgen writes the OpenAPI document and the client of the
// user interface from it.
package route

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"slipway/backend/api"
)

// Root begins the path of every route.
const Root = "/api/v1"

// Route is one endpoint: it takes an In and answers with an Out, both as JSON.
// [None] stands for no body.
type Route[In, Out any] struct{ *Endpoint }

// Endpoint is a [Route] without the types of its bodies, so that what needs none
// is compiled once. It is never changed.
type Endpoint struct {
	Name    string // in the OpenAPI document; in TypeScript without dashes
	Pattern string // method, and path below Root, such as "GET /sessions/{id}"
	Summary string
	Query   []Param
	Status  int // of success
	Stream  Stream

	query string // what With has given, such as "&state=live"
	body  any    // what Body has given, or nil
}

// at declares a route. It succeeds with 202 where it begins an operation, with 204
// where it answers nothing, else with 200.
func at[In, Out any](name, pattern, summary string, query ...Param) Route[In, Out] {
	status := http.StatusOK
	switch any(*new(Out)).(type) {
	case None:
		status = http.StatusNoContent
	case api.Operation:
		status = http.StatusAccepted
	}
	return Route[In, Out]{&Endpoint{Name: name, Pattern: pattern, Summary: summary, Query: query, Status: status}}
}

// answers declares that a route succeeds with another status.
func (r Route[In, Out]) answers(status int) Route[In, Out] {
	r.Status = status
	return r
}

// streams declares that a route answers with a stream.
func (r Route[In, Out]) streams(kind Stream) Route[In, Out] {
	r.Stream = kind
	return r.answers(http.StatusOK)
}

// None is no body.
type None struct{}

// Param is a query parameter and its meaning.
type Param struct{ Name, Text string }

// Stream says how an answer is carried that is not one JSON value.
type Stream string

// The kinds of streams. In and Out of a WebSocket are its first message and those
// of the server; where Out is [None] its messages are frames.
const (
	WebSocket Stream = "websocket"
	Text      Stream = "text"
	Bytes     Stream = "bytes"
)

// At fills in the parameters of the path, in their order.
func (r Route[In, Out]) At(values ...string) Route[In, Out] { return Route[In, Out]{r.at(values)} }

// With adds a parameter of the query, unless value is empty.
func (r Route[In, Out]) With(name, value string) Route[In, Out] {
	return Route[In, Out]{r.with(name, value)}
}

// Flag adds a parameter of the query that is 1, if on.
func (r Route[In, Out]) Flag(name string, on bool) Route[In, Out] {
	value := ""
	if on {
		value = "1"
	}
	return Route[In, Out]{r.with(name, value)}
}

// Body gives the body of the request.
func (r Route[In, Out]) Body(in In) Route[In, Out] {
	given := *r.Endpoint
	given.body = in
	return Route[In, Out]{&given}
}

// Ask calls the route.
func (r Route[In, Out]) Ask(ctx context.Context, c Caller) (out Out, err error) {
	err = r.Call(ctx, c, bodyOf(&out))
	return out, err
}

func (e *Endpoint) at(values []string) *Endpoint {
	found := *e
	for _, value := range values {
		before, rest, _ := strings.Cut(found.Pattern, "{")
		_, after, ok := strings.Cut(rest, "}")
		if !ok {
			panic("route " + e.Name + ": too many parameters of the path")
		}
		found.Pattern = before + url.PathEscape(value) + after
	}
	return &found
}

func (e *Endpoint) with(name, value string) *Endpoint {
	if !slices.ContainsFunc(e.Query, func(p Param) bool { return p.Name == name }) {
		panic("route " + e.Name + ": no parameter of the query is called " + name)
	}
	found := *e
	if value != "" {
		found.query += "&" + name + "=" + url.QueryEscape(value)
	}
	return &found
}

// Method is the method of HTTP.
func (e *Endpoint) Method() string {
	method, _, _ := strings.Cut(e.Pattern, " ")
	return method
}

// Path is the path, with the names of its parameters that have no value yet.
func (e *Endpoint) Path() string {
	_, path, _ := strings.Cut(e.Pattern, " ")
	return Root + path
}

// Target is the path with its query, for a transfer that a caller does itself.
func (e *Endpoint) Target() string {
	path := e.Path()
	if strings.Contains(path, "{") {
		panic("route " + e.Name + ": a parameter of the path is missing")
	}
	if e.query != "" {
		path += "?" + e.query[1:]
	}
	return path
}

// Caller sends a request, with in as its body unless that is nil, and decodes the
// answer into out unless that is nil.
type Caller interface {
	Call(ctx context.Context, method, target string, in, out any) error
}

// Call calls the route and decodes the answer into out unless that is nil.
func (e *Endpoint) Call(ctx context.Context, c Caller, out any) error {
	return c.Call(ctx, e.Method(), e.Target(), e.body, out)
}

// bodyOf is a body, or nil for none.
func bodyOf(body any) any {
	switch body.(type) {
	case None, *None:
		return nil
	}
	return body
}

// Description is a [Route] for whoever writes about it: Request and Response are
// zero values of the bodies, or nil.
type Description struct {
	*Endpoint
	Request, Response any
}

func (r Route[In, Out]) describe() Description {
	var in In
	var out Out
	return Description{r.Endpoint, bodyOf(in), bodyOf(out)}
}

// agentQuery is how one agent is singled out.
var agentQuery = []Param{{"agent", "only this one; empty: all"}}
