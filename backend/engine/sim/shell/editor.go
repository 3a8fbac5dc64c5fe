package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// cells measures text as today's terminals show it, whatever the locale.
var cells = runewidth.Condition{StrictEmojiNeutral: true}

// editor is the line editor at the prompt of a terminal. It draws with
// escape sequences that every terminal knows and is used by one goroutine.
type editor struct {
	write    func(string) // to the terminal, as it is
	cols     func() int
	prompt   string
	line     []rune
	cursor   int
	row      int // row of the cursor, counted from the prompt's
	history  []string
	place    int    // entry of history that is shown; len(history): the line being typed
	draft    string // the line being typed, while history is shown
	pending  []byte // an incomplete escape sequence or character
	complete func(line string) (from int, candidates []string)
}

// event is what a key may lead to, besides a changed line.
type event int

const (
	eventNone      event = iota
	eventLine            // the line is complete
	eventInterrupt       // Ctrl-C
	eventEnd             // Ctrl-D on an empty line
)

// begin shows the prompt of an empty line.
func (e *editor) begin(prompt string) {
	e.prompt, e.line, e.cursor, e.row, e.place, e.draft = prompt, nil, 0, 0, len(e.history), ""
	e.write(prompt)
}

// feed takes input up to the first event and returns the rest.
func (e *editor) feed(input []byte) (event, []byte) {
	e.pending = append(e.pending, input...)
	for len(e.pending) > 0 {
		key, size := nextKey(e.pending)
		if size == 0 {
			return eventNone, nil
		}
		e.pending = e.pending[size:]
		if happened := e.press(key); happened != eventNone {
			rest := slices.Clone(e.pending)
			e.pending = nil
			return happened, rest
		}
	}
	return eventNone, nil
}

// escape matches a whole escape sequence: that of a key, or ESC and a character.
var escape = regexp.MustCompile("^\x1b(\\[[^@-~]*[@-~]|O.|[^[O])")

// nextKey splits the first key off input; size 0 means that more is to come.
func nextKey(input []byte) (key string, size int) {
	if input[0] == 0x1b {
		size = len(escape.Find(input))
		if size == 0 && len(input) > 32 {
			size = 1 // it is no key
		}
	} else if utf8.FullRune(input) {
		_, size = utf8.DecodeRune(input)
	}
	return string(input[:size]), size
}

func (e *editor) press(key string) event {
	switch key {
	case "\r", "\n":
		e.move(len(e.line))
		e.write("\r\n")
		return eventLine
	case "\x03":
		e.move(len(e.line))
		e.write("^C\r\n")
		return eventInterrupt
	case "\x04":
		if len(e.line) == 0 {
			return eventEnd
		}
		e.remove(e.cursor, e.cursor+1)
	case "\x7f", "\b":
		e.remove(e.cursor-1, e.cursor)
	case "\x1b[3~":
		e.remove(e.cursor, e.cursor+1)
	case "\x1b[D", "\x1bOD", "\x02":
		e.move(e.cursor - 1)
	case "\x1b[C", "\x1bOC", "\x06":
		e.move(e.cursor + 1)
	case "\x1b[H", "\x1bOH", "\x1b[1~", "\x01":
		e.move(0)
	case "\x1b[F", "\x1bOF", "\x1b[4~", "\x05":
		e.move(len(e.line))
	case "\x1b[A", "\x1bOA", "\x10":
		e.recall(e.place - 1)
	case "\x1b[B", "\x1bOB", "\x0e":
		e.recall(e.place + 1)
	case "\x17":
		e.remove(e.wordBefore(), e.cursor)
	case "\x15":
		e.remove(0, e.cursor)
	case "\x0b":
		e.remove(e.cursor, len(e.line))
	case "\x0c":
		e.write("\x1b[H\x1b[2J")
		e.row = 0
		e.draw()
	case "\t":
		e.tab()
	default:
		if key[0] >= ' ' && key[0] != 0x7f {
			e.insert([]rune(key))
		}
	}
	return eventNone
}

