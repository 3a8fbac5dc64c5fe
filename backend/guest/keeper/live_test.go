package keeper

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// asked is what a page of the first kernel's notebook gets.
func (s *shelf) asked(query string) string {
	values, err := url.ParseQuery("kernel=0&path=a.ipynb&client=new&" + query)
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(s.live(values))
	if err != nil {
		panic(err)
	}
	return string(body)
}

func TestAPageGetsTheRunsThatItLacks(t *testing.T) {
	s := newShelf(1, maxSession)
	page := func(pages int) { s.kernels["0"].seen("a.ipynb", pages, s.now) }
	number := 0
	publish := func(request, kind, content string) {
		number++
		m := say(request, kind, content)
		m.id, m.date, m.client = fmt.Sprint("m", number), fmt.Sprint("d", number), "old"
		s.kernels["0"].take(m, s.now)
	}
	publish("1", "execute_input", `{"code":"one","execution_count":1}`)
	publish("1", "status", `{"execution_state":"idle"}`)
	publish("2", "execute_input", `{"code":"two","execution_count":2}`)
	publish("2", "stream", `{"name":"stdout","text":"50 %\r"}`)
	publish("2", displayData, `{"data":{"text/plain":"x"},"metadata":{},"transient":{"display_id":"d"}}`)
	page(1)
	if got := s.asked(""); !strings.Contains(got, `"runs":[]`) {
		t.Errorf("while a page shows them, another gets %s", got)
	}
	page(0)
	for _, r := range s.kernels["0"].runs {
		r.settled = r.done // as when the page reads the file
	}
	publish("2", "clear_output", `{"wait":true}`)
	const second = `{"clearing":true,"code":"two","count":2,"done":false,"outputs":[` +
		`{"name":"stdout","output_type":"stream","text":"50 %\r"},` +
		`{"data":{"text/plain":"x"},"metadata":{},"output_type":"display_data","transient":{"display_id":"d"}}],` +
		`"request":"2"}`
	const recent = `{"recent":["m1","m2","m3","m4","m5","m6"],"runs":[`
	if got, want := s.asked(""), recent+second+`],"since":""}`; got != want {
		t.Errorf("it gets %s, want %s", got, want)
	}
	for _, other := range []string{"client=old", "path=b.ipynb", "kernel=1"} {
		query, _, _ := strings.Cut(other, "=")
		values := url.Values{"kernel": {"0"}, "path": {"a.ipynb"}, "client": {"new"}}
		values.Set(query, other[len(query)+1:])
		if got := s.live(values)["runs"].([]any); len(got) > 0 {
			t.Errorf("%s gets %v", other, got)
		}
	}
	if got, want := s.asked("shown=1&shown=2"), recent+`],"since":""}`; got != want {
		t.Errorf("once it shows it, it gets %s, want %s", got, want)
	}
	page(2)
	page(1)
	if got := s.asked("saved=" + s.now.Add(time.Hour).Format(time.RFC3339)); !strings.Contains(got, `"two"`) ||
		strings.Contains(got, `"one"`) {
		t.Errorf("when one of two pages has left, it gets %s", got)
	}
	s.kernels["0"].left["old"] = doubtful
	publish("doubtful", "execute_input", `{"code":"four"}`)
	publish("doubtful", "status", `{"execution_state":"idle"}`)
	before, after := s.now.Add(-time.Hour).Format(time.RFC3339), s.now.Add(time.Hour).Format(time.RFC3339)
	if !strings.Contains(s.asked("saved="+before), "four") || strings.Contains(s.asked("saved="+after), "four") {
		t.Error("what ended in doubt is not compared with when the notebook was saved")
	}
	page(0)
	s.asked("shown=2&shown=doubtful")
	publish("3", "execute_input", `{"code":"three"}`) // which the old page had queued
	if got := s.asked(""); strings.Contains(got, "two") || !strings.Contains(got, `"code":"three","count":null`) {
		t.Errorf("of the next cell it gets %s", got)
	}
	page(0)
	if got := s.asked(""); !strings.Contains(got, "two") {
		t.Errorf("when it was closed, the next one gets %s", got)
	}
}

func TestOnlyTheNewestMessagesAreRemembered(t *testing.T) {
	s := newShelf(1, maxSession)
	first, count := 0, 0 // of those that are remembered
	for i := range 3 * maxRecent {
		m := say("1", "status", `{}`)
		m.id, m.date = fmt.Sprint(i), fmt.Sprint("d", i)
		s.kernels["0"].take(m, time.Now())
		m.date = strings.Repeat("x", maxID+1)
		s.kernels["0"].take(m, time.Now())
		if count++; count > maxRecent {
			first, count = first+maxRecent/2, count-maxRecent/2
		}
		got := s.live(url.Values{"kernel": {"0"}})
		ids, since := got["recent"].([]string), fmt.Sprint("d", first)
		if first == 0 {
			since = "" // there were none before
		}
		if len(ids) != count || ids[0] != fmt.Sprint(first) || ids[count-1] != m.id || got["since"] != since {
			t.Fatalf("%d are remembered, from %s to %s, since %s", len(ids), ids[0], ids[len(ids)-1], got["since"])
		}
	}
}

func TestTheNextTextFollowsWhereThePageIs(t *testing.T) {
	var whole, first text
	for _, part := range []string{"done\n", "10 %\r2", "0 \rx"} {
		var page text
		page.add(first.resumable())
		page.add(part)
		whole.add(part)
		if first.add(part); page.String() != whole.String() || page.at != whole.at {
			t.Errorf("%q has %q at %d, want %q at %d", part, page.String(), page.at, whole.String(), whole.at)
		}
	}
}
