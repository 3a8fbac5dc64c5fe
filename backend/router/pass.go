package router

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"time"
)

// pass passes an answer on. It reports whether the connection may be used again.
func (c *call) pass(x *exchange) (reuse bool, p *problem) {
	c.body.kept = nil // it is not needed again, and the answer may take long
	switch switches := x.answer.StatusCode == http.StatusSwitchingProtocols; {
	case switches && c.target.webSocket:
		return false, c.switchProtocols(x)
	case switches:
		return false, failed(http.StatusBadGateway, "bad_gateway", "The replica switched to another protocol.")
	}
	kind, _, _ := mime.ParseMediaType(x.answer.Header.Get("Content-Type"))
	events := kind == "text/event-stream"
	c.record.Stream = c.record.Stream || events
	if c.answer.beaten && (x.answer.StatusCode != http.StatusOK || !events) {
		return false, failed(http.StatusBadGateway, "bad_gateway",
			fmt.Sprintf("The replica answered with status %d and no stream.", x.answer.StatusCode))
	}
	if !c.answer.began {
		if x.upload != nil && len(x.sent) == 0 {
			c.answer.w.Header().Set("Connection", "close") // as for a problem
		}
		c.head(x.answer, events)
	}
	flush := events || x.answer.ContentLength < 0
	if p := c.copy(x.answer, c.reader(kind), flush); p != nil {
		return false, p
	}
	c.record.Outcome = OutcomeOK
	if x.answer.StatusCode >= http.StatusInternalServerError {
		c.record.Outcome = OutcomeFailed
	}
	return !events && !c.stream, nil
}

// head sends the status and headers of an answer.
func (c *call) head(answer *http.Response, events bool) {
	removeHops(answer.Header)
	maps.DeleteFunc(answer.Header, func(name string, _ []string) bool {
		// Who may use it is up to the router, and cookies would be sent to other servers of the host.
		return strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie"
	})
	if events && c.remove {
		answer.Header.Del("Content-Length")
	}
	maps.Copy(c.answer.w.Header(), answer.Header)
	c.answer.begin(answer.StatusCode)
}

// reader reads the usage in a body while it is passed on.
type reader interface {
	pass(p []byte) []byte   // returns the bytes to pass on
	rest(whole bool) []byte // and those at the end of the body
	total() (u usage)       // what was found
}

func (c *call) reader(kind string) reader {
	switch {
	case kind == "text/event-stream":
		return newEvents(c.remove)
	case kind == "application/json":
		return &tail{}
	}
	return nothing{}
}

// nothing reads no usage.
type nothing struct{}

func (nothing) pass(p []byte) []byte { return p }
func (nothing) rest(bool) []byte     { return nil }
func (nothing) total() usage         { return usage{} }

// copy passes a body on as it arrives. A problem without a status means that it broke off.
func (c *call) copy(answer *http.Response, reader reader, flush bool) *problem {
	buffer := c.router.buffers.Get().(*[]byte)
	defer c.router.buffers.Put(buffer)
	defer func() {
		u := reader.total()
		c.record.Prompt, c.record.Completion = u.prompt, u.completion
	}()
	ctx := c.request.Context()
	for {
		n, err := answer.Body.Read(*buffer)
		whole := errors.Is(err, io.EOF)
		now := flush && !whole // the end goes out with what says that it is the end
		if c.answer.write(reader.pass((*buffer)[:n]), now) != nil {
			return gone(ctx, OutcomeClientLeft)
		}
		if err == nil {
			continue
		}
		if c.answer.write(reader.rest(whole), now) != nil {
			return gone(ctx, OutcomeClientLeft)
		}
		if !whole {
			return gone(ctx, OutcomeCut)
		}
		return nil
	}
}

// switchProtocols copies bytes in both directions until one side closes its connection.
func (c *call) switchProtocols(x *exchange) *problem {
	client, buffered, err := c.answer.control.Hijack()
	if err != nil {
		return failed(http.StatusBadGateway, "bad_gateway", "This connection cannot switch protocols.")
	}
	defer client.Close()
	c.answer.began, c.answer.status = true, x.answer.StatusCode
	x.answer.Header.Del("Content-Length")
	if err := errors.Join(client.SetDeadline(time.Time{}), x.answer.Write(buffered), buffered.Flush()); err != nil {
		return gone(c.request.Context(), OutcomeClientLeft)
	}
	x.conn.patience = 0
	_ = x.conn.SetReadDeadline(time.Time{}) // such a connection may be silent
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(x.conn, buffered.Reader) // the end of either side is the end of both
		x.conn.Close()
	}()
	c.answer.bytes, _ = io.Copy(client, x.conn.reader)
	client.Close()
	<-ended
	c.record.Outcome = OutcomeOK
	return nil
}
