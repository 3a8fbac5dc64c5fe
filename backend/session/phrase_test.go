package session

import (
	"strconv"
	"testing"
	"time"
)

func TestAPhraseInEnglish(t *testing.T) {
	text := func(hole, text string) Phrase { return Phrase{Hole: hole, Text: text} }
	cpus := func(n int) Phrase {
		return Phrase{Hole: "what", Say: "cpuOf", Count: 8, With: []Phrase{text("amount", strconv.Itoa(n))}}
	}
	holds := Phrase{Say: "holds", With: []Phrase{text("name", "a"), text("amount", "2")}}
	for _, c := range []struct {
		said Phrase
		want string
	}{
		{Phrase{}, ""},
		{Phrase{Text: "4 GiB"}, "4 GiB"},
		{Phrase{Text: "; ", With: []Phrase{holds}}, "a has 2"},
		{Phrase{Text: "; ", With: []Phrase{holds, holds, {Say: "more", Count: 3}}}, "a has 2; a has 2; 3 more"},
		{Phrase{Say: "fewCpus", Count: 1, With: []Phrase{cpus(4), text("machine", "lab")}},
			"Needs 4 of 8 CPUs on lab, 1 is free."},
		{Phrase{Say: "fewCpus", With: []Phrase{cpus(1), text("machine", "lab")}},
			"Needs 1 of 8 CPUs on lab, 0 are free."},
		{Phrase{Say: "cpuHolders", With: []Phrase{{Hole: "holders", Text: ", ", With: []Phrase{holds, holds}}}},
			"CPUs: a has 2, a has 2."},
		{Say("estimateLatest", Moment("at", time.Date(2026, 5, 1, 22, 10, 0, 0, time.UTC))),
			"at the latest 2026-05-01 22:10 UTC"},
	} {
		if got := c.said.English(); got != c.want {
			t.Errorf("%+v says %q, not %q", c.said, got, c.want)
		}
	}
}

func TestAReaderSeesTheirOwnTimeAndMachine(t *testing.T) {
	zone := time.FixedZone("", 9*3600)
	latest := func(at time.Time) *Phrase { return new(Say("estimateLatest", Moment("at", at))) }
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, zone)
	said := []Phrase{Say("fewDevices", Fill("what", "2 of 8 GPUs"), Fill(OnMachine, "gpu-1"))}
	r := Reader{Now: noon, Machine: "lab"}
	for want, w := range map[string]Wait{
		"at the latest 22:10":            {Estimate: latest(noon.Add(10*time.Hour + 10*time.Minute).UTC())},
		"at the latest 12:00:07":         {Estimate: latest(noon.Add(7 * time.Second))},
		"at the latest 2026-05-02 00:00": {Estimate: latest(noon.Add(12 * time.Hour))},
		"at the latest 2026-04-30 12:00": {Estimate: latest(noon.Add(-24 * time.Hour))},
		"unknown":                        {Until: &noon},
	} {
		if got := r.Estimate(w); got != want {
			t.Errorf("it starts %q, not %q", got, want)
		}
	}
	for want, w := range map[string]Wait{
		"Needs 2 of 8 GPUs on lab. GPU 0: train has 1.": {Said: said, Details: []Phrase{{Text: "GPU 0: train has 1."}}},
		"As it came.": {Message: "As it came."},
	} {
		if got := r.Wait(w); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
	if got := (Reader{}).Read(said...); got != "Needs 2 of 8 GPUs on gpu-1." {
		t.Errorf("without a name it says %q", got)
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
