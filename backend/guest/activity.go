package guest

import (
	"strings"
	"unicode"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// maxNotice is how long a notice may be, in bytes: a few lines of a terminal.
const maxNotice = 500

// Foregrounder is a terminal that knows what runs in its foreground. Not every
// [terminal.TTY] does.
type Foregrounder interface {
	// Foreground returns the name of the program that was started last from
	// the terminal's shell and that has the terminal, or "" while the shell
	// itself has it. It reports false where that cannot be told.
	Foreground() (program string, known bool)
}

// foregrounds tells what runs in the foreground of each terminal.
func (g *Guest) foregrounds() []link.Foreground {
	list := []link.Foreground{}
	for _, held := range g.terminals.all() {
		if !held.running() {
			continue
		}
		f := link.Foreground{Terminal: held.id}
		if tty, ok := held.tty.(Foregrounder); ok {
			f.Program, f.Known = tty.Foreground()
		}
		list = append(list, f)
	}
	return list
}

// notice shows a line in every terminal. One that is being closed is passed over.
func (g *Guest) notice(text string) error {
	if text == "" || len(text) > maxNotice || strings.ContainsFunc(text, unicode.IsControl) {
		return session.NewError(session.CodeGuestInvalid, "A notice is one line of at most 500 bytes.",
			"Use a shorter text.")
	}
	for _, held := range g.terminals.all() {
		if held.running() {
			_, _ = held.spool.Notice(text) // a spool that was closed meanwhile has no viewers
		}
	}
	return nil
}
