package cli

import (
	"strings"
	"testing"
)

func TestColumnsAreAlignedAsATerminalShowsThem(t *testing.T) {
	var out strings.Builder
	columns(&out, [][]string{
		{"NAME", " GPU", "OWNER"},
		{"학습-1", "12", "김민수"},
		{"訓練🚀", "3", "ann"},
		{"cafe\u0301", "0.5", "👩‍💻"},
		{"train-20", "128", ""},
	})
	if want := `NAME       GPU   OWNER
학습-1      12   김민수
訓練🚀       3   ann
cafe` + "\u0301" + `       0.5   👩‍💻
train-20   128
`; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestFieldsAreAlignedAsATerminalShowsThem(t *testing.T) {
	var out strings.Builder
	fields(&out, "이름", "실험", "empty", "", "mounts", "/data\n/home")
	if want := "이름    실험\nmounts  /data\n        /home\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestALongCellOfWideLettersEndsBetweenTwo(t *testing.T) {
	cell := inLine(strings.Repeat("가나다", 400))
	if !strings.HasSuffix(cell, "…") || strings.ContainsRune(cell, '\uFFFD') || len(cell) > longestCell+len("…") {
		t.Errorf("the cell is %d bytes long and ends in %q", len(cell), cell[len(cell)-6:])
	}
}
