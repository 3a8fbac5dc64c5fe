package router

import (
	"bytes"
	"encoding/json"
	"iter"
)

// extent says how much of a JSON value is there.
type extent int

const (
	broken extent = iota // it is not JSON
	part                 // it may continue behind the bytes that are there
	whole
)

// span is where a value is in the text that was scanned.
type span struct{ from, to int }

func (s span) of(b []byte) []byte { return b[s.from:s.to] }

// scanner finds values in JSON text without decoding them. It does not check what is inside strings and nested values,
// which is up to the server that gets the text.
type scanner struct {
	text []byte
	at   int
}

// space skips white space and reports whether anything follows.
func (s *scanner) space() bool {
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n"), s.text[s.at]) >= 0 {
		s.at++
	}
	return s.at < len(s.text)
}

// take skips white space and one byte, which must be b.
func (s *scanner) take(b byte) extent {
	switch {
	case !s.space():
		return part
	case s.text[s.at] != b:
		return broken
	}
	s.at++
	return whole
}

// text of a string, from its quote on
func (s *scanner) skipString() extent {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return whole
		}
	}
	s.at = len(s.text)
	return part
}

// value skips white space and one value.
func (s *scanner) value() (span, extent) {
	if !s.space() {
		return span{}, part
	}
	from := s.at
	var how extent
	switch s.text[s.at] {
	case '"':
		how = s.skipString()
	case '{', '[':
		how = s.skipNested()
	default:
		how = s.skipScalar()
	}
	return span{from, s.at}, how
}

func (s *scanner) skipNested() extent {
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			if s.skipString() == part {
				return part
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.at++; depth == 0 {
			return whole
		}
	}
	return part
}

// longestScalar is more than the digits of any number that means something.
const longestScalar = 400

func (s *scanner) skipScalar() extent {
	from := s.at
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n,]}:\"[{"), s.text[s.at]) < 0 {
		if s.at++; s.at-from > longestScalar {
			return broken
		}
	}
	switch {
	case s.at == len(s.text):
		return part
	case !json.Valid(s.text[from:s.at]):
		return broken
	}
	return whole
}

// members calls visit for each complete member of the object that text begins with, and returns where its end is.
func members(text []byte, visit func(key string, value span)) (end int, how extent) {
	s := &scanner{text: text}
	how = s.list('{', '}', func() extent {
		if !s.space() {
			return part
		}
		if text[s.at] != '"' {
			return broken
		}
		from := s.at
		if s.skipString() == part {
			return part
		}
		key, ok := decodeString(text[from:s.at])
		if !ok {
			return broken
		}
		if how := s.take(':'); how != whole {
			return how
		}
		value, how := s.value()
		if how == whole {
			visit(key, value)
		}
		return how
	})
	return s.at, how
}

// elements yields the complete elements of the array that text begins with.
func elements(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := &scanner{text: text}
		s.list('[', ']', func() extent {
			value, how := s.value()
			if how == whole && !yield(value.of(text)) {
				return broken
			}
			return how
		})
	}
}

// list scans what is between two brackets, with commas between the items.
func (s *scanner) list(open, end byte, item func() extent) extent {
	if how := s.take(open); how != whole {
		return how
	}
	if s.space() && s.text[s.at] == end {
		s.at++
		return whole
	}
	for {
		if how := item(); how != whole {
			return how
		}
		switch {
		case !s.space():
			return part
		case s.text[s.at] == end:
			s.at++
			return whole
		}
		if how := s.take(','); how != whole {
			return how
		}
	}
}

// decodeString returns the text of a JSON string.
func decodeString(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err == nil
}
