package agentrpc

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// How long a call may take until its answer.
const (
	short    = time.Minute
	long     = 2 * time.Minute
	checking = 30 * time.Minute // to read one file and make it durable, or to install an app
	slow     = time.Hour        // for many gigabytes in an engine
)

// methodHello is answered by the handler, not by an agent.
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

// Launch adds a Key to a request without one, so that it may be repeated.
func (c *Client) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	if req.Key == "" {
		req.Key = rand.Text()
	}
	return methodLaunch.call(ctx, c, req)
}

type readFileArgs struct {
	Place session.Place       `json:"place"`
	Read  session.ReadRequest `json:"read"`
}

// at asks for what follows an offset.
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

// ReadFile resumes after a cut if the client can wait for its connection. With a version in req, the content cannot
// change meanwhile. ctx bounds all of it.
func (c *Client) ReadFile(ctx context.Context, place session.Place, req session.ReadRequest) (io.ReadCloser, error) {
	from, err := methodReadFile.open(ctx, c, readFileArgs{place, req})
	if err != nil || req.Length == 0 {
		return from, err
	}
	return limited{io.LimitReader(from, req.Length), from}, nil
}

// limited ends when all bytes have come, so that a complete part is not resumed.
type limited struct {
	io.Reader
	io.Closer
}

// administered makes a call of the part for admins.
func administered[T any](a session.Agent, method string, call func(session.Admin) (T, error)) (result T, err error) {
	if a.Admin == nil {
		return result, unsupported(method)
	}
	return call(a.Admin)
}

// Audit asks for a part of the log. Older agents know only its Limit: other entries in their answer are removed, and it
// is an error if it has nothing older than Before.
func (c *Client) Audit(ctx context.Context, asked session.AuditQuery) ([]session.AuditEntry, error) {
	entries, err := methodAudit.call(ctx, c, asked, atMost[session.AuditEntry](asked.Limit))
	if err == nil && !asked.Before.IsZero() &&
		slices.ContainsFunc(entries, func(e session.AuditEntry) bool { return e.At.Equal(asked.Before) }) {
		err = unsupported("audit")
	}
	return slices.DeleteFunc(entries, func(e session.AuditEntry) bool { return !asked.Matches(e) }), err
}

type logsArgs struct {
	ID      session.ID         `json:"id"`
	Options session.LogOptions `json:"options"`
	Offset  *int64             `json:"offset,omitempty"` // bytes to skip, instead of Options.Tail; to resume
}

func (a logsArgs) at(offset int64) logsArgs {
	a.Offset, a.Options.Tail = &offset, 0
	return a
}

// maxTail is the longest tail that can be resumed, in lines.
const maxTail = 100_000

// openLogs opens a log with its offset in the whole log, so that it can be resumed. If the engine has dropped the
// beginning of the log meanwhile, after tens of megabytes, some of it is missing.
func openLogs(ctx context.Context, a session.Agent, args logsArgs) (downloaded, error) {
	offset := int64(-1)
	switch {
	case args.Offset != nil:
		offset = *args.Offset
		if offset < 0 {
			return downloaded{}, session.NewError(session.CodeAgentInvalid, "The offset of a log cannot be negative.",
				"Read it from the beginning.")
		}
		args.Options.Tail = 0
	case args.Options.Tail <= 0:
		offset = 0
	case args.Options.Follow && args.Options.Tail <= maxTail:
		var err error
		if offset, err = tailOffset(ctx, a, args); err != nil {
			return downloaded{}, err
		}
		args.Options.Tail = 0
	}
	log, err := a.Logs(ctx, args.ID, args.Options)
	if err != nil {
		return downloaded{}, err
	}
	return downloaded{ReadCloser: &passingOver{ReadCloser: log, left: max(offset, 0)}, offset: offset}, nil
}

// tailOffset returns the offset of the last lines of a log.
func tailOffset(ctx context.Context, a session.Agent, args logsArgs) (int64, error) {
	whole := args.Options
	whole.Follow, whole.Tail = false, 0
	log, err := a.Logs(ctx, args.ID, whole)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	starts := make([]int64, args.Options.Tail) // of the newest lines, as a ring
	lines, at, begins := 0, int64(0), true
	for in := bufio.NewReaderSize(log, 64<<10); ; {
		piece, err := in.ReadSlice('\n')
		if len(piece) > 0 && begins {
			starts[lines%len(starts)] = at
			lines++
		}
		at += int64(len(piece))
		begins = err == nil
		switch {
		case errors.Is(err, io.EOF) && lines < len(starts):
			return 0, nil
		case errors.Is(err, io.EOF):
			return starts[lines%len(starts)], nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
	}
}

// passingOver skips the first bytes of a log.
type passingOver struct {
	io.ReadCloser
	left int64
}

func (p *passingOver) Read(b []byte) (int, error) {
	for p.left > 0 && len(b) > 0 {
		n, err := p.ReadCloser.Read(b[:min(int64(len(b)), p.left)])
		p.left -= int64(n)
		if err != nil {
			return 0, err
		}
	}
	return p.ReadCloser.Read(b)
}
