package terminal

import "unicode/utf8"

const maxLine = 16 << 10

// Plain converts the output of a shell to lines as displayed: without escape sequences, and without text that a
// carriage return or a backspace has replaced. Output may come in pieces of any size. Line is called for each line with
// the offset of its first byte; the text is valid until it returns.
type Plain struct {
	Line func(offset uint64, text []byte) error

	scan   modes // finds the escape sequences
	text   []byte
	begun  uint64 // offset of the line's first byte
	filled bool   // the line has a first byte
	turned bool   // the last byte was a carriage return
}

// Write converts output that begins at offset.
func (p *Plain) Write(offset uint64, data []byte) error {
	for i, b := range data {
		if p.scan.escapes(b) {
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

// End calls Line for a last line without a newline.
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
