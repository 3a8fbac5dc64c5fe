package session

import "testing"

func TestAPhraseInEnglish(t *testing.T) {
	text := func(hole, text string) Phrase { return Phrase{Hole: hole, Text: text} }
	cpus := func(n int) Phrase { return Phrase{Hole: "what", Say: "cpu", Count: n} }
	holds := Phrase{Say: "holds", With: []Phrase{text("name", "a"), text("amount", "2")}}
	for _, c := range []struct {
		said Phrase
		want string
	}{
		{Phrase{}, ""},
		{Phrase{Text: "4 GiB"}, "4 GiB"},
		{Phrase{Text: "; ", With: []Phrase{holds}}, "a has 2"},
		{Phrase{Text: "; ", With: []Phrase{holds, holds, {Say: "more", Count: 3}}}, "a has 2; a has 2; 3 more"},
		{Phrase{Say: "lacksCpu", Count: 1,
			With: []Phrase{cpus(4), text("all", "8"), {Hole: "holders", Text: ", ", With: []Phrase{holds, holds}}}},
			"Needs 4 CPUs, 1 of 8 is free; a has 2, a has 2."},
		{Phrase{Say: "lacksCpu", With: []Phrase{cpus(1), text("all", "8"), {Hole: "holders", Say: "nobodyHolds"}}},
			"Needs 1 CPU, 0 of 8 are free; no session uses it."},
	} {
		if got := c.said.English(); got != c.want {
			t.Errorf("%+v says %q, not %q", c.said, got, c.want)
		}
	}
}

// Each has words for one and for any other number: a count that is forgotten
// shows.
func TestAllPhrasesHaveWords(t *testing.T) {
	for key, words := range englishWords() {
		if len(words.one) == 0 || len(words.many) == 0 {
			t.Errorf("%s says nothing of one or of many", key)
		}
	}
}
