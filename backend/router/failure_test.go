package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheEndOfAReplicaFailsOnlyItsRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		retry  bool
		body   string
		failed int
	}{
		{"streams", true, streamed, 4},
		{"plain requests", false, plain, 4},
		{"plain requests that are repeated", true, plain, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(manner{first: time.Second, each: time.Second}, "a", "b", "c")
				s := public("a", "b", "c")
				s.RetryUnanswered = c.retry
				w.router.Set([]Service{s})
				results := make(chan reply, 24)
				send := func() { results <- w.post(strings.Replace(c.body, "hi", fmt.Sprint(rand.Int()), 1)) }
				for range 12 {
					go send()
				}
				time.Sleep(500 * time.Millisecond)
				if c.body == streamed {
					time.Sleep(2 * time.Second)
				}
				w.fakes["b"].die()
				for range 12 {
					go send()
				}
				failed := 0
				for range 24 {
					check := plainError
					if c.body == streamed {
						check = streamError
					}
					if check(<-results, 8) != nil {
						failed++
					}
				}
				if failed != c.failed {
					t.Errorf("%d requests failed, want %d", failed, c.failed)
				}
				w.settled("chat")
			})
		})
	}
}

func TestARequestIsRepeatedOnce(t *testing.T) {
	w := newWorld(t)
	w.start(manner{vanish: true}, "a", "b", "c")
	s := public("a", "b", "c")
	s.RetryUnanswered = true
	w.router.Set([]Service{s})
	count := func() (n int) {
		for _, f := range w.fakes {
			n += len(f.requests())
		}
		return n
	}
	if got := w.post(plain); got.code() != "502 bad_gateway" || count() != 2 {
		t.Errorf("the answer is %s after %d requests", got.code(), count())
	}
	s.RetryUnanswered = false
	w.router.Set([]Service{s})
	if got := w.post(plain, "Idempotency-Key", "1"); got.code() != "502 bad_gateway" || count() != 3 {
		t.Errorf("without RetryUnanswered: %s after %d requests", got.code(), count())
	}
	if got := w.post(streamed); got.code() != "502 bad_gateway" || count() != 4 {
		t.Errorf("a stream: %s after %d requests", got.code(), count())
	}
	w.settled("chat")
}

// Servers such as llama-server close the connection of a stream without announcing it.
func TestServersThatCloseAfterStreamsFailNothing(t *testing.T) {
	w := newWorld(t)
	w.start(manner{silent: true}, "a", "b", "c")
	w.router.Set([]Service{public("a", "b", "c")})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 60 {
				var err error
				if i%2 == 0 {
					err = streamError(w.post(streamed), 8)
				} else {
					err = plainError(w.post(plain), 8)
				}
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	w.settled("chat")
	for _, f := range w.fakes {
		byConn := map[any]string{}
		for _, one := range f.requests() {
			before := byConn[one.remote]
			if strings.Contains(one.body, `"stream":true`) && before != "" || before == "stream" {
				t.Fatal("a stream shares its connection with another request")
			}
			if byConn[one.remote] = "plain"; strings.Contains(one.body, `"stream":true`) {
				byConn[one.remote] = "stream"
			}
		}
	}
}

func TestConnectionsOfPlainRequestsAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a")
		w.router.Set([]Service{public("a")})
		conns := func() int64 { return w.fakes["a"].conns.Load() }
		for range 5 {
			w.post(plain)
			time.Sleep(time.Second)
		}
		if conns() != 1 {
			t.Errorf("5 requests used %d connections", conns())
		}
		time.Sleep(2 * time.Second)
		w.post(plain)
		if conns() != 2 {
			t.Error("a connection is used again after 2 s")
		}
		w.fakes["a"].server.SetKeepAlivesEnabled(false) // closes what is idle
		synctest.Wait()
		if err := plainError(w.post(plain), 8); err != nil || conns() != 3 {
			t.Errorf("after the server closed an idle connection: %v, %d connections", err, conns())
		}
		w.start(manner{events: true}, "a")
		for range 3 {
			checkStream(t, w.post(plain), 8)
		}
		if conns() != 3 {
			t.Errorf("3 streams that were not asked for used %d connections", conns())
		}
	})
}

