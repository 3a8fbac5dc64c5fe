package router

import (
	"bytes"
	"strconv"
)

// usage counts tokens.
type usage struct{ prompt, completion int }

// add takes over what another report says.
func (u *usage) add(other usage) {
	if other.prompt > 0 {
		u.prompt = other.prompt
	}
	if other.completion > 0 {
		u.completion = other.completion
	}
}

// counts reads a usage object, with the names of either of OpenAI's interfaces.
func counts(object []byte) (u usage, ok bool) {
	members(object, func(key string, value span) {
		n, err := strconv.Atoi(string(value.of(object)))
		if err != nil || n < 0 {
			return
		}
		switch key {
		case "prompt_tokens", "input_tokens":
			u.prompt, ok = n, true
		case "completion_tokens", "output_tokens":
			u.completion, ok = n, true
		}
	})
	return u, ok
}

// tail keeps the end of a plain answer, where its usage is.
type tail struct{ kept []byte }

const longestTail = 4 << 10

func (t *tail) pass(p []byte) []byte {
	end := p[max(0, len(p)-longestTail):]
	if over := len(t.kept) + len(end) - longestTail; over > 0 {
		t.kept = t.kept[:copy(t.kept, t.kept[over:])]
	}
	t.kept = append(t.kept, end...)
	return p
}

func (t *tail) rest(bool) []byte { return nil }

// total finds the last usage object.
func (t *tail) total() usage {
	for text := t.kept; ; {
		at := bytes.LastIndex(text, []byte(`"usage"`))
		if at < 0 {
			return usage{}
		}
		s := &scanner{text: t.kept, at: at + len(`"usage"`)}
		if s.take(':') == whole {
			if value, how := s.value(); how == whole {
				if u, ok := counts(value.of(t.kept)); ok {
					return u
				}
			}
		}
		text = text[:at]
	}
}

// events reads the usage in a stream of server-sent events, and removes the event that has nothing else if remove is
// set. All other bytes stay as they are. An event of more than longestEvent bytes is passed on unread. If remove is
// set, the bytes of other events are held until the event is complete, which servers send at once.
type events struct {
	remove bool
	sum    usage

	held  []byte // the beginning of the current event, as long as it may be removed
	out   []byte
	size  int  // bytes of the current event
	empty bool // the current line is, so far
}

const longestEvent = 64 << 10

func newEvents(remove bool) *events { return &events{remove: remove, empty: true} }

// pass takes bytes of the stream and returns those to pass on, valid until the next call.
func (e *events) pass(p []byte) []byte {
	e.out = e.out[:0]
	from := 0
	for i, b := range p {
		switch {
		case b == '\n' && e.empty:
			e.add(p[from : i+1])
			e.end()
			from = i + 1
		case b == '\n':
			e.empty = true
		case b != '\r':
			e.empty = false
		}
	}
	e.add(p[from:])
	if !e.remove {
		return p
	}
	return e.out
}

// rest returns what is held at the end of the stream. Only a stream that ended whole may have the removed event there.
func (e *events) rest(ended bool) []byte {
	e.out = e.out[:0]
	if ended {
		e.end()
	} else {
		e.flush()
	}
	if !e.remove {
		return nil
	}
	return e.out
}

func (e *events) total() usage { return e.sum }

func (e *events) add(p []byte) {
	e.size += len(p)
	if e.size <= longestEvent {
		e.held = append(e.held, p...)
		return
	}
	e.flush()
	e.out = append(e.out, p...)
}

func (e *events) flush() {
	e.out = append(e.out, e.held...)
	e.held = e.held[:0]
}

// end looks at a complete event.
func (e *events) end() {
	if bytes.Contains(e.held, []byte(`"usage"`)) {
		u, bare := reported(e.held)
		if e.sum.add(u); bare && e.remove {
			e.held = e.held[:0]
		}
	}
	e.flush()
	e.size = 0
}

// reported returns the usage in an event, and whether the event has no words: its choices are an empty array.
func reported(event []byte) (u usage, bare bool) {
	var data []byte
	for line := range bytes.Lines(event) {
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, rest...)
		}
	}
	found, empty := false, false
	var look func(object []byte, top bool)
	look = func(object []byte, top bool) {
		members(object, func(key string, value span) {
			raw := value.of(object)
			switch {
			case key == "usage":
				one, ok := counts(raw)
				u.add(one)
				found = found || ok && top
			case key == "choices" && top:
				empty = isEmptyArray(raw)
			case (key == "response" || key == "message") && top:
				look(raw, false)
			}
		})
	}
	look(data, true)
	return u, found && empty
}

func isEmptyArray(raw []byte) bool {
	s := &scanner{text: raw}
	return s.take('[') == whole && s.take(']') == whole
}
