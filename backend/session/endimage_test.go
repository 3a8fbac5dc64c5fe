package session

import (
	"strings"
	"testing"
)

func TestNamesOfASeriesKeepTheRule(t *testing.T) {
	for name, want := range map[string]string{
		"work": "work-7", "my.long_work": "my-long_work-7",
		strings.Repeat("x", 64):               strings.Repeat("x", 30) + "-7",
		strings.Repeat("x", 29) + ".training": strings.Repeat("x", 29) + "-7",
	} {
		got := SeriesName(name, 7)
		if got != want || CommitNames.Check(got) != nil || SessionNames.Check(name) != nil {
			t.Errorf("%s gives %s, want %s", name, got, want)
		}
	}
}
