package terminal

import (
	"bytes"
	"testing"
)

func TestModes(t *testing.T) {
	for name, test := range map[string]struct{ output, preamble string }{
		"nothing": {"hello \x1b[31mred\x1b[0m\r\n", ""},
		"editor": {"\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l\x1b[?2004h",
			"\x1b[?1049h\x1b[?1h\x1b[?25l\x1b[?2004h\x1b="},
		"editor left":           {"\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l\x1b[?25h\x1b>\x1b[?1l\x1b[?1049l", ""},
		"several in one":        {"\x1b[?1002;1006;1004h", "\x1b[?1002h\x1b[?1006h\x1b[?1004h"},
		"last mouse protocol":   {"\x1b[?1000h\x1b[?1003h", "\x1b[?1003h"},
		"mouse off":             {"\x1b[?1000h\x1b[?1006h\x1b[?1000l\x1b[?1006l", ""},
		"no wrap, reverse":      {"\x1b[?7l\x1b[?5h", "\x1b[?5h\x1b[?7l"},
		"cursor style":          {"\x1b[5 q", "\x1b[5 q"},
		"cursor style reset":    {"\x1b[5 q\x1b[0 q", ""},
		"full reset":            {"\x1b[?1049h\x1b[?2004h\x1bc", ""},
		"soft reset":            {"\x1b[?2004h\x1b[?25l\x1b[?1h\x1b[!p", "\x1b[?2004h"},
		"ansi modes are others": {"\x1b[25l\x1b[4h", ""},
		"cancelled":             {"\x1b[?25\x18l\x1b[?2004\x1ah", ""},
		"restarted":             {"\x1b[?25\x1b[?2004h", "\x1b[?2004h"},
		"control inside":        {"\x1b[?20\n04h", "\x1b[?2004h"},
		"in a title":            {"\x1b]0;\x1b[?25l\x07\x1b]2;x[?25l\x1b\\", "\x1b[?25l"},
		"in a device string":    {"\x1bPq[?25l\x1b\\ok", ""},
		"endless parameters": {"\x1b[?" + string(bytes.Repeat([]byte("1;"), 500)) + "25l\x1b[?2004h",
			"\x1b[?2004h"},
		"character sets":              {"\x1b(0\x1b)B[?25l", ""},
		"numbers beyond all":          {"\x1b[?99999999999999999999h\x1b[?2004h", "\x1b[?2004h"},
		"alternate screen, old style": {"\x1b[?47h", "\x1b[?47h"},
	} {
		for cut := 0; cut <= len(test.output); cut++ {
			var m modes
			m.feed([]byte(test.output[:cut]))
			m.feed([]byte(test.output[cut:]))
			if got := string(m.preamble()); got != test.preamble {
				t.Fatalf("%s, cut at %d: got %q, want %q", name, cut, got, test.preamble)
			}
			var again modes
			again.feed(m.preamble())
			if got := string(again.preamble()); got != test.preamble {
				t.Fatalf("%s: the preamble leads to %q", name, got)
			}
		}
	}
}

func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b]0;t\x07\x1b[5 q"), 3)
	f.Fuzz(func(t *testing.T, output []byte, cut int) {
		var whole, parts, again modes
		whole.feed(output)
		cut = max(0, min(cut, len(output)))
		parts.feed(output[:cut])
		parts.feed(output[cut:])
		if whole != parts {
			t.Fatalf("cut at %d: %+v, whole %+v", cut, parts, whole)
		}
		preamble := whole.preamble()
		if len(preamble) > maxModes {
			t.Fatalf("a preamble of %d bytes", len(preamble))
		}
		again.feed(preamble)
		if got := again.preamble(); !bytes.Equal(got, preamble) {
			t.Fatalf("%q leads to %q", preamble, got)
		}
	})
}

func TestSpoolKnowsTheModesOfEveryOffset(t *testing.T) {
	var output []byte
	var want []string
	var m modes
	pieces := []string{"text\r\n", "\x1b[?1049h", "\x1b[?25l", "\x1b[?25h", "\x1b[?2004h", "\x1b[?1049l", "\x1b[?1006h",
		"\x1bc"}
	for i := range 200 {
		piece := pieces[i*7%len(pieces)]
		for _, c := range []byte(piece) {
			want = append(want, string(m.preamble()))
			m.feed([]byte{c})
			output = append(output, c)
		}
	}
	want = append(want, string(m.preamble()))
	spool := NewSpool(SpoolConfig{Cap: 300})
	_, _ = spool.Write(output)
	start, end := spool.Bounds()
	for offset := start; offset <= end; offset++ {
		got, err := spool.Modes(offset)
		if err != nil || string(got) != want[offset] {
			t.Fatalf("at %d: %q, %v, want %q", offset, got, err, want[offset])
		}
	}
	if _, err := spool.Modes(start - 1); err == nil {
		t.Error("modes below start are known")
	}
}