func TestAClientThatLeavesFreesTheReplica(t *testing.T) {
	for name, body := range map[string]string{"stream": streamed, "plain": plain} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.start(manner{first: time.Second, each: time.Hour}, "a")
				w.router.Set([]Service{public("a")})
				ctx, cancel := context.WithCancel(t.Context())
				go w.do(ctx, "POST", "/v1/chat/completions", strings.NewReader(body))
				time.Sleep(500 * time.Millisecond)
				if name == "stream" {
					time.Sleep(time.Minute)
				}
				if w.fakes["a"].running.Load() != 1 {
					t.Fatal("the request did not reach the replica")
				}
				cancel()
				synctest.Wait() // no time passes
				if running := w.fakes["a"].running.Load(); running != 0 {
					t.Errorf("%d requests run still", running)
				}
				w.settled("chat")
				if one := w.accounts(1)[0]; one.Outcome != OutcomeClientLeft {
					t.Errorf("the record is %+v", one)
				}
			})
		})
	}
}

func TestACutStaysACut(t *testing.T) {
	w := newWorld(t)
	w.start(manner{cutAfter: 3}, "a")
	w.router.Set([]Service{public("a")})
	got := w.post(streamed)
	if got.err == nil || strings.Contains(got.body, "DONE") || strings.Count(got.body, "data:") != 3 {
		t.Errorf("the stream is %v, %q", got.err, got.body)
	}
	w.settled("chat")
	if one := w.accounts(1)[0]; one.Outcome != OutcomeCut || one.Status != 200 || !one.Stream {
		t.Errorf("the record is %+v", one)
	}
}

func TestTimeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{hang: true}, "a")
		w.router.Set([]Service{public("a")})
		began := time.Now()
		if got := w.post(plain); got.code() != "504 timeout" || time.Since(began) != 10*time.Minute {
			t.Errorf("without an answer: %s after %s", got.code(), time.Since(began))
		}
		synctest.Wait()
		if w.fakes["a"].left.Load() != 1 {
			t.Error("the replica was not freed")
		}
		w.fakes["a"].behave(manner{each: 4 * time.Minute})
		began = time.Now()
		checkStream(t, w.post(streamed), 8)
		if took := time.Since(began); took != 32*time.Minute {
			t.Errorf("a slow stream took %s", took)
		}
		w.fakes["a"].behave(manner{each: time.Hour})
		began = time.Now()
		if got := w.post(streamed); got.err == nil || time.Since(began) != 5*time.Minute {
			t.Errorf("a silent stream: %v after %s", got.err, time.Since(began))
		}
		w.settled("chat")
		records := w.accounts(3)
		for i, want := range []Outcome{OutcomeFailed, OutcomeOK, OutcomeCut} {
			if records[i].Outcome != want {
				t.Errorf("outcome %d is %s, want %s", i, records[i].Outcome, want)
			}
		}
		s := public("a")
		s.Limits.Connect = time.Second
		w.router.Set([]Service{s})
		w.fakes["a"].listener = newPipes() // accepts nothing
		began = time.Now()
		if got := w.post(plain); got.code() != "503 unavailable" || time.Since(began) != 31*time.Second {
			t.Errorf("without a connection: %s after %s", got.code(), time.Since(began))
		}
		if one := w.accounts(4)[3]; one.Replica != "" || one.Revision != 7 {
			t.Errorf("the record is %+v", one)
		}
	})
}

func TestAnErrorOfTheReplicaIsPassedOn(t *testing.T) {
	w := newWorld(t)
	w.start(manner{status: 500}, "a")
	w.router.Set([]Service{public("a")})
	got := w.post(streamed)
	if got.status != 500 || got.body != `{"error":{"message":"made to fail"}}` {
		t.Errorf("the answer is %d %q", got.status, got.body)
	}
	if one := w.accounts(1)[0]; one.Outcome != OutcomeFailed || one.Status != 500 {
		t.Errorf("the record is %+v", one)
	}
}

// endless is a body of so many bytes, which begins with a model.
func endless(size int64) io.Reader {
	const begin, end = `{"model":"m","prompt":"`, `"}`
	return io.MultiReader(strings.NewReader(begin), io.LimitReader(letters{}, size-int64(len(begin)+len(end))),
		strings.NewReader(end))
}

type letters struct{}

func (letters) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", 32<<10)), nil }

