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

// files forwards a call to [Processes].Files.
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
	carry(stream, far)
	return nil
}

// ServeFiles answers one call for files from conn and closes it. If the caller closes it first, the call is cancelled.
func ServeFiles(conn net.Conn, tree files.Tree) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout))
	var call link.FileCall
	if err := link.ReadMessage(conn, &call); err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if call.Op != link.FileWrite {
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until its end
			cancel()
		}()
	}
	if value, err := serveFiles(ctx, conn, tree, call); err != nil {
		_ = link.ReplyError(conn, err) // the caller may be gone
	} else {
		_ = link.ReplyOK(conn, value)
	}
}

// serveFiles handles a call and returns the last answer.
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

// sendContent answers, then sends a part of a file in pieces. A last answer follows with the result.
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
