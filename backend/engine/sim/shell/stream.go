package shell

import (
	"bytes"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// crlf writes line ends as a terminal wants them.
type crlf struct{ to io.Writer }

func (w *crlf) Write(p []byte) (int, error) {
	if _, err := w.to.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cooked is the line discipline of a terminal while a command runs: it echoes,
// lets the line be corrected, and hands whole lines to the command.
type cooked struct {
	echo  func(string)
	input *os.File     // of the command
	raw   *atomic.Bool // keys go to the command as they are, but for Ctrl-C
	line  []byte
}

// giveTime is how long the terminal waits for a command whose input is full. What
// is typed then is lost, as a terminal loses it.
const giveTime = 100 * time.Millisecond

// give hands input to the command, which may not read it.
func (d *cooked) give(input []byte) {
	d.input.SetWriteDeadline(time.Now().Add(giveTime)) //nolint:errcheck // a pipe has deadlines
	d.input.Write(input)                               //nolint:errcheck // as said above
	d.line = nil
}

// take takes what is typed. Whole lines go to the command.
func (d *cooked) take(data []byte, interrupt func()) {
	for _, char := range data {
		if d.raw.Load() && char != 0x03 {
			d.give([]byte{char})
			continue
		}
		switch char {
		case 0x03:
			d.echo("^C\r\n")
			d.line = nil
			interrupt()
			d.input.Close() //nolint:errcheck // the command sees the end
		case 0x04:
			if len(d.line) == 0 {
				d.input.Close() //nolint:errcheck // the command sees the end
				continue
			}
			d.give(d.line)
		case 0x7f, '\b':
			d.erase()
		case 0x15:
			for len(d.line) > 0 {
				d.erase()
			}
		case '\r', '\n':
			d.echo("\r\n")
			d.give(append(d.line, '\n'))
		default:
			d.line = append(d.line, char)
			if char < ' ' {
				d.echo("^" + string(rune(char+'@')))
				continue
			}
			d.echo(string([]byte{char}))
		}
	}
}

// erase takes back the last character.
func (d *cooked) erase() {
	if len(d.line) == 0 {
		return
	}
	end := len(d.line) - 1
	for end > 0 && d.line[end]&0xc0 == 0x80 {
		end--
	}
	wide := cells.StringWidth(string(d.line[end:]))
	if len(d.line)-end == 1 && d.line[end] < ' ' {
		wide = 2
	}
	d.line = d.line[:end]
	for range wide {
		d.echo("\b \b")
	}
}
