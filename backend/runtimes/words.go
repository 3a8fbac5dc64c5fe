package runtimes

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// needsShell are what only a shell understands, unless it is quoted.
const needsShell = "|&;<>()`$*?[#~"

// split splits a command line into program and arguments as a shell does with quotes and backslashes. No shell runs it,
// so it refuses what would be expanded, a pipe and the like.
func split(text string) ([]string, error) {
	s := splitter{rest: []rune(strings.TrimSpace(text))}
	for len(s.rest) > 0 {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.end()
	if len(s.words) > 0 && assignment.MatchString(s.words[0]) {
		return nil, fmt.Errorf("it sets a variable before the program, which only a shell does")
	}
	return s.words, nil
}

// assignment is the beginning of a word that sets a variable.
var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// splitter has the words that are complete and the one that has begun, if it has.
type splitter struct {
	rest  []rune
	words []string
	word  strings.Builder
	begun bool
}

func (s *splitter) take() rune {
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c
}

func (s *splitter) put(c rune) {
	s.begun = true
	s.word.WriteRune(c)
}

func (s *splitter) end() {
	if s.begun {
		s.words = append(s.words, s.word.String())
		s.word.Reset()
		s.begun = false
	}
}

// next reads a character outside of quotes, with the quoted text that it begins.
func (s *splitter) next() error {
	c := s.take()
	switch {
	case c == '\n':
		return fmt.Errorf("it has several lines, which a shell runs one after the other")
	case unicode.IsSpace(c):
		s.end()
	case c == '\\':
		if len(s.rest) == 0 {
			return fmt.Errorf("it ends with a backslash")
		}
		if c = s.take(); c != '\n' { // else it continues the line
			s.put(c)
		}
	case c == '\'' || c == '"':
		return s.quoted(c)
	case strings.ContainsRune("#~", c) && s.begun: // they are special only at the beginning of a word
		s.put(c)
	case strings.ContainsRune(needsShell, c):
		return fmt.Errorf("it has %c, which only a shell understands", c)
	default:
		s.put(c)
	}
	return nil
}

func (s *splitter) quoted(quote rune) error {
	s.begun = true
	for len(s.rest) > 0 {
		c := s.take()
		switch {
		case c == quote:
			return nil
		case quote == '\'':
		case strings.ContainsRune("$`", c):
			return fmt.Errorf("it has %c, which only a shell understands", c)
		case c == '\\' && len(s.rest) > 0 && strings.ContainsRune("\"\\$`\n", s.rest[0]):
			if c = s.take(); c == '\n' {
				continue
			}
		}
		s.put(c)
	}
	return fmt.Errorf("it has a quote that is not closed")
}
