package session

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Phrase is a sentence, or a part of one, in any language: Say names the words, Count selects the singular or plural,
// and With fills the holes. If Say is empty it is Text as it is, such as a name or an amount, or the parts in With with
// Text between them. If Say is [SayMoment], Text is a time as of RFC 3339, which each reads in their own time zone.
type Phrase struct {
	Hole  string   `json:"hole,omitempty"` // that it fills
	Say   string   `json:"say,omitempty"`
	Count int      `json:"count,omitempty"`
	Text  string   `json:"text,omitempty"`
	With  []Phrase `json:"with,omitempty"`
}

// Say is the phrase of a key of phrases.json, with its holes filled.
func Say(key string, holes ...Phrase) Phrase {
	return Phrase{Say: key, With: holes}
}

// Fill fills a hole with a name or an amount, which is the same in every language.
func Fill(hole, text string) Phrase { return Phrase{Hole: hole, Text: text} }

// OnMachine is the hole for the name of the machine, which [Reader].Machine overrides.
const OnMachine = "machine"

// SayMoment says a moment.
const SayMoment = "moment"

// Moment is a moment, to the second.
func Moment(hole string, at time.Time) Phrase {
	return Phrase{Hole: hole, Say: SayMoment, Text: at.UTC().Format(time.RFC3339)}
}

// Reader is who reads a phrase: when, in the time zone of Now, and by which name they know the machine. Without Now,
// moments are in UTC, and without Machine, the machine has the name by which it knows itself.
type Reader struct {
	Now     time.Time
	Machine string
}

// Read returns phrases in English, as sentences.
func (r Reader) Read(said ...Phrase) string {
	all := Phrase{Text: " ", With: said}
	return string(all.english(nil, englishWords(), &r))
}

// Wait returns why a session waits.
func (r Reader) Wait(w Wait) string {
	if len(w.Said) == 0 {
		return w.Message
	}
	return r.Read(slices.Concat(w.Said, w.Details)...)
}

// Estimate returns when a session starts.
func (r Reader) Estimate(w Wait) string {
	if w.Estimate == nil {
		return r.Read(Say("estimateUnknown"))
	}
	return r.Read(*w.Estimate)
}

// moment appends a time of day, with its date if it is not today.
func (r *Reader) moment(text []byte, moment string) []byte {
	if date, clock, ok := strings.Cut(strings.TrimSuffix(moment, "Z"), "T"); ok && r.Now.IsZero() {
		text = append(append(text, date...), ' ')
		return append(append(text, strings.TrimSuffix(clock, ":00")...), " UTC"...)
	}
	at, err := time.Parse(time.RFC3339, moment)
	if err != nil {
		return append(text, moment...)
	}
	at = at.In(r.Now.Location())
	format := "15:04"
	if at.Second() != 0 {
		format = time.TimeOnly
	}
	if at.Format(time.DateOnly) != r.Now.Format(time.DateOnly) {
		format = time.DateOnly + " " + format
	}
	return at.AppendFormat(text, format)
}

// phraseWords are the English texts of all phrases, as JSON, by [Phrase].Say, with _one or _other for a count. {{name}}
// is a hole.
//
//go:embed phrases.json
var phraseWords []byte

// English returns a phrase in English.
func (p Phrase) English() string {
	var room [512]byte
	return string(p.english(room[:0], englishWords(), &Reader{}))
}

func (p *Phrase) english(text []byte, words map[string]wording, r *Reader) []byte {
	if p.Say == "" {
		switch {
		case r.Machine != "" && p.Hole == OnMachine:
			return append(text, r.Machine...)
		case len(p.With) == 0:
			return append(text, p.Text...)
		}
		for i := range p.With {
			if i > 0 {
				text = append(text, p.Text...)
			}
			text = p.With[i].english(text, words, r)
		}
		return text
	}
	if p.Say == SayMoment {
		return r.moment(text, p.Text)
	}
	pieces := words[p.Say].many
	if p.Count == 1 {
		pieces = words[p.Say].one
	}
	for i, piece := range pieces {
		switch {
		case i%2 == 0:
			text = append(text, piece...)
		case piece == "count":
			text = strconv.AppendInt(text, int64(p.Count), 10)
		default:
			for at := range p.With {
				if p.With[at].Hole == piece {
					text = p.With[at].english(text, words, r)
					break
				}
			}
		}
	}
	return text
}

// wording is the singular and the plural of a phrase, split at its holes: text, name of a hole, text, and so on.
type wording struct{ one, many []string }

var englishWords = sync.OnceValue(func() map[string]wording {
	var texts map[string]string
	if err := json.Unmarshal(phraseWords, &texts); err != nil {
		panic("session: phrases.json: " + err.Error()) // it is part of the program
	}
	words := make(map[string]wording, len(texts))
	for key, text := range texts {
		pieces := strings.Split(strings.ReplaceAll(text, "}}", "{{"), "{{")
		of, one := strings.CutSuffix(key, "_one")
		of, many := strings.CutSuffix(of, "_other")
		w := words[of]
		if !many {
			w.one = pieces
		}
		if !one {
			w.many = pieces
		}
		words[of] = w
	}
	return words
})

// Printable returns text, which keeps its line breaks, as valid UTF-8 without [Unprintable] characters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && Unprintable(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

// Unprintable reports whether a terminal or a page acts on a character instead of showing it: escape sequences begin
// with one, others move the cursor, break the line or turn the direction of text.
func Unprintable(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// IsPrintable reports whether text has no control characters, and none that only changes how others are shown.
func IsPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.Is(unicode.C, r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
	})
}
