package sshstdio

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strconv"
	"strings"
)

// The far side's login shell may print anything before our command runs, so the command's own output begins after a
// mark, a random line, and that of Run ends with another.

const (
	maxNoise    = 256 << 10 // bytes before a mark
	missingExit = 127       // exit code when the command does not exist, as in a shell
)

var errNoise = errors.New("sshstdio: the login shell prints without end")

func newMark() string { return "slipway-" + rand.Text() }

// quote makes one word of text in any shell that knows single quotes.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// script returns a command line for any login shell that runs a script for sh. The script has the mark as $m and the
// command as $p, with its home folder instead of ~/, and $@.
func script(text, mark string, command []string) string {
	text = `m=$1; shift; p=$1; shift; case $p in "~/"*) p=$HOME/${p#"~/"};; esac; ` + text
	words := []string{"exec", "sh", "-c", quote(text), "sh", quote(mark)}
	for _, word := range command {
		words = append(words, quote(word))
	}
	return strings.Join(words, " ")
}

func dialScript(mark string, command []string) string {
	return script(`command -v "$p" >/dev/null 2>&1 || exit 127; printf '\n%s\n' "$m"; exec "$p" "$@"`, mark, command)
}

func runScript(mark string, command []string) string {
	return script(`printf '\n%s\n' "$m"; ( exec "$p" "$@" ); printf '\n%s %03d\n' "$m" "$?"`, mark, command)
}

// skipNoise reads up to and including the mark's line and returns the command's output that came with it.
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

// between passes on what a command writes between its two marks. The login shell writes what is before and after.
type between struct {
	to   io.Writer
	mark string

	begun, ended bool
	exit         int    // the command's, once ended; -1 if it is invalid
	held         []byte // noise, or what may be the beginning of the last line
}

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
	ready := len(b.held) - len("\n"+b.mark+" 000\n") + 1 // what cannot be in the last line
	if at := bytes.Index(b.held, []byte("\n"+b.mark+" ")); at >= 0 && at < ready {
		ready = at
		b.ended = true
		b.exit = exitIn(b.held[at+len("\n"+b.mark+" "):])
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

// end returns the command's exit code. ok is false if its last line is missing, for example since the connection broke.
func (b *between) end() (exit int, ok bool) { return b.exit, b.ended && b.exit >= 0 }
