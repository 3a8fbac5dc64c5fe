package sshstdio

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strconv"
	"strings"
)

// The far side's login shell may print whatever it likes before our command runs, so the command's own output begins
// behind a mark, a line that nobody can guess, and that of Run ends with another.

const (
	// maxNoise is how much may come before a mark, in bytes.
	maxNoise = 256 << 10
	// missingExit is the exit code of a command that is not there, as in a shell.
	missingExit = 127
)

var errNoise = errors.New("sshstdio: the login shell prints without end")

func newMark() string { return "slipway-" + rand.Text() }

// quote makes one word of text in any shell that knows single quotes.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// script is a command line for the account's login shell, whatever it is, that runs a script for sh with arguments.
func script(text string, args ...string) string {
	words := []string{"exec", "sh", "-c", quote(text), "sh"}
	for _, arg := range args {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

// home makes ~/ of the first argument what a shell would.
const home = `p=$1; shift; case $p in "~/"*) p=$HOME/${p#"~/"};; esac; `

func dialScript(mark string, command []string) string {
	return script(`m=$1; shift; `+home+
		`command -v "$p" >/dev/null 2>&1 || exit 127; printf '\n%s\n' "$m"; exec "$p" "$@"`,
		append([]string{mark}, command...)...)
}

func runScript(mark string, command []string) string {
	return script(`m=$1; shift; `+home+
		`printf '\n%s\n' "$m"; ( exec "$p" "$@" ); printf '\n%s %03d\n' "$m" "$?"`,
		append([]string{mark}, command...)...)
}

// skipNoise reads up to and including the mark's line and returns what of the command's own output came with it.
func skipNoise(r io.Reader, mark string) (rest []byte, err error) {
	line := []byte("\n" + mark + "\n")
	var seen []byte
	buffer := make([]byte, 4<<10)
	for {
		n, err := r.Read(buffer)
		seen = append(seen, buffer[:n]...)
		if at := bytes.Index(seen, line); at >= 0 {
			return bytes.Clone(seen[at+len(line):]), nil
		}
		if err != nil {
			return nil, err
		}
		if len(seen) > maxNoise {
			return nil, errNoise
		}
	}
}

// between passes on what a command writes between its two marks. What comes before and after is the login shell's.
type between struct {
	to   io.Writer
	mark string

	begun, ended bool
	exit         int    // the command's, once ended
	held         []byte // noise, or what may be the beginning of the last line
}

// trailerSize is the length of the last line with the line break before it.
func (b *between) trailerSize() int { return len("\n") + len(b.mark) + len(" 000\n") }

// Write implements io.Writer.
func (b *between) Write(p []byte) (int, error) {
	if b.ended {
		return len(p), nil
	}
	b.held = append(b.held, p...)
	if !b.begun {
		line := []byte("\n" + b.mark + "\n")
		at := bytes.Index(b.held, line)
		if at < 0 {
			if len(b.held) > maxNoise {
				return 0, errNoise
			}
			return len(p), nil
		}
		b.begun, b.held = true, b.held[at+len(line):]
	}
	ready := len(b.held) - b.trailerSize() + 1
	if at := bytes.Index(b.held, []byte("\n"+b.mark+" ")); at >= 0 && at < ready {
		ready = at
		b.ended = true
		b.exit = exitIn(b.held[at+len("\n")+len(b.mark)+len(" "):])
	}
	if ready > 0 {
		if _, err := b.to.Write(b.held[:ready]); err != nil {
			return 0, err
		}
		b.held = append(b.held[:0], b.held[ready:]...)
	}
	return len(p), nil
}

// exitIn reads the three digits and the line break that end the last line, and returns -1 for anything else.
func exitIn(text []byte) int {
	exit, err := strconv.Atoi(string(text[:3]))
	if err != nil || text[3] != '\n' || exit < 0 || exit > 255 {
		return -1
	}
	return exit
}

// end returns the command's exit code, ok being false if its last line is not there, for example because the connection
// broke.
func (b *between) end() (exit int, ok bool) { return b.exit, b.ended && b.exit >= 0 }
