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
)

// Root begins the path of every route.
const Root = "/api/v1"

// Route is one endpoint: it takes an In and answers with an Out, both as JSON.
// [None] stands for no body.
type Route[In, Out any] struct {
	Name    string // in the OpenAPI document; in TypeScript without dashes
	Pattern string // method, and path below Root, such as "GET /sessions/{id}"
	Summary string
	Query   []Param
	Status  int // of success; 0: 200
	Stream  Stream

	query string // what With has given, such as "&state=live"
	body  any    // what Body has given, or nil
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
func (r Route[In, Out]) At(values ...string) Route[In, Out] {
	for _, value := range values {
		before, rest, _ := strings.Cut(r.Pattern, "{")
		_, after, found := strings.Cut(rest, "}")
		if !found {
			panic("route " + r.Name + ": too many parameters of the path")
		}
		r.Pattern = before + url.PathEscape(value) + after
	}
	return r
}

// With adds a parameter of the query, unless value is empty.
func (r Route[In, Out]) With(name, value string) Route[In, Out] {
	if !slices.ContainsFunc(r.Query, func(p Param) bool { return p.Name == name }) {
		panic("route " + r.Name + ": no parameter of the query is called " + name)
	}
	if value != "" {
		r.query += "&" + name + "=" + url.QueryEscape(value)
	}
	return r
}

// Flag adds a parameter of the query that is 1, if on.
func (r Route[In, Out]) Flag(name string, on bool) Route[In, Out] {
	if on {
		return r.With(name, "1")
	}
	return r.With(name, "")
}

// Method is the method of HTTP.
func (r Route[In, Out]) Method() string {
	method, _, _ := strings.Cut(r.Pattern, " ")
	return method
}

// Target is the path with its query, for a transfer that a caller does itself.
func (r Route[In, Out]) Target() string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	if strings.Contains(path, "{") {
		panic("route " + r.Name + ": a parameter of the path is missing")
	}
	if r.query != "" {
		path += "?" + r.query[1:]
	}
	return Root + path
}

// Caller sends a request, with in as its body unless that is nil, and decodes the
// answer into out unless that is nil.
type Caller interface {
	Call(ctx context.Context, method, target string, in, out any) error
}

// Body gives the body of the request.
func (r Route[In, Out]) Body(in In) Route[In, Out] {
	r.body = in
	return r
}

// Ask calls the route.
func (r Route[In, Out]) Ask(ctx context.Context, c Caller) (out Out, err error) {
	err = c.Call(ctx, r.Method(), r.Target(), r.body, bodyOf(&out))
	return out, err
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
	Name, Method, Path, Summary string
	Query                       []Param
	Request, Response           any
	Status                      int
	Stream                      Stream
}

// Describe describes the route.
func (r Route[In, Out]) Describe() Description {
	var in In
	var out Out
	method, path, _ := strings.Cut(r.Pattern, " ")
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	return Description{Name: r.Name, Method: method, Path: Root + path, Summary: r.Summary, Query: r.Query,
		Request: bodyOf(in), Response: bodyOf(out), Status: status, Stream: r.Stream}
}

// agentQuery is how one agent is singled out.
var agentQuery = []Param{{"agent", "only this one; empty: all"}}
