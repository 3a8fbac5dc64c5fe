package session

import (
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"
)

// NameRule is the rule for the names of one kind of thing. build/tsgen writes it
// for the user interface, which judges a name by it while it is typed.
type NameRule struct {
	Min, Max int        // characters
	Parts    []NamePart // in the order in which a name is judged by them
}

// NamePart is a pattern that names match, or with Not must not match. It is
// written in what regular expressions of Go and of JavaScript have in common.
type NamePart struct {
	Pattern string
	Not     bool
	Say     string // the [Phrase] for a name that breaks it; a hole is the name

	compiled func() *regexp.Regexp
}

// namePart compiles its pattern when it is first used: every start of a program
// in a container links this package and checks no name there.
func namePart(pattern, say string) NamePart {
	return NamePart{Pattern: pattern, Say: say,
		compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })}
}

func nameOtherThan(pattern, say string) NamePart {
	part := namePart(pattern, say)
	part.Not = true
	return part
}

// Patterns of names: the characters of most, and what a session's own files in its
// home are called.
const (
	usualName = `^[A-Za-z0-9_.-]+$`
	ownInHome = `^(\.ssh|\.jupyter|\.terminfo|\.tmux\.conf|\.[a-z0-9]+(rc|_profile)|\.slipway.*)$`
)

var ownInHomeRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(ownInHome) })

// The rules for names. A folder whose name begins with a dot is mounted at that
// name in the home, so it must be free there.
var (
	SessionNames = NameRule{Min: 4, Max: 64, Parts: []NamePart{
		namePart(`^[A-Za-z0-9_]`, "nameStart"),
		namePart(`[A-Za-z0-9_]$`, "nameEnd"),
		namePart(usualName, "nameCharacters"),
	}}
	FolderNames = NameRule{Min: 1, Max: 64, Parts: []NamePart{
		namePart(usualName, "nameCharacters"),
		nameOtherThan(`^\.+$`, "nameDots"),
		nameOtherThan(ownInHome, "nameReserved"),
	}}
	CommitNames = NameRule{Min: 4, Max: 32, Parts: []NamePart{namePart(`^[A-Za-z0-9_-]+$`, "nameLetters")}}
)

func (p NamePart) allows(name string) bool { return p.compiled().MatchString(name) != p.Not }

// Check says what is wrong with a name; nil where the rule allows it.
func (r NameRule) Check(name string) *FieldError {
	var said Phrase
	length := utf8.RuneCountInString(name)
	broken := slices.IndexFunc(r.Parts, func(p NamePart) bool { return !p.allows(name) })
	switch {
	case length < r.Min:
		said = Phrase{Say: "nameShort", Count: r.Min}
	case length > r.Max:
		said = Phrase{Say: "nameLong", Count: r.Max}
	case broken >= 0:
		said = Say(r.Parts[broken].Say, Fill("name", Clip(name)))
	default:
		return nil
	}
	wrong := Fault("name", KindInvalid, said)
	return &wrong
}
