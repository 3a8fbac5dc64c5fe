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

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

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
		return badQuery("form", "form is text or raw.", "Leave it out for text.")
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
