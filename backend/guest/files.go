package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"slipway/backend/files"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// files hands a call over to whoever reaches the files as the session's user.
func (g *Guest) files(ctx context.Context, stream net.Conn, call link.FileCall) error {
	far, err := g.cfg.Processes.Files(ctx)
	if err != nil {
		return session.WrapError(err, session.CodeSessionUnavailable, "The session's files are unavailable.",
			"Try again. If it happens again, the session may be out of memory.")
	}
	defer far.Close()
	if err := link.WriteMessage(far, call); err != nil {
		return err
	}
	carry(stream, far) // the caller sees an answer, or that there is none
	return nil
}

// callWithin is how long whoever called for files may take to say what for.
const callWithin = 30 * time.Second

// ServeFiles answers one call for files, which it reads from conn, and closes it. The far end may close it at any
// moment, which gives the call up.
func ServeFiles(conn net.Conn, tree files.Tree) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(callWithin))
	var call link.FileCall
	if err := link.ReadMessage(conn, &call); err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if call.Op != link.FileWrite {
		go func() {
			_, _ = io.Copy(io.Discard, conn) // only its end matters
			cancel()
		}()
	}
	value, err := serveFiles(ctx, conn, tree, call)
	if err != nil {
		_ = link.ReplyError(conn, err) // nobody else to tell
		return
	}
	_ = link.ReplyOK(conn, value) // see above
}

// serveFiles does what a call asks. What it returns is the last answer.
func serveFiles(ctx context.Context, conn net.Conn, tree files.Tree, call link.FileCall) (any, error) {
	switch {
	case call.Op == link.FileRead && call.Read != nil:
		return nil, sendContent(ctx, conn, tree, *call.Read)
	case call.Op == link.FileWrite && call.Upload != nil:
		if err := link.ReplyOK(conn, nil); err != nil {
			return nil, err
		}
		return anything(tree.WriteUpload(ctx, *call.Upload, link.NewPieceReader(conn)))
	}
	return plainCall(ctx, tree, call)
}

func unknownCall() error {
	return session.NewError(session.CodeFileInvalid, "The session does not support this file operation.",
		"Start the session again with this version of Slipway.")
}

func anything[T any](value T, err error) (any, error) { return value, err }

// sendContent answers, then sends a part of a file in pieces. How it ended is the answer after them.
func sendContent(ctx context.Context, conn net.Conn, tree files.Tree, req session.ReadRequest) error {
	from, err := tree.ReadFile(ctx, req)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := link.ReplyOK(conn, nil); err != nil {
		return err
	}
	pieces := link.NewPieceWriter(conn)
	_, err = pieces.ReadFrom(from)
	return errors.Join(err, pieces.End())
}
