package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/gorilla/websocket"

	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// terminalRoutes are the routes of terminals and commands in sessions.
type terminalRoutes struct {
	hub     *hub.Hub
	sockets *sockets
}

func (s terminalRoutes) mount(m *mounts) {
	answer(m, route.Terminals, inSession(s.hub, s.listTerminals))
	take(m, route.TerminalOpen, sendInSession(s.hub, s.openTerminal))
	answer(m, route.TerminalClose, inSession(s.hub, s.closeTerminal))
	answer(m, route.TerminalSearch, inSession(s.hub, s.searchTerminals))
	m.stream(route.TerminalAttach.Endpoint, s.attachTerminal)
	m.stream(route.TerminalOutput.Endpoint, s.terminalOutput)
	m.stream(route.Exec.Endpoint, s.exec)
}

func (s terminalRoutes) listTerminals(r *http.Request, agent session.Terminals, id session.ID) ([]session.Terminal,
	error) {
	return agent.ListTerminals(r.Context(), id)
}

func (s terminalRoutes) openTerminal(r *http.Request, agent session.Terminals, id session.ID,
	req session.TerminalRequest) (session.Terminal, error) {
	if wrong := terminalFaults(req); len(wrong) > 0 {
		return session.Terminal{}, refusal(session.CodeSessionInvalid, wrong)
	}
	return agent.OpenTerminal(r.Context(), id, req)
}

// Sizes that a terminal may have; 0 stands for the usual 80 by 24.
const (
	sizeMost  = 1000
	titleMost = 200
)

func terminalFaults(req session.TerminalRequest) []session.FieldError {
	var wrong []session.FieldError
	bad := func(field, message, hint string) {
		wrong = append(wrong, session.FieldError{Field: field, Kind: session.KindInvalid, Message: message,
			Hint: hint})
	}
	if req.Cols < 0 || req.Cols > sizeMost {
		bad("cols", "A terminal has 1 to 1000 columns.", "80 is usual.")
	}
	if req.Rows < 0 || req.Rows > sizeMost {
		bad("rows", "A terminal has 1 to 1000 rows.", "24 is usual.")
	}
	if len(req.Title) > titleMost {
		bad("title", "The title is longer than 200 bytes.", "Choose a shorter one.")
	}
	return wrong
}

func (s terminalRoutes) closeTerminal(r *http.Request, agent session.Terminals, id session.ID) (none, error) {
	return none{}, agent.CloseTerminal(r.Context(), id, r.PathValue("terminal"))
}

// attachTerminal bridges a WebSocket and the attach protocol. A viewer that
// stalls is dropped; it comes back with its offset and loses nothing.
func (s terminalRoutes) attachTerminal(w http.ResponseWriter, r *http.Request) error {
	req := session.AttachRequest{Terminal: r.PathValue("terminal"), Client: r.FormValue("client")}
	if text := r.FormValue("offset"); text != "" {
		var err error
		if req.Offset, err = strconv.ParseUint(text, 10, 64); err != nil {
			return badQuery("offset", "offset is the first output byte wanted.",
				"Write a whole number, or leave it out.")
		}
	}
	conn, ctx, err := s.sockets.upgrade(w, r, false)
	if conn == nil {
		return err
	}
	defer conn.cancel()
	s.carry(ctx, conn, func() (terminal.Conn, error) { return s.attach(ctx, r.PathValue("id"), req) })
	return nil
}

// attach joins a terminal. What comes from another machine is checked.
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

// exec bridges a WebSocket and the exec protocol. What a command writes exists
// only once, so a caller that pauses is waited for: nothing is held for it but
// one frame, and the command waits as it would on a pipe.
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
	s.carry(ctx, conn, func() (terminal.Conn, error) {
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
		return frames(agent.Exec(ctx, id, req))
	})
	return nil
}

// frames makes a connection of a stream, if there is one.
func frames(stream io.ReadWriteCloser, err error) (terminal.Conn, error) {
	if err != nil {
		return nil, err
	}
	return terminal.NewConn(stream), nil
}

// carry opens a stream of frames and carries it over the socket until either
// side ends. Each direction holds one frame at a time and waits for the other
// side to take it.
func (s terminalRoutes) carry(ctx context.Context, conn *socket, open func() (terminal.Conn, error)) {
	gone := make(chan struct{})
	frames, err := open()
	if err != nil {
		go func() { defer close(gone); conn.discard() }()
		conn.refuse(err, gone)
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = frames.Close() }) // frees whoever waits for the stream
	defer stop()
	go func() {
		defer close(gone)
		carryUp(conn, frames)
		conn.cancel()
	}()
	err = carryDown(conn, frames)
	switch {
	case errors.Is(err, io.EOF):
		conn.end(websocket.CloseNormalClosure, "", gone)
	case ctx.Err() == nil:
		conn.end(websocket.CloseInternalServerErr, "the stream broke", gone)
	}
	_ = frames.Close()
}

// carryUp carries messages to the stream until the client is gone. Once the
// stream takes no more, messages are read and dropped: the client is about to
// learn of the end.
func carryUp(conn *socket, frames terminal.Conn) {
	taking := true
	for {
		kind, message, err := conn.next()
		if err != nil {
			return
		}
		if !taking || kind != websocket.BinaryMessage {
			continue
		}
		frame, err := terminal.ParseMessage(message)
		if err != nil {
			conn.reject()
			return
		}
		taking = frames.WriteFrame(frame) == nil
	}
}

// carryDown carries frames to the client until the stream ends, with io.EOF if
// it ended in good order.
func carryDown(conn *socket, frames terminal.Conn) error {
	for {
		frame, err := frames.ReadFrame()
		if err != nil {
			return err
		}
		if err := conn.hurry(); err != nil {
			return err
		}
		if err := writeFrame(conn, frame); err != nil {
			return err
		}
	}
}

func writeFrame(conn *socket, frame terminal.Frame) error {
	writer, err := conn.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return err
	}
	if _, err := writer.Write([]byte{byte(frame.Type)}); err != nil {
		return err
	}
	if _, err := writer.Write(frame.Payload); err != nil {
		return err
	}
	return writer.Close()
}
