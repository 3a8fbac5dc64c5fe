package keeper

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// say returns a message of a kernel about the request with an id.
func say(request, kind, content string) message {
	m := message{kind: kind, parent: request, size: len(content)}
	if err := unmarshal([]byte(content), &m.content); err != nil {
		panic(err)
	}
	return m
}

func TestAStreamReadsAsInAPage(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts []string
		want  string
	}{
		{"lines", []string{"one\n", "two\n"}, "one\ntwo\n"},
		{"a progress bar", []string{"10 %\r", "20 %\r100 %\n", "done"}, "100 %\ndone"},
		{"a shorter text leaves the rest", []string{"abcdef\rxy"}, "xycdef"},
		{"a return before the end of the line", []string{"abc\r\n", "d"}, "abc\nd"},
		{"a return at the end of a part", []string{"abc\r", "x"}, "xbc"},
		{"backspaces", []string{"abc\b\bx", "\n\b1"}, "ax\n1"},
		{"wide characters", []string{"日本\r語"}, "語本"},
	} {
		var all text
		for _, part := range c.parts {
			all.add(part)
		}
		if got := all.String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestALongStreamKeepsItsBeginningAndItsEnd(t *testing.T) {
	var all text
	line := strings.Repeat("x", 1<<20-1) + "\n"
	all.add("first\n")
	for range 60 {
		all.add(line)
		if all.size() > 2*maxText {
			t.Fatalf("%d bytes are kept", all.size())
		}
	}
	all.add("last")
	got := all.String()
	if !strings.HasPrefix(got, "first\n") || !strings.HasSuffix(got, "\nlast") ||
		!strings.Contains(got, "Slipway left out") || len(got) > 2*maxText {
		t.Errorf("%d bytes: %.20q … %q", len(got), got, got[len(got)-20:])
	}
	var one text // without a line end
	for range 20 {
		one.add(line[:len(line)-1])
	}
	if one.size() > 2*maxText {
		t.Errorf("a line of %d bytes is kept", one.size())
	}
}

// sheetOf is a notebook with code cells: source, count ("": none), outputs.
func sheetOf(cells ...[3]string) fields {
	list := []string{`{"cell_type":"markdown","source":["# print(1)\n","text"]}`}
	for _, c := range cells {
		count := c[1]
		if count == "" {
			count = "null"
		}
		source, _ := json.Marshal(strings.SplitAfter(c[0], "\n")) // strings can always be marshalled
		list = append(list, `{"cell_type":"code","metadata":{"a":1.50},"source":`+string(source)+
			`,"execution_count":`+count+`,"outputs":[`+c[2]+`]}`)
	}
	var f fields
	if err := unmarshal([]byte(`{"nbformat":4,"cells":[`+strings.Join(list, ",")+`]}`), &f); err != nil {
		panic(err)
	}
	return f
}

const printed = `{"output_type":"stream","name":"stdout","text":["1\n","2\n"]}`

func TestWhatANotebookLacksIsPlaced(t *testing.T) {
	began := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ran := func(change func(*run)) runs {
		var list runs
		list.take(say("1", "execute_input", `{"code":"print(1)\nprint(2)","execution_count":7}`), began, false)
		list.take(say("1", "stream", `{"name":"stdout","text":"1\n"}`), began.Add(time.Second), false)
		list.take(say("1", "stream", `{"name":"stdout","text":"2\n"}`), began.Add(2*time.Second), false)
		list.take(say("1", "status", `{"execution_state":"idle"}`), began.Add(2*time.Second), false)
		if change != nil {
			change(list[0])
		}
		return list
	}
	missed := func(r *run) { r.missed = true }
	goesOn := func(r *run) { r.missed, r.done = true, false }
	const source = "print(1)\nprint(2)"
	before, after := began.Add(-time.Hour), began.Add(time.Hour)
	for _, c := range []struct {
		name  string
		runs  runs
		sheet fields
		saved time.Time
		want  string // counts and outputs of the code cells
		aside int
	}{
		{"a page was closed before it saved", ran(nil), sheetOf([3]string{source}), before, `7 "1\n2\n"`, 0},
		{"a page saved after it", ran(nil), sheetOf([3]string{source}), after, `null`, 0},
		{"a page that missed it saved after it", ran(missed), sheetOf([3]string{source}), after, `7 "1\n2\n"`, 0},
		{"the file has it", ran(missed), sheetOf([3]string{source, "7", printed}), before, "", 0},
		{"the file has an older run of it", ran(missed), sheetOf([3]string{source, "3", printed}), before,
			`7 "1\n2\n"`, 0},
		{"it goes on", ran(goesOn), sheetOf([3]string{source}), before, `null "1\n2\n"`, 0},
		{"it goes on after an older run", ran(goesOn), sheetOf([3]string{source, "3", printed + "," + printed}), before,
			`null "1\n2\n"`, 0},
		{"two cells are alike", ran(missed), sheetOf([3]string{source}, [3]string{source}), before, "", 1},
		{"of two alike one has its count", ran(missed), sheetOf([3]string{source, "7"}, [3]string{source}), before,
			`7 "1\n2\n" null`, 0},
		{"the cell was edited", ran(missed), sheetOf([3]string{"print(3)"}), before, "", 1},
		{"the cell was edited and nothing missed", ran(nil), sheetOf([3]string{"print(3)"}), before, "", 0},
		{"spaces around", ran(missed), sheetOf([3]string{"\n" + source + "\n\n"}), before, `7 "1\n2\n"`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			placed, homeless := place(c.sheet, c.runs, c.saved)
			if len(homeless) != c.aside {
				t.Errorf("%d runs have no cell", len(homeless))
			}
			if len(placed) == 0 {
				if c.want != "" && c.want != "null" {
					t.Errorf("nothing was placed")
				}
				return
			}
			if got := contentOf(c.sheet); got != c.want {
				t.Errorf("the cells are %s, want %s", got, c.want)
			}
			for _, r := range c.runs {
				r.settled = r.done
			}
			if again, _ := place(c.sheet, c.runs, c.saved); len(again) > 0 && c.runs[0].done {
				t.Errorf("it is placed again")
			}
		})
	}
}

