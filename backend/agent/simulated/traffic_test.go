package simulated_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// serve deploys a service that runs a command.
func (m machine) serve(name string, wish session.ServiceWish, devices int, command ...string) {
	m.Helper()
	wish.Public = true
	_, err := m.DeployService(m.Context(), session.DeployRequest{Name: name, ServiceWish: wish, Spec: session.Spec{
		Image: "python:3.12", Accelerator: gpu.Request{Devices: devices},
		Access: session.Access{Serving: &session.Serving{Port: 8000, Command: command,
			Health: lenient("/health")}}}})
	if err != nil {
		m.Fatal(err)
	}
}

// model is the command of the simulated model server, which says 40 words in a second of this computer's time.
var model = []string{"llama-server", "--model", "m.gguf", "--port", "8000"}

// stream asks for a stream of so many words, and returns its body.
func (m machine) stream(name string, words int) io.ReadCloser {
	question := fmt.Sprintf(`{"model":%q,"stream":true,"ignore_eos":true,"max_tokens":%d,
		"messages":[{"role":"user","content":"sing"}]}`, name, words)
	answer, err := m.client.Post("http://localhost/v1/chat/completions", "application/json",
		strings.NewReader(question))
	if err != nil {
		m.Error(err)
		return http.NoBody
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		m.Errorf("%s answers %s %s", name, answer.Status, text)
	}
	return answer.Body
}

// whole reads a stream to its end, and reports whether it has one.
func whole(stream io.ReadCloser) bool {
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return err == nil && strings.HasSuffix(string(text), "data: [DONE]\n\n")
}

// sessions returns how many sessions there have been.
func (m machine) sessions() int {
	m.Helper()
	all, err := m.List(m.Context(), session.Filter{})
	if err != nil {
		m.Fatal(err)
	}
	return len(all)
}

func TestABurstWakesAServiceOnce(t *testing.T) {
	t.Parallel()
	m := open(t)
	// All requests come while it starts. The time of programs is that of this computer.
	m.serve("sleeper", session.ServiceWish{Replicas: 1, Sleep: session.Duration(time.Minute)}, 0, "sh", "-c",
		"sleep 6; llama-server --model m.gguf --port 8000")
	m.await("sleeper", func(s session.Service) bool {
		return s.State == session.ServiceAsleep && len(s.Live) == 0
	})
	before := m.sessions()
	var answered, refused atomic.Int64
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() {
			answer, err := m.client.Get("http://localhost/services/sleeper/v1/models")
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			switch {
			case answer.StatusCode == http.StatusOK:
				answered.Add(1)
			case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "":
				refused.Add(1)
			default:
				t.Errorf("it is answered with %s", answer.Status)
			}
		})
	}
	all.Wait()
	if answered.Load() != 256 || refused.Load() != 44 {
		t.Errorf("%d were answered and %d refused", answered.Load(), refused.Load())
	}
	if started := m.sessions() - before; started != 1 {
		t.Errorf("%d replicas were started", started)
	}
}

func TestTwoServicesAlternateOnOneDevice(t *testing.T) {
	t.Parallel()
	m := open(t)
	names := []string{"first", "second"}
	for _, name := range names {
		m.serve(name, session.ServiceWish{Replicas: 1, MaySleep: true}, 1, model...)
	}
	for i := range 20 {
		if i != 7 {
			if !whole(m.stream(names[i%2], 4)) {
				t.Errorf("request %d is cut", i)
			}
			continue
		}
		// Another service gets the device only when the stream has ended.
		stream := m.stream(names[i%2], 100)
		begun := bufio.NewReader(stream)
		if _, err := begun.ReadString('\n'); err != nil {
			t.Error(err)
		}
		other := make(chan bool)
		go func() { other <- whole(m.stream(names[(i+1)%2], 4)) }()
		if !whole(struct {
			io.Reader
			io.Closer
		}{begun, stream}) {
			t.Error("the long stream is cut")
		}
		if !<-other {
			t.Error("the request that waits for its end is cut")
		}
	}
}

func TestARuleFollowsRequestsUnderWay(t *testing.T) {
	t.Parallel()
	m := open(t)
	more, fewer := 2.0, 1.0
	second := session.Duration(time.Second)
	m.serve("ruled", session.ServiceWish{Replicas: 1, Rules: []session.ScalingRule{{Source: "router",
		Metric: "outstanding", ScaleUp: &more, ScaleDown: &fewer, Window: second, Cooldown: second,
		MaxReplicas: 2}}}, 0, model...)
	m.await("ruled", is(session.ServiceReady))
	var streams sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		streams.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if !whole(m.stream("ruled", 60)) {
					t.Error("a stream is cut")
				}
			}
		})
	}
	m.await("ruled", func(s session.Service) bool { return len(s.Live) == 2 })
	close(stop)
	streams.Wait()
	m.await("ruled", func(s session.Service) bool { return len(s.Live) == 1 && s.State == session.ServiceReady })
}
