package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"slipway/backend/session"
)

// screens are the standard streams as they were given. Only what is another
// program's output goes there as it is: logs, terminals, commands. All that
// Slipway itself says goes to [Config.Stdout] and [Config.Stderr] of the program,
// which are [plainWriter]s.
type screens struct{ out, err io.Writer }

// plainWriter writes text without what a terminal acts on. Names, messages and
// whatever else is printed may come from another machine.
type plainWriter struct {
	to io.Writer

	mu   sync.Mutex // guards rest
	rest []byte     // the beginning of a character whose end has not come yet
}

// Write keeps line breaks and tabs.
func (w *plainWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	end := len(text)
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if at := len(text) - cut; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				end = at
			}
			break
		}
	}
	w.rest = bytes.Clone(text[end:])
	plain := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && session.Unprintable(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(text[:end]), string(utf8.RuneError)))
	if _, err := io.WriteString(w.to, plain); err != nil {
		return 0, err
	}
	return len(p), nil
}

// longestCell bounds a cell, which is as wide in every row, in bytes.
const longestCell = 1000

// inLine is text as it may stand in a row of a table.
func inLine(text string) string {
	text = strings.Join(strings.FieldsFunc(session.Printable(text), func(r rune) bool { return r == '\n' }), " ")
	if len(text) > longestCell {
		text = strings.ToValidUTF8(text[:longestCell], "") + "…"
	}
	return text
}

// escapeJSON writes what a terminal acts on as JSON's own escapes, which mean
// the same to whatever reads the text.
func escapeJSON(text []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(text) {
		if r != '\n' && session.Unprintable(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
			continue
		}
		out.WriteRune(r)
	}
	return out.Bytes()
}
