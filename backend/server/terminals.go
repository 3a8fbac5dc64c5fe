package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/gorilla/websocket"

	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

type terminalRoutes struct {
	hub     *hub.Hub
	sockets *sockets
}

func (s terminalRoutes) mount(m *mounts) {
	answer(m, route.Terminals, inSession(s.hub,
		func(r *http.Request, agent session.Agent, id session.ID) ([]session.Terminal, error) {
			return agent.ListTerminals(r.Context(), id)
		}))
	take(m, route.TerminalOpen, sendInSession(s.hub, openTerminal))
	answer(m, route.TerminalClose, inSession(s.hub,
		func(r *http.Request, agent session.Agent, id session.ID) (none, error) {
			return none{}, agent.CloseTerminal(r.Context(), id, r.PathValue("terminal"))
		}))
	answer(m, route.TerminalSearch, inSession(s.hub, s.searchTerminals))
	m.stream(route.TerminalAttach.Endpoint, s.attachTerminal)
	m.stream(route.TerminalOutput.Endpoint, s.terminalOutput)
	m.stream(route.Exec.Endpoint, s.exec)
}

// Limits of a terminal. A size of 0 means the usual 80 by 24.
const (
	sizeMost  = 1000
	titleMost = 200
)

func openTerminal(r *http.Request, agent session.Agent, id session.ID,
	req session.TerminalRequest) (session.Terminal, error) {
	var wrong []session.FieldError
	if req.Cols < 0 || req.Cols > sizeMost {
		wrong = append(wrong, wrongField("cols", "A terminal has 1 to 1000 columns.", "80 is usual."))
	}
	if req.Rows < 0 || req.Rows > sizeMost {
		wrong = append(wrong, wrongField("rows", "A terminal has 1 to 1000 rows.", "24 is usual."))
	}
	if len(req.Title) > titleMost {
		wrong = append(wrong, wrongField("title", "The title is longer than 200 bytes.", "Choose a shorter one."))
	}
	if len(wrong) > 0 {
		return session.Terminal{}, session.Refused(session.CodeSessionInvalid, wrong...)
	}
	return agent.OpenTerminal(r.Context(), id, req)
}

// attachTerminal bridges a WebSocket and the attach protocol. A client that stalls is disconnected; it reconnects with
// its offset and loses nothing.
func (s terminalRoutes) attachTerminal(w http.ResponseWriter, r *http.Request) error {
	offset, err := offsetIn(r, "offset")
	if err != nil {
		return err
	}
	req := session.AttachRequest{Terminal: r.PathValue("terminal"), Client: r.FormValue("client"), Offset: offset}
	return s.sockets.bridge(w, r, false, func(ctx context.Context) (stream, error) {
		conn, err := s.attach(ctx, r.PathValue("id"), req)
		return frameStream{conn}, err
	})
}

// attach connects to a terminal. It checks what comes from another machine.
func (s terminalRoutes) attach(ctx context.Context, ref string, req session.AttachRequest) (terminal.Conn, error) {
	agent, id, err := s.hub.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	conn, err := frames(agent.AttachTerminal(ctx, id, req))
	if err != nil {
		return nil, err
	}
	if keeper, known := s.hub.Keeper(id); known && keeper.Address != "" {
		conn = terminal.Checked(conn, req.Offset)
	}
	return conn, nil
}

// exec bridges a WebSocket and the exec protocol. The output of a command is not kept, so if the client pauses, the
// command waits as it would on a pipe.
func (s terminalRoutes) exec(w http.ResponseWriter, r *http.Request) error {
	conn, ctx, err := s.sockets.upgrade(w, r, true)
	if conn == nil {
		return err
	}
	defer conn.cancel()
	kind, message, err := conn.next()
	if err != nil {
		return nil
	}
	conn.bridge(ctx, func() (stream, error) {
		if kind != websocket.TextMessage {
			return nil, malformed("The first message is not an ExecRequest as text.", nil)
		}
		var req session.ExecRequest
		found, err := decodeBytes(message, &req)
		if err = cmp.Or(err, failureOf(found.wrong)); err != nil {
			return nil, err
		}
		agent, id, err := s.hub.Find(ctx, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		conn, err := frames(agent.Exec(ctx, id, req))
		return frameStream{conn}, err
	})
	return nil
}

// frames wraps a stream, if there is one, in a connection of frames.
func frames(stream io.ReadWriteCloser, err error) (terminal.Conn, error) {
	if err != nil {
		return nil, err
	}
	return terminal.NewConn(stream), nil
}

// frameStream is a stream of frames, one for each message.
type frameStream struct{ terminal.Conn }

func (f frameStream) take(message []byte) error {
	frame, err := terminal.ParseMessage(message)
	if err != nil {
		return errors.Join(errBadMessage, err)
	}
	return f.WriteFrame(frame)
}

func (f frameStream) send(to *socket) error {
	frame, err := f.ReadFrame()
	if err != nil {
		return err
	}
	return to.write([]byte{byte(frame.Type)}, frame.Payload)
}
