package terminal

import (
	"bytes"
	"slices"
	"strconv"
)

// modes tracks the terminal's modes in the output of a shell, which may be split anywhere. A copy is a checkpoint.
type modes struct {
	chosen      [len(choices)]uint16 // the set mode of each choice, 0: none
	changed     [len(switches)]bool  // the switch differs from its initial state
	appKeypad   bool                 // ESC =, mode 66
	cursorStyle byte                 // of CSI n SP q

	state   scanState
	length  byte // of params; more than its capacity: too long, ignore the sequence
	params  [47]byte
	private bool // params follow a ?
}

// switches and their initial states: application cursor, reverse, wrap, visible cursor, focus, paste.
var switches = [...]struct {
	number uint16
	first  bool
}{{1, false}, {5, false}, {7, true}, {25, true}, {1004, false}, {2004, false}}

// choices are groups of modes of which at most one is set: alternate screen, mouse protocol, mouse encoding.
var choices = [...][]uint16{{47, 1047, 1049}, {9, 1000, 1002, 1003}, {1005, 1006, 1015, 1016}}

var softReset = []uint16{1, 7, 25}

type scanState byte

const (
	scanGround scanState = iota
	scanEscape
	scanCharset // ESC ( and the like: one more byte
	scanCSI
	scanString       // OSC, DCS, APC, PM, SOS: until BEL or ST
	scanStringEscape // ESC inside a string
)

const escape = 0x1b

// escapes parses one byte and reports whether it belongs to an escape sequence.
func (m *modes) escapes(c byte) bool {
	ground := m.state == scanGround
	m.step(c)
	return !ground || c == escape
}

func (m *modes) feed(p []byte) {
	for len(p) > 0 {
		if m.state == scanGround {
			next := bytes.IndexByte(p, escape)
			if next < 0 {
				return
			}
			p = p[next:]
		}
		m.step(p[0])
		p = p[1:]
	}
}

func (m *modes) step(c byte) {
	if c == 0x18 || c == 0x1a { // CAN, SUB end any sequence
		m.state = scanGround
		return
	}
	switch m.state {
	case scanGround:
		if c == escape {
			m.state = scanEscape
		}
	case scanEscape:
		m.escaped(c)
	case scanCharset:
		m.state = scanGround
	case scanCSI:
		m.csi(c)
	case scanString:
		switch c {
		case escape:
			m.state = scanStringEscape
		case 0x07:
			m.state = scanGround
		}
	case scanStringEscape:
		m.state = scanEscape
		m.escaped(c) // ST is ESC \, which has no other meaning
	}
}

func (m *modes) escaped(c byte) {
	m.state = scanGround
	switch {
	case c == '[':
		m.state, m.length, m.private = scanCSI, 0, false
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		m.state = scanString
	case c >= ' ' && c <= '/':
		m.state = scanCharset
	case c == escape:
		m.state = scanEscape
	case c == '=' || c == '>':
		m.appKeypad = c == '='
	case c == 'c': // RIS
		*m = modes{}
	}
}

func (m *modes) csi(c byte) {
	switch {
	case c == escape:
		m.state = scanEscape
	case c < 0x20: // a control character takes effect inside a sequence
	case c >= 0x40 && c <= 0x7e:
		m.state = scanGround
		if int(m.length) <= len(m.params) {
			m.apply(c, m.params[:m.length])
		}
	case c == '?' && m.length == 0:
		m.private = true
	case int(m.length) < len(m.params):
		m.params[m.length] = c
		m.length++
	default:
		m.length = byte(len(m.params)) + 1
	}
}

func (m *modes) apply(final byte, params []byte) {
	switch {
	case m.private && (final == 'h' || final == 'l'):
		for one := range bytes.SplitSeq(params, []byte{';'}) {
			if number, err := strconv.ParseUint(string(one), 10, 16); err == nil {
				m.set(uint16(number), final == 'h')
			}
		}
	case final == 'p' && string(params) == "!": // DECSTR
		for i, s := range switches {
			m.changed[i] = m.changed[i] && !slices.Contains(softReset, s.number)
		}
		m.appKeypad, m.cursorStyle = false, 0
	case final == 'q' && len(params) > 0 && params[len(params)-1] == ' ':
		m.cursorStyle = 0
		if style, err := strconv.ParseUint(string(params[:len(params)-1]), 10, 8); err == nil && style <= 6 {
			m.cursorStyle = byte(style)
		}
	}
}

func (m *modes) set(number uint16, on bool) {
	if number == 66 {
		m.appKeypad = on
	}
	for i, s := range switches {
		if s.number == number {
			m.changed[i] = on != s.first
		}
	}
	for i, choice := range choices {
		if slices.Contains(choice, number) {
			m.chosen[i] = 0
			if on {
				m.chosen[i] = number
			}
		}
	}
}

// preamble returns the sequences that set these modes in a terminal in its initial state.
func (m *modes) preamble() []byte {
	var out []byte
	private := func(number uint16, final byte) {
		out = append(out, escape, '[', '?')
		out = strconv.AppendUint(out, uint64(number), 10)
		out = append(out, final)
	}
	for _, number := range m.chosen {
		if number != 0 {
			private(number, 'h')
		}
	}
	for i, s := range switches {
		if m.changed[i] && s.first {
			private(s.number, 'l')
		} else if m.changed[i] {
			private(s.number, 'h')
		}
	}
	if m.appKeypad {
		out = append(out, escape, '=')
	}
	if m.cursorStyle != 0 {
		out = append(out, escape, '[', '0'+m.cursorStyle, ' ', 'q')
	}
	return out
}
