package images

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func step(t *testing.T, text string) message {
	t.Helper()
	var m message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMeterAddsUpLayers(t *testing.T) {
	m, now := newMeter(), time.Unix(0, 0)
	for _, c := range []struct {
		message string
		want    session.Pull // without its rate
	}{
		{`{"status":"Pulling from library/x","id":"1.0"}`, session.Pull{}},
		{`{"status":"Already exists","id":"a"}`, session.Pull{Layers: 1, LayersDone: 1}},
		{`{"status":"Pulling fs layer","id":"b"}`, session.Pull{Layers: 2, LayersDone: 1}},
		{`{"status":"Pulling fs layer","id":"c"}`, session.Pull{Layers: 3, LayersDone: 1}},
		{`{"status":"Downloading","id":"b","progressDetail":{"current":100,"total":1000}}`,
			session.Pull{Layers: 3, LayersDone: 1, Current: 100}},
		{`{"status":"Downloading","id":"c","progressDetail":{"current":50,"total":500}}`,
			session.Pull{Layers: 3, LayersDone: 1, Current: 150, Total: 1500}},
		{`{"status":"Retrying in 5 seconds","id":"c"}`, session.Pull{Layers: 3, LayersDone: 1, Current: 150,
			Total: 1500}},
		{`{"status":"Downloading","id":"c","progressDetail":{"current":10,"total":500}}`,
			session.Pull{Layers: 3, LayersDone: 1, Current: 150, Total: 1500}},
		{`{"status":"Download complete","id":"c"}`, session.Pull{Layers: 3, LayersDone: 1, Current: 600, Total: 1500}},
		{`{"status":"Extracting","id":"c","progressDetail":{"current":1,"total":500}}`,
			session.Pull{Layers: 3, LayersDone: 1, Current: 600, Total: 1500}},
		{`{"status":"Pull complete","id":"c"}`, session.Pull{Layers: 3, LayersDone: 2, Current: 600, Total: 1500}},
		{`{"status":"Pull complete","id":"b"}`, session.Pull{Layers: 3, LayersDone: 3, Current: 1500, Total: 1500}},
		{`{"status":"Digest: sha256:0"}`, session.Pull{Layers: 3, LayersDone: 3, Current: 1500, Total: 1500}},
	} {
		now = now.Add(time.Second)
		m.note(step(t, c.message), now)
		got := m.pull(now)
		got.Rate = 0
		if got != c.want {
			t.Errorf("after %s: got %+v, want %+v", c.message, got, c.want)
		}
	}
}

func TestMeterCountsWhatWasThereBeforeACut(t *testing.T) {
	m, now := newMeter(), time.Unix(0, 0)
	for _, c := range []struct {
		message string
		want    gpu.Bytes
	}{
		{`{"status":"Downloading","id":"b","progressDetail":{"current":400,"total":1000}}`, 400},
		{`{"status":"Retrying in 1 second","id":"b"}`, 400},
		{`{"status":"Downloading","id":"b","progressDetail":{"current":100,"total":600}}`, 500},
		{`{"status":"Download complete","id":"b"}`, 1000},
	} {
		m.note(step(t, c.message), now)
		if got := m.pull(now); got.Current != c.want || got.Total != 1000 {
			t.Errorf("after %s it is %+v", c.message, got)
		}
	}
}

func TestMeterRateIsOfTheLastSeconds(t *testing.T) {
	m, now := newMeter(), time.Unix(0, 0)
	for current := 0; current <= 20_000; current += 1000 {
		m.note(message{ID: "a", Status: "Downloading", Detail: struct {
			Current int64 `json:"current"`
			Total   int64 `json:"total"`
		}{int64(current), 100_000}}, now)
		now = now.Add(time.Second)
	}
	if got := m.pull(now).Rate; got < 700 || got > 1000 {
		t.Errorf("got %d bytes a second, want about 1000", got)
	}
	for range 10 {
		now = now.Add(time.Second)
		m.mark(now)
	}
	if got := m.pull(now).Rate; got != 0 {
		t.Errorf("got %d bytes a second after 10 s of nothing", got)
	}
}

func TestFollowTellsProgressWhileNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		var rates []int64
		done := make(chan error, 1)
		go func() { done <- follow(in, func(p session.Pull) { rates = append(rates, int64(p.Rate)) }) }()
		io.WriteString(out,
			`{"status":"Downloading","id":"a","progressDetail":{"current":0,`+
				`"total":9000}}`+"\n") //nolint:errcheck // a pipe
		time.Sleep(time.Second)
		io.WriteString(out,
			`{"status":"Downloading","id":"a","progressDetail":{"current":8000,`+
				`"total":9000}}`+"\n") //nolint:errcheck // a pipe
		time.Sleep(20 * time.Second)
		out.Close() //nolint:errcheck // a pipe
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		highest := int64(0)
		for _, r := range rates {
			highest = max(highest, r)
		}
		if highest < 1000 || rates[len(rates)-1] != 0 {
			t.Errorf("got rates %v, want one above 1000 that falls to 0", rates)
		}
		if len(rates) > 60 {
			t.Errorf("told %d times in 21 s", len(rates))
		}
	})
}

func TestFollowStopsAtAnErrorInTheStream(t *testing.T) {
	stream := `{"status":"Pulling fs layer","id":"a"}` + "\n" +
		`{"errorDetail":{"message":"write /x: no space left on device"},"error":"write /x: no space left on device"}` +
		"\n"
	err := follow(strings.NewReader(stream), func(session.Pull) {})
	var said *streamError
	if !errors.As(err, &said) {
		t.Fatalf("got %v", err)
	}
	if got := session.CodeOf(pullFailure(t.Context(), "x", err)); got != "disk_write_no-space" {
		t.Errorf("got %s", got)
	}
	if got := session.CodeOf(pullFailure(t.Context(), "x",
		follow(strings.NewReader(`{"status":`), func(session.Pull) {}))); got != session.CodeEngineUnavailable {
		t.Errorf("a stream that breaks off: got %s", got)
	}
}
