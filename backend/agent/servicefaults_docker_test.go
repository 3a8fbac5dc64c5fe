//go:build unix

package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// fakeSpec is the spec of a replica that says numbered words and can be made sick.
func fakeSpec(more ...string) session.Spec {
	quick := session.Health{Interval: session.Duration(time.Second), MaxRetries: 2,
		MaxWaitTime: session.Duration(time.Second)}
	return session.Spec{Image: enginetest.ImageFakeModel, Type: session.Inference,
		Resources: session.Resources{CPU: 1, Memory: 256 * gpu.MiB},
		Access: session.Access{Serving: &session.Serving{Port: modelPort, Health: quick,
			Command: append([]string{"/fakemodel", "-port", fmt.Sprint(modelPort)}, more...)}}}
}

func ready(s session.Service) bool { return s.State == session.ServiceReady }

// fault changes what is wrong with the server.
func (m modelServer) fault(query string) {
	m.t.Helper()
	answer, err := m.request(m.t.Context(), "/services/"+m.name+"/fault?"+query, struct{}{})
	if err != nil {
		m.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		m.t.Fatalf("the fault is answered with %s", answer.Status)
	}
}

// words asks for a stream of so many words, with so much time between them.
func (m modelServer) words(count int, pace time.Duration) *http.Response {
	m.t.Helper()
	answer, err := m.request(m.t.Context(), "/v1/chat/completions", map[string]any{"model": m.name, "stream": true,
		"max_tokens": count, "pace_ms": pace.Milliseconds()})
	if err != nil {
		m.t.Fatal(err)
	}
	return answer
}

// order fails unless a stream has all words in their order, and an end. It calls each, which may be nil, with them.
func order(t *testing.T, stream io.ReadCloser, count int, each func(word int)) {
	t.Helper()
	defer stream.Close()
	next, done := 0, false
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		done = done || data == "[DONE]"
		if is && strings.Contains(data, `"content"`) {
			if !strings.Contains(data, fmt.Sprintf(`"w%d "`, next)) {
				t.Errorf("word %d is %s", next, data)
			}
			if each != nil {
				each(next)
			}
			next++
		}
	}
	if lines.Err() != nil || next != count || !done {
		t.Errorf("the stream ends after %d words of %d: %v", next, count, lines.Err())
	}
}

// TestAServiceSurvivesFaults makes the server of a real container go wrong in the ways of real ones.
func TestAServiceSurvivesFaults(t *testing.T) {
	t.Parallel()
	m := newReal(t, t.TempDir(), asPerson).serve("fake", fakeSpec(), session.ServiceWish{Replicas: 1})
	m.awaitService("ready", ready)
	replaced := func(before session.ID) func(session.Service) bool {
		return func(s session.Service) bool { return ready(s) && s.Live[0].Session != before }
	}
	t.Run("a cut stays a cut", func(t *testing.T) {
		m := m.within(t)
		m.fault("cut=1")
		text, err := io.ReadAll(m.words(10, 0).Body)
		if err == nil || strings.Contains(string(text), "[DONE]") || !strings.Contains(string(text), `"w4 "`) {
			t.Errorf("the cut stream is %q, %v", text, err)
		}
		m.fault("cut=0&fail=1")
		if answer := m.words(10, 0); answer.StatusCode != http.StatusInternalServerError {
			t.Errorf("a failure is answered with %s", answer.Status)
		}
		m.fault("fail=0&vanish=1")
		if answer := m.words(10, 0); answer.StatusCode != http.StatusBadGateway {
			t.Errorf("a connection that is closed without an answer is answered with %s", answer.Status)
		}
		m.fault("vanish=0")
		order(t, m.words(10, 0).Body, 10, nil)
	})
	t.Run("one that is busy stays, whatever its checks say", func(t *testing.T) {
		m := m.within(t)
		before := m.service().Live[0]
		const words, well = 140, 80 // it is sick for longer than the checks may fail
		stream := m.words(words, 50*time.Millisecond)
		m.fault("sick=1")
		order(t, stream.Body, words, func(word int) {
			if word == well {
				m.fault("sick=0")
			}
		})
		if after := m.service().Live; len(after) != 1 || after[0].Session != before.Session {
			t.Errorf("the replica was %+v, and now they are %+v", before, after)
		}
	})
	for _, fault := range []string{"sick", "deaf", "die"} {
		t.Run("one that is "+fault+" is replaced", func(t *testing.T) {
			m := m.within(t)
			before := m.service().Live[0].Session
			if fault == "die" {
				answer, err := m.request(t.Context(), "/services/fake/fault?die=3", struct{}{})
				if err == nil {
					answer.Body.Close()
				}
			} else {
				m.fault(fault + "=1")
			}
			m.awaitService("replaced", replaced(before))
			order(t, m.words(10, 0).Body, 10, nil)
		})
	}
	t.Run("bodies have a limit", func(t *testing.T) {
		m := m.within(t)
		for size, want := range map[int]string{64 << 20: "200 OK 67108864", 65 << 20: "413"} {
			answer, err := m.send(t.Context(), http.MethodPost, "/services/fake/size", "application/octet-stream",
				bytes.NewReader(make([]byte, size)))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if got := answer.Status + " " + string(text); !strings.HasPrefix(got, want) {
				t.Errorf("%d bytes are answered with %.100s", size, got)
			}
		}
	})
}

// TestAnUpdateWaitsForAStream updates a service, whose servers end at once on SIGTERM, while a stream is under way.
func TestAnUpdateWaitsForAStream(t *testing.T) {
	t.Parallel()
	m := newReal(t, t.TempDir(), asPerson).serve("fake", fakeSpec(), session.ServiceWish{Replicas: 1})
	before := m.awaitService("ready", ready).Live[0].Session
	const words = 200
	stream := m.words(words, 100*time.Millisecond)
	m.deploy(fakeSpec("-load", "1ms"))
	order(t, stream.Body, words, nil)
	whole := time.Now()
	m.await(before, "ended", func(s session.Session) bool { return s.Status.Terminal() })
	t.Logf("it ended %s after the stream", time.Since(whole))
	m.awaitService("updated", func(s session.Service) bool { return ready(s) && healthy(s, 2) == 1 })
	order(t, m.words(10, 0).Body, 10, nil)
}
