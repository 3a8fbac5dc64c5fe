package session

import (
	"strings"
	"unicode"
)

// Printable returns text as it may stand in a line or a title: without the
// characters that [Unprintable] reports and with bytes that are not UTF-8
// replaced. Line breaks stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && Unprintable(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

// Unprintable reports whether a terminal or a page acts on a character instead
// of showing it: escape sequences begin with one, others move the cursor, break
// the line or turn the direction of what follows.
func Unprintable(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// IsPrintable reports whether every character of text is one that is seen: a
// control character is not, nor is one that only changes how others are shown.
func IsPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
	})
}
