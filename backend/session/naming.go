package session

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// NameRule is a rule for names. build/tsgen writes it for the user interface, which checks a name while it is typed.
type NameRule struct {
	Min, Max int        // characters
	Parts    []NamePart // in the order in which a name is judged by them
}

// NamePart is a pattern that names match, or with Not must not match, for both Go and JavaScript.
type NamePart struct {
	Pattern string
	Not     bool
	Say     string // the [Phrase] for a name that breaks it; a hole is the name

	compiled func() *regexp.Regexp
}

// namePart compiles its pattern on first use: a program in a container links this package and starts often.
func namePart(pattern, say string) NamePart {
	return NamePart{Pattern: pattern, Say: say,
		compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })}
}

func nameOtherThan(pattern, say string) NamePart {
	part := namePart(pattern, say)
	part.Not = true
	return part
}

// Patterns of names: the characters of most, and what a session's own files in its home are called.
const (
	usualName   = `^[A-Za-z0-9_.-]+$`
	lettersName = `^[A-Za-z0-9_-]+$`
	ownInHome   = `^(\.ssh|\.jupyter|\.terminfo|\.tmux\.conf|\.[a-z0-9]+(rc|_profile)|\.slipway.*)$`
)

var ownInHomeRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(ownInHome) })

// The rules for names. A folder whose name begins with a dot is mounted at that name in the home, so it must be free
// there.
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
	// A service has the names of Backend.AI's; its sessions have a number behind it.
	ServiceNames = NameRule{Min: 4, Max: 24, Parts: []NamePart{
		namePart(`^[A-Za-z0-9_]`, "nameStart"),
		namePart(`[A-Za-z0-9_]$`, "nameEnd"),
		namePart(lettersName, "nameLetters"),
	}}
	CommitNames = NameRule{Min: 4, Max: 32, Parts: []NamePart{namePart(lettersName, "nameLetters")}}
)

func (p NamePart) allows(name string) bool { return p.compiled().MatchString(name) != p.Not }

// Check returns what is wrong with a name; nil if nothing is.
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
	return new(Fault("name", KindInvalid, said))
}

// Numbered appends the number of one of several to a text that is not empty.
func Numbered(text, separator string, i, count int) string {
	if text == "" || count == 1 {
		return text
	}
	return text + separator + strconv.Itoa(i+1)
}

// NameTaken says that a live session of the same owner has a name. machine has it; empty: the machine that says so.
func NameTaken(name, machine string) FieldError {
	if machine == "" {
		return Fault("name", KindDuplicate, Say("nameTaken", Fill("name", name)))
	}
	return Fault("name", KindDuplicate, Say("nameTakenOn", Fill("name", name), Fill("machine", machine)))
}

// SecretPattern matches names of variables with secrets, in any case. It is written like a [NamePart].
const SecretPattern = secretWords + `|PASS$|_PW$|(^|_)PIN(_|$)`

const secretWords = `AUTH|ACCESS|SECRET|KEY|PASSWORD|PASSWD|PWD|TOKEN|PRIVATE|CREDENTIAL|JWT|CERTIFICATE|SSH` +
	`|ENCRYPT|SIGNATURE|SALT|PASSPHRASE`

// SecretName reports whether a variable of this name looks secret. Such a value is never shown, and never written to
// history, recipes or addresses. MONKEY looks secret, too: hiding too much costs less than showing a secret.
// Long lists ask this often, so it does what [SecretPattern] does without a regular expression.
func SecretName(name string) bool {
	name = strings.ToUpper(name)
	for word := range strings.SplitSeq(secretWords, "|") {
		if strings.Contains(name, word) {
			return true
		}
	}
	return strings.HasSuffix(name, "PASS") || strings.HasSuffix(name, "_PW") ||
		strings.Contains("_"+name+"_", "_PIN_")
}

// Hidden replaces the value of a secret in what people see.
const Hidden = "••••••"

// Redacted returns spec with the nonempty values of secret-looking variables replaced by mask.
func (s Spec) Redacted(mask string) Spec {
	s.Env = slices.Clone(s.Env)
	for i, v := range s.Env {
		if v.Value != "" && SecretName(v.Name) {
			s.Env[i].Value = mask
		}
	}
	return s
}

// Limits of the tags of one session.
const (
	MaxTags = 20
	MaxTag  = 32 // characters of one
)

// CleanTags returns tags without blanks around them, sorted, each once. It fails with session_update_invalid for more
// than [MaxTags], and for a tag that is empty, longer than [MaxTag], or has a comma or an unprintable character.
func CleanTags(tags []string) ([]string, error) {
	clean := make([]string, 0, len(tags))
	for _, tag := range tags {
		tag = strings.TrimSpace(tag)
		if tag == "" || utf8.RuneCountInString(tag) > MaxTag ||
			strings.ContainsFunc(tag, func(r rune) bool { return r == ',' || !unicode.IsPrint(r) }) {
			return nil, tagFault(fmt.Sprintf("%q is not a tag.", Clip(tag)),
				fmt.Sprintf("A tag has 1 to %d characters that can be printed, without commas.", MaxTag))
		}
		clean = append(clean, tag)
	}
	slices.Sort(clean)
	if clean = slices.Compact(clean); len(clean) > MaxTags {
		return nil, tagFault(fmt.Sprintf("%d tags are too many; a session has at most %d.", len(clean), MaxTags),
			"Remove some of them.")
	}
	return clean, nil
}

func tagFault(message, hint string) error {
	return Refused(CodeSessionInvalid, FieldError{Field: "tags", Kind: KindInvalid, Message: message, Hint: hint})
}
