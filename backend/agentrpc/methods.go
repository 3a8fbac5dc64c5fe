package agentrpc

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// How long a call may take until its answer.
const (
	short = time.Minute
	long  = 2 * time.Minute
	// checking is how long the content of one file may take to be read and made durable.
	checking = 30 * time.Minute
	// slow is for what an engine does with many gigabytes.
	slow = time.Hour
)

// methodHello is answered by the handler itself.
var methodHello = plain[none, Hello]{spec: spec{"hello", tunnel.Control, read, short}}

// methodDialSSHBulk is DialSSH for connections that carry files.
var methodDialSSHBulk = duplex[dialSSHArgs]{spec{"ssh.bulk", tunnel.Bulk, once, short}, methodDialSSH.do}

// methods are those that a handler answers.
var methods = slices.Concat(table, []served{methodDialSSHBulk})

// DialSSH chooses the class of the connection's stream.
func (c *Client) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	method := methodDialSSH
	if req.Bulk {
		method = methodDialSSHBulk
	}
	return method.open(ctx, c, dialSSHArgs{id, req})
}

// Launch gives a request without a Key one, so that it has one effect however often it must be sent.
func (c *Client) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	if req.Key == "" {
		req.Key = rand.Text()
	}
	return methodLaunch.call(ctx, c, req)
}

// readFileArgs ask for a part of a file.
type readFileArgs struct {
	Place session.Place       `json:"place"`
	Read  session.ReadRequest `json:"read"`
}

// at asks for what follows the first bytes.
func (r readFileArgs) at(offset int64) readFileArgs {
	if r.Read.Length > 0 {
		r.Read.Length -= offset - r.Read.Offset
	}
	r.Read.Offset = offset
	return r
}

func openReadFile(ctx context.Context, a session.Agent, r readFileArgs) (downloaded, error) {
	from, err := a.ReadFile(ctx, r.Place, r.Read)
	return downloaded{from, r.Read.Offset}, err
}

// ReadFile resumes after a cut where the client can wait for its connection; a caller that names a version is sure that
// it reads on in the same content. ctx bounds all of it.
func (c *Client) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	from, err := methodReadFile.open(ctx, c, readFileArgs{place, req})
	if err != nil || req.Length == 0 {
		return from, err
	}
	return limited{io.LimitReader(from, req.Length), from}, nil
}

// limited ends where enough has come, so that a part that is complete is not resumed.
type limited struct {
	io.Reader
	io.Closer
}

// administered asks what only an admin may.
func administered[T any](a session.Agent, method string, call func(session.Admin) (T, error)) (T, error) {
	if a.Admin != nil {
		return call(a.Admin)
	}
	var nothing T
	return nothing, unsupported(method)
}

// Audit asks for a part of the log. Older agents know only how many entries are asked for: of their answer what is not
// asked for is left out, and one that has nothing older than what is known ends in an error.
func (c *Client) Audit(ctx context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	entries, err := methodAudit.call(ctx, c, asked, atMost[session.AuditEntry](asked.Limit))
	if err == nil && !asked.Before.IsZero() &&
		slices.ContainsFunc(entries, func(e session.AuditEntry) bool { return e.At.Equal(asked.Before) }) {
		err = unsupported("audit")
	}
	return slices.DeleteFunc(entries, func(e session.AuditEntry) bool { return !asked.Matches(e) }), err
}