// contentOf returns the counts of code cells and the texts of their outputs.
func contentOf(sheet fields) string {
	var all []string
	for _, c := range sheet["cells"].([]any) {
		cell := c.(fields)
		if cell["cell_type"] != "code" {
			continue
		}
		count, _ := json.Marshal(cell["execution_count"])
		all = append(all, string(count))
		for _, o := range cell["outputs"].([]any) {
			text, _ := json.Marshal(joined(o.(fields)["text"]))
			all = append(all, string(text))
		}
	}
	return strings.Join(all, " ")
}

func TestOutputsAreThoseOfTheMessages(t *testing.T) {
	now := time.Now()
	var list runs
	for _, m := range []message{
		say("1", "stream", `{"name":"stdout","text":"before the run is known"}`),
		say("1", "execute_input", `{"code":"a","execution_count":1}`),
		say("1", "stream", `{"name":"stdout","text":"a"}`),
		say("1", "stream", `{"name":"stdout","text":"b"}`),
		say("1", "stream", `{"name":"stderr","text":"c"}`),
		say("1", "display_data", `{"data":{"text/plain":"old"},"metadata":{},"transient":{"display_id":"d"}}`),
		say("1", "comm_open", `{}`),
		say("1", "status", `{"execution_state":"idle"}`),
		say("2", "execute_input", `{"code":"b","execution_count":2}`),
		say("2", "update_display_data", `{"data":{"text/plain":"new"},"metadata":{},"transient":{"display_id":"d"}}`),
		say("2", "stream", `{"name":"stdout","text":"gone"}`),
		say("2", "clear_output", `{"wait":true}`),
		say("2", "execute_result", `{"data":{"text/plain":"1e400"},"metadata":{},"execution_count":2}`),
		say("2", "error", `{"ename":"E","evalue":"v","traceback":["t"]}`),
		say("3", "execute_input", `{"code":"c","execution_count":3}`),
		say("3", "stream", `{"name":"stdout","text":"gone"}`),
		say("3", "clear_output", `{"wait":false}`),
	} {
		list.take(m, now, false)
	}
	want := []string{
		`[{"name":"stdout","output_type":"stream","text":"ab"},{"name":"stderr","output_type":"stream","text":"c"},` +
			`{"data":{"text/plain":"new"},"metadata":{},"output_type":"display_data"}]`,
		`[{"data":{"text/plain":"1e400"},"execution_count":2,"metadata":{},"output_type":"execute_result"},` +
			`{"ename":"E","evalue":"v","output_type":"error","traceback":["t"]}]`,
		`[]`,
	}
	for i, r := range list {
		if got, err := json.Marshal(r.notebook()); err != nil || string(got) != want[i] {
			t.Errorf("run %d has %s, %v, want %s", i+1, got, err, want[i])
		}
	}
	if !list[0].done || list[2].done {
		t.Error("a run is done when its kernel is idle again")
	}
}

func TestTheOldestRunsGoFirst(t *testing.T) {
	var list runs
	now := time.Now()
	big := say("", "stream", `{"name":"stdout","text":"`+strings.Repeat(strings.Repeat("x", 1<<20)+`\n`, 10)+`"}`)
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		list.take(say(id, "execute_input", `{"code":"`+id+`"}`), now, false)
		big.parent = id
		list.take(big, now, false)
		sum := 0
		for _, r := range list {
			sum += r.bytes()
		}
		if sum > maxKept+11<<20 || list.of(id) == nil {
			t.Fatalf("%d bytes are kept in %d runs", sum, len(list))
		}
	}
	for range maxRuns + 10 {
		list.take(say("x", "execute_input", `{"code":"x"}`), now, false)
	}
	if len(list) > maxRuns {
		t.Errorf("%d runs are kept", len(list))
	}
}
