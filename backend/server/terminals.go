package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
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

const (
	ackStep     = terminal.Window / 4 // bytes of a spool between acknowledgements
	searchDepth = 16 << 20            // newest bytes of each shell that are searched
	searchMost  = 300                 // lines that one search finds
	searchLine  = 240                 // bytes of a line that are shown around a match
	queryMost   = 200                 // bytes
)

// readSpool calls take with the output of a shell from an offset up to now. It skips bytes that are no longer kept.
func (s terminalRoutes) readSpool(ctx context.Context, id session.ID, t session.Terminal, from uint64,
	take func(offset uint64, data []byte) error) error {
	if from >= t.End {
		return nil
	}
	conn, err := s.attach(ctx, string(id), session.AttachRequest{Terminal: t.ID, Offset: from})
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for told := from; ; {
		frame, err := conn.ReadFrame()
		if err != nil {
			return cutShort(ctx, err)
		}
		var at uint64
		var data []byte
		switch frame.Type {
		case terminal.FrameData:
			at, data, err = frame.Data()
		case terminal.FrameGap:
			_, at, err = frame.Gap()
		}
		if err != nil {
			return err
		}
		end := at + uint64(len(data))
		if len(data) > 0 {
			if err := take(at, data[:min(uint64(len(data)), t.End-min(at, t.End))]); err != nil {
				return err
			}
		}
		if end >= t.End || frame.Type == terminal.FrameExit {
			return nil
		}
		if end >= told+ackStep {
			told = end
			if err := conn.WriteFrame(terminal.Ack(end)); err != nil {
				return cutShort(ctx, err)
			}
		}
	}
}

// readLines calls line with the output of a shell as plain lines of text.
func (s terminalRoutes) readLines(ctx context.Context, id session.ID, t session.Terminal, from uint64,
	line func(offset uint64, text []byte) error) error {
	lines := terminal.Plain{Line: line}
	if err := s.readSpool(ctx, id, t, from, lines.Write); err != nil {
		return err
	}
	return lines.End()
}

func cutShort(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &session.Error{Code: session.CodeSessionUnavailable, Hint: "Try again.", Err: err,
		Message: "The connection to the shell's output was lost."}
}

// terminalOf returns a shell of a session by its id, or session_use_not-found.
func (s terminalRoutes) terminalOf(ctx context.Context, ref, id string) (session.ID, session.Terminal, error) {
	agent, owner, err := s.hub.Find(ctx, ref)
	if err != nil {
		return "", session.Terminal{}, err
	}
	list, err := agent.ListTerminals(ctx, owner)
	if err != nil {
		return "", session.Terminal{}, err
	}
	i := slices.IndexFunc(list, func(t session.Terminal) bool { return t.ID == id })
	if i < 0 {
		return "", session.Terminal{}, session.NewError(session.CodeUseNotFound, "The session has no such terminal.",
			"It may have been closed in another window.")
	}
	return owner, list[i], nil
}

// terminalOutput sends the output of a shell, as far as it is kept, raw or as plain text.
func (s terminalRoutes) terminalOutput(w http.ResponseWriter, r *http.Request) error {
	form := cmp.Or(r.FormValue("form"), "text")
	if form != "text" && form != "raw" {
		return badQuery("form", "form is text or raw.", "Omit it for text.")
	}
	id, t, err := s.terminalOf(r.Context(), r.PathValue("id"), r.PathValue("terminal"))
	if err != nil {
		return err
	}
	name := string(id)
	if one, _, err := s.hub.Get(r.Context(), string(id)); err == nil {
		name = one.Name
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition",
		mime.FormatMediaType("attachment", map[string]string{"filename": name + "-terminal-" + t.ID + ".txt"}))
	if form == "raw" {
		err = s.readSpool(r.Context(), id, t, t.Start,
			func(_ uint64, data []byte) error { _, err := w.Write(data); return err })
	} else {
		err = s.readLines(r.Context(), id, t, t.Start, func(_ uint64, text []byte) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
	}
	if err != nil {
		panic(http.ErrAbortHandler) // a part may be written; it must not look complete
	}
	return nil
}

// searchTerminals searches the output of all shells of a session.
func (s terminalRoutes) searchTerminals(r *http.Request, agent session.Agent, id session.ID) (api.TerminalSearch,
	error) {
	query := r.FormValue("q")
	if query == "" || len(query) > queryMost {
		return api.TerminalSearch{}, badQuery("q", "q is the text to find, of 1 to 200 bytes.",
			"Write some letters of it.")
	}
	list, err := agent.ListTerminals(r.Context(), id)
	if err != nil {
		return api.TerminalSearch{}, err
	}
	var found api.TerminalSearch
	for _, t := range list {
		matches, whole, err := s.searchSpool(r.Context(), id, t, query)
		if session.CodeOf(err).Detail() == session.DetailNotFound {
			continue // closed in the meantime
		}
		if err != nil {
			return api.TerminalSearch{}, err
		}
		found.Matches = append(found.Matches, matches...)
		found.Partial = found.Partial || !whole
	}
	return found, nil
}

// searchSpool searches the newest output of a shell. It returns matches newest first, and whether they are all.
func (s terminalRoutes) searchSpool(ctx context.Context, id session.ID, t session.Terminal,
	query string) ([]api.TerminalMatch, bool, error) {
	from, whole := t.Start, true
	if t.End-t.Start > searchDepth {
		from, whole = t.End-searchDepth, false
	}
	var found []api.TerminalMatch
	folded := fold([]byte(query))
	err := s.readLines(ctx, id, t, from, func(offset uint64, text []byte) error {
		at := bytes.Index(fold(text), folded)
		if at < 0 {
			return nil
		}
		if len(found) == searchMost {
			found, whole = append(found[:0], found[1:]...), false
		}
		found = append(found, matchOf(t.ID, offset, text, at, len(folded)))
		return nil
	})
	slices.Reverse(found)
	return found, whole, err
}

// fold ignores case but keeps the length of each letter.
func fold(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); len(string(lower)) == len(string(r)) {
			return lower
		}
		return r
	}, bytes.ToValidUTF8(text, []byte("?")))
}

// matchOf cuts the part of a line around a match.
func matchOf(id string, offset uint64, text []byte, at, length int) api.TerminalMatch {
	valid := bytes.ToValidUTF8(text, []byte("?"))
	begin, end := max(0, at-searchLine/2), min(len(valid), at+length+searchLine/2)
	part := func(from, to int) string {
		return strings.ToValidUTF8(string(valid[min(from, len(valid)):min(to, len(valid))]), "")
	}
	return api.TerminalMatch{Terminal: id, Offset: offset, Before: part(begin, at), Text: part(at, at+length),
		After: part(at+length, end)}
}
