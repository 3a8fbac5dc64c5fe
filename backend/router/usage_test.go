package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestUsageOfOtherForms(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"usage":{"prompt_tokens":3,"total_tokens":3}}`, "{3 0}"},
		{`{"usage":{"prompt_tokens":3},"x":{"usage":"text"}}`, "{3 0}"},
		{`{"usage":null}`, "{0 0}"},
		{`{"usage":{"input_tokens":3,"output_tokens":4}}`, "{3 4}"},
		{`{"content":"\"usage\":{\"prompt_tokens\":9}"}`, "{0 0}"},
		{strings.Repeat(" ", 10_000) + `{"usage" : {"a":{"b":[1]},"completion_tokens" : 4}}`, "{0 4}"},
		{`{"usage":{"prompt_tokens":3}` + strings.Repeat(" ", longestTail), "{0 0}"},
	} {
		for _, size := range []int{1, 7, 5000, 100_000} {
			one := &tail{}
			for part := range chunks(c.text, size) {
				one.pass(part)
			}
			if got := fmt.Sprint(one.total()); got != c.want {
				t.Errorf("%.60s in parts of %d: %s, want %s", c.text, size, got, c.want)
			}
		}
	}
	one := newEvents(false)
	stream := "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":7}}}\n\n" +
		"data: {\"usage\":{\"output_tokens\":2}}\r\n\r\n: ping\n\n" +
		"data: {\"response\":{\"usage\":{\"input_tokens\":8,\"output_tokens\":9}}}\n\n"
	for part := range chunks(stream, 3) {
		one.pass(part)
	}
	if got := one.total(); got != (usage{8, 9}) {
		t.Errorf("the usage is %v", got)
	}
}

// chunks yields copies of a text in parts of a size.
func chunks(text string, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(text) > 0 {
			n := min(size, len(text))
			if !yield([]byte(text[:n])) {
				return
			}
			text = text[n:]
		}
	}
}

func filtered(stream string, size int) (string, usage) {
	one := newEvents(true)
	var out bytes.Buffer
	for part := range chunks(stream, size) {
		out.Write(one.pass(part))
	}
	out.Write(one.rest(true))
	return out.String(), one.total()
}

func TestOnlyTheEventOfTheUsageIsRemoved(t *testing.T) {
	const bare = "data: {\"id\":\"c\",\"choices\":[ ],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}"
	long := "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1},\"x\":\"" + strings.Repeat("x", longestEvent) +
		"\"}\n\n"
	for _, c := range []struct{ stream, want string }{
		{"data: a\n\n" + bare + "\n\ndata: [DONE]\n\n", "data: a\n\ndata: [DONE]\n\n"},
		{"data: a\r\n\r\n" + bare + "\r\n\r\ndata: [DONE]\r\n\r\n", "data: a\r\n\r\ndata: [DONE]\r\n\r\n"},
		{"\n\n: ping\n\n" + bare + "\n\n", "\n\n: ping\n\n"},
		{"data: a\n\n" + bare, "data: a\n\n"},
		{"id: 1\n" + bare + "\n\nx", "x"},
		{"data: {\"choices\":[],\"usage\":null}\n\n", "data: {\"choices\":[],\"usage\":null}\n\n"},
		{"data: {\"choices\":[1],\"usage\":{\"prompt_tokens\":1}}\n\n",
			"data: {\"choices\":[1],\"usage\":{\"prompt_tokens\":1}}\n\n"},
		{"data: {\"usage\":{\"prompt_tokens\":1}}\n\n", "data: {\"usage\":{\"prompt_tokens\":1}}\n\n"},
		{long + "data: b\n\n", long + "data: b\n\n"},
		{"data: half", "data: half"},
	} {
		for _, size := range []int{1, 2, 3, 10, 4096, 1 << 20} {
			if got, _ := filtered(c.stream, size); got != c.want {
				t.Errorf("%.80q in parts of %d becomes %.200q", c.stream, size, got)
			}
		}
	}
	one := newEvents(true)
	if got := string(one.pass([]byte("data: a\n\ndata: " + "b"))); got != "data: a\n\n" {
		t.Errorf("a complete event is held: %q", got)
	}
	if got := string(one.rest(false)); got != "data: b" {
		t.Errorf("what is held when the stream is cut: %q", got)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n", 3, 5)
	f.Add("\r\n\r\n\n: x\ndata:{\"usage\":{},\"choices\":[]}\r\n\n", 1, 2)
	f.Fuzz(func(t *testing.T, stream string, one, other int) {
		one, other = max(one, 1), max(other, 1)
		first, usage := filtered(stream, one)
		second, same := filtered(stream, other)
		if first != second || usage != same {
			t.Errorf("parts of %d give %q %v, of %d %q %v", one, first, usage, other, second, same)
		}
		if !strings.Contains(stream, "usage") && first != stream {
			t.Errorf("%q becomes %q", stream, first)
		}
		seen := newEvents(false)
		var out bytes.Buffer
		for part := range chunks(stream, one) {
			out.Write(seen.pass(part))
		}
		if out.Write(seen.rest(true)); out.String() != stream || seen.total() != usage {
			t.Errorf("%q is passed on as %q", stream, out.String())
		}
	})
}

func FuzzOutline(f *testing.F) {
	f.Add(`{"model":"m","stream":true,"messages":[{"role":"user","content":"{\"a\":1}"}]}`, 20)
	f.Add(`{"mod\u0065l":"\ud83d\ude00","stream_options":{"include_usage":false,"x":[1,{}]},"stream":true}`, 3)
	f.Add(` { "stream" : true , "stream_options" : null , "n" : -1.5e3 } `, 9)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		body := []byte(text)
		if cut >= 0 && cut < len(body) {
			if o := read(body[:cut:cut]); o.how == whole {
				read(body)
			} else if read(body).how != broken && o.how == broken && json.Valid(body) {
				t.Errorf("%q is broken if only %q is there", text, body[:cut])
			}
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(body, &members) != nil || members == nil {
			return
		}
		o := read(body)
		var model string
		isText := json.Unmarshal(members["model"], &model) == nil && string(members["model"]) != "null"
		plain := strings.ToValidUTF8(text, "") == text
		if o.how != whole || o.hasModel != isText || plain && o.model != model ||
			o.stream != (string(members["stream"]) == "true") {
			t.Errorf("%q is read as %+v", text, o)
		}
		o.conversation(body, "t")
		if !o.stream {
			return
		}
		asks := o.withUsage(body)
		if again := read(asks); again.how != whole || !again.usage || again.model != o.model || !json.Valid(asks) {
			t.Errorf("%q becomes %q", text, asks)
		}
	})
}