func TestLongBodies(t *testing.T) {
	w := newWorld(t)
	w.start(manner{}, "a")
	w.router.Set([]Service{public("a")})
	post := func(path string, size int64, declared bool) reply {
		request, err := http.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1"+path, endless(size))
		if err != nil {
			t.Fatal(err)
		}
		if declared {
			request.ContentLength = size
		}
		answer, err := w.client.Do(request)
		if err != nil {
			return reply{err: err}
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return reply{answer.StatusCode, answer.Header, string(text), err}
	}
	const path = "/v1/completions"
	for _, size := range []int64{longestKept - 1, longestKept, longestKept + 1, 64 << 20} {
		for _, declared := range []bool{true, false} {
			if size == 64<<20 && !declared {
				continue // it takes a second, and differs in nothing else
			}
			got := post(path, size, declared)
			if err := plainError(got, 8); err != nil {
				t.Errorf("%d bytes, declared %v: %v", size, declared, err)
			}
			if got.header.Get("Connection") != "" {
				t.Errorf("%d bytes, declared %v: the connection is closed after the answer", size, declared)
			}
			requests := w.fakes["a"].requests()
			if got := int64(len(requests[len(requests)-1].body)); got != size {
				t.Errorf("the replica got %d bytes of %d", got, size)
			}
		}
	}
	for _, size := range []int64{65 << 20, 64<<20 + 1} {
		if got := post(path, size, size == 65<<20); got.code() != "413 too_large" {
			t.Errorf("%d bytes: %s, %v", size, got.code(), got.err)
		}
	}
	if got := post("/services/chat/echo/x", 64<<20, true); got.body != fmt.Sprintf("POST /echo/x %d", 64<<20) {
		t.Errorf("64 MiB to a service by name: %v %q", got.err, got.body)
	}
	w.settled("chat")
	for _, one := range w.accounts(10)[7:9] {
		if one.Outcome != OutcomeRefused || one.Status != 413 {
			t.Errorf("the record is %+v", one)
		}
	}
}

func TestABodyThatBreaksOff(t *testing.T) {
	w := newWorld(t)
	w.start(manner{}, "a")
	w.router.Set([]Service{public("a")})
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	done := make(chan reply)
	go func() { done <- w.do(ctx, "POST", "/services/chat/echo/x", reader) }()
	writer.Write(make([]byte, 3<<20))
	cancel()
	writer.CloseWithError(io.ErrUnexpectedEOF)
	<-done
	w.settled("chat")
	if one := w.accounts(1)[0]; one.Outcome != OutcomeClientLeft || one.BytesIn < 1<<20 {
		t.Errorf("the record is %+v", one)
	}
	if n := len(w.fakes["a"].requests()); n != 0 {
		t.Error("the replica took a broken body for a whole one")
	}
}

func TestAnAnswerBeforeTheEndOfTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a")
		w.router.Set([]Service{public("a")})
		near, far := net.Pipe()
		go w.router.ServeConn(t.Context(), far)
		fmt.Fprint(near, "POST /services/chat/early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"+
			"only the beginning")
		began := time.Now()
		answer, err := http.ReadResponse(bufio.NewReader(near), nil)
		if err != nil || answer.StatusCode != http.StatusConflict || !answer.Close {
			t.Errorf("the answer is %v, %v", answer, err)
		}
		w.accounts(1) // though the client neither sends more nor leaves
		if took := time.Since(began); took > time.Second {
			t.Errorf("it ended after %s", took)
		}
		near.Close()
	})
}

func TestHeadersOfAnswersHaveALimit(t *testing.T) {
	w := newWorld(t)
	w.start(manner{}, "a")
	w.router.Set([]Service{public("a")})
	if got := w.do(t.Context(), "GET", "/services/chat/verbose", nil); got.code() != "502 bad_gateway" {
		t.Errorf("100 KiB of headers: %s", got.code())
	}
}

func TestALimitEndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a")
		s := public("a")
		s.Limits.Silence = time.Second
		w.router.Set([]Service{s})
		for range 2 {
			if err := plainError(w.post(plain), 8); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			if got := w.post(`{"model":"none"}`).code(); got != "404 model_not_found" {
				t.Errorf("a minute later: %s", got)
			}
		}
		if n := w.conns.Load(); n != 1 {
			t.Errorf("%d connections carried these requests", n)
		}
	})
}
