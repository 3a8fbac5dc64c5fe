package terminal

import "unicode/utf8"

// maxLine is how many bytes of one line are kept.
const maxLine = 16 << 10

// Plain turns what a shell printed into the lines that a person has read:
// without escape sequences, without what a carriage return or a backspace has
// replaced. It takes the output in pieces of any size. Line is called for each
// line with the offset of its first byte; the text is valid until it returns.
type Plain struct {
	Line func(offset uint64, text []byte) error

	state  plainState
	text   []byte
	begun  uint64 // offset of the line's first byte
	filled bool   // the line has a first byte
	turned bool   // a carriage return came last
}

type plainState byte

const (
	plainText    plainState = iota
	plainEscape             // after ESC
	plainControl            // in a control sequence, which ends with a letter
	plainString             // in a string, which ends with BEL or ESC \
	plainEnding             // after the ESC in a string
	plainCharset            // in ESC ( and the like, which have one more byte
)

// Write takes output that begins at offset.
func (p *Plain) Write(offset uint64, data []byte) error {
	for i, b := range data {
		if p.escapes(b) {
			continue
		}
		if b == '\n' {
			if err := p.flush(); err != nil {
				return err
			}
			continue
		}
		p.put(offset+uint64(i), b)
	}
	return nil
}

// End tells the last line if it has no end of its own.
func (p *Plain) End() error {
	if !p.filled {
		return nil
	}
	return p.flush()
}

func (p *Plain) flush() error {
	begun, text := p.begun, p.text
	p.text, p.filled, p.turned = p.text[:0], false, false
	return p.Line(begun, text)
}

func (p *Plain) put(offset uint64, b byte) {
	if !p.filled {
		p.begun, p.filled = offset, true
	}
	switch {
	case b == '\r':
		p.turned = true
	case b == '\b':
		_, size := utf8.DecodeLastRune(p.text)
		p.text = p.text[:len(p.text)-size]
	case b < ' ' && b != '\t' || b == 0x7f:
	default:
		if p.turned {
			p.text, p.turned, p.begun = p.text[:0], false, offset
		}
		if len(p.text) < maxLine {
			p.text = append(p.text, b)
		}
	}
}

// escapes reports whether a byte belongs to an escape sequence.
func (p *Plain) escapes(b byte) bool {
	const escape = 0x1b
	switch p.state {
	case plainText:
		if b != escape {
			return false
		}
		p.state = plainEscape
	case plainEscape, plainEnding:
		p.state = afterEscape(b, p.state == plainEnding)
	case plainControl:
		if b >= '@' && b <= '~' {
			p.state = plainText
		}
	case plainCharset:
		p.state = plainText
	case plainString:
		switch b {
		case '\a':
			p.state = plainText
		case escape:
			p.state = plainEnding
		}
	}
	return true
}

// afterEscape is the state that the byte after an ESC leads to. In a string it
// ends the string, whatever it is.
func afterEscape(b byte, inString bool) plainState {
	switch {
	case b == '[':
		return plainControl
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		return plainString
	case inString:
		return plainText
	case b >= ' ' && b <= '/':
		return plainCharset
	}
	return plainText
}