func (e *editor) insert(text []rune) {
	if len(e.line)+len(text) > maxTyped {
		e.write("\a")
		return
	}
	atEnd := e.cursor == len(e.line)
	e.line = slices.Insert(e.line, e.cursor, text...)
	e.cursor += len(text)
	used := cells.StringWidth(e.prompt) + e.columns(len(e.line))
	if atEnd && len(text) == 1 && used%e.cols() != 0 && cells.RuneWidth(text[0]) == 1 {
		e.write(string(text))
		return
	}
	e.draw()
}

func (e *editor) remove(from, to int) {
	if from < 0 || to > len(e.line) || from >= to {
		e.write("\a")
		return
	}
	e.line = slices.Delete(e.line, from, to)
	e.cursor = from
	e.draw()
}

func (e *editor) move(to int) {
	if to < 0 || to > len(e.line) || to == e.cursor {
		return
	}
	e.cursor = to
	e.draw()
}

func (e *editor) wordBefore() int {
	i := e.cursor
	for i > 0 && e.line[i-1] == ' ' {
		i--
	}
	for i > 0 && e.line[i-1] != ' ' {
		i--
	}
	return i
}

// recall shows an entry of the history instead of the line.
func (e *editor) recall(place int) {
	if place < 0 || place > len(e.history) {
		e.write("\a")
		return
	}
	if e.place == len(e.history) {
		e.draft = string(e.line)
	}
	e.place = place
	text := e.draft
	if place < len(e.history) {
		text = e.history[place]
	}
	e.line = []rune(text)
	e.cursor = len(e.line)
	e.draw()
}

// remember adds a line to the history.
func (e *editor) remember(line string) {
	if strings.TrimSpace(line) == "" || len(e.history) > 0 && e.history[len(e.history)-1] == line {
		return
	}
	e.history = append(e.history, line)
	if len(e.history) > maxHistory {
		e.history = e.history[1:]
	}
}

const (
	maxHistory = 1000
	maxTyped   = 32 << 10 // characters in a line
)

func (e *editor) columns(to int) int { return cells.StringWidth(string(e.line[:to])) }

// draw shows prompt, line and cursor anew from the row of the prompt on.
func (e *editor) draw() {
	cols := e.cols()
	var b strings.Builder
	if e.row > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", e.row)
	}
	b.WriteString("\r\x1b[J" + e.prompt + string(e.line))
	start := cells.StringWidth(e.prompt)
	end, at := start+e.columns(len(e.line)), start+e.columns(e.cursor)
	if end > 0 && end%cols == 0 {
		b.WriteString("\r\n") // leave the state of a full row, in which terminals differ
	}
	if up := end/cols - at/cols; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
	if right := at % cols; right > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", right)
	}
	e.row = at / cols
	e.write(b.String())
}

// tab completes the word before the cursor, or shows what it may become.
func (e *editor) tab() {
	from, candidates := e.complete(string(e.line[:e.cursor]))
	if len(candidates) == 0 {
		e.write("\a")
		return
	}
	from = utf8.RuneCountInString(string(e.line[:e.cursor])[:from])
	common := candidates[0]
	for _, candidate := range candidates[1:] {
		for !strings.HasPrefix(candidate, common) {
			common = common[:len(common)-1]
		}
	}
	for !utf8.ValidString(common) {
		common = common[:len(common)-1]
	}
	typed := string(e.line[from:e.cursor])
	if len(candidates) == 1 && !strings.HasSuffix(common, "/") {
		common += " "
	}
	if len(common) > len(typed) {
		e.insert([]rune(common[len(typed):]))
		return
	}
	place := e.cursor
	e.move(len(e.line))
	e.write("\r\n" + strings.Join(candidates, "  ") + "\r\n")
	e.row, e.cursor = 0, place
	e.draw()
}
