package router

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestHeadersHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		near, far := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- w.router.ServeConn(t.Context(), far) }()
		fmt.Fprint(near, "GET /v1/models HTTP/1.1\r\nHo")
		began := time.Now()
		if _, err := io.ReadAll(near); err != nil || time.Since(began) != 10*time.Second {
			t.Errorf("the connection of a slow header ends after %s: %v", time.Since(began), err)
		}
		if err := <-done; err != nil {
			t.Errorf("ServeConn: %v", err)
		}
		got := w.do(t.Context(), "GET", "/v1/models", nil, "X-Long", strings.Repeat("x", 70<<10))
		if got.status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("70 KiB of headers: %d, %v", got.status, got.err)
		}
	})
}

func TestServeConnServesOneConnection(t *testing.T) {
	w := newWorld(t)
	w.start(manner{}, "a")
	w.router.Set([]Service{public("a")})
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.router.ServeConn(ctx, far) }()
	reader := bufio.NewReader(near)
	for range 2 {
		request, err := http.NewRequest("POST", "http://localhost/v1/completions", strings.NewReader(plain))
		if err != nil {
			t.Fatal(err)
		}
		if err := request.Write(near); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(reader, request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err := plainError(reply{answer.StatusCode, answer.Header, string(text), err}, 8); err != nil {
			t.Error(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ServeConn: %v", err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
}

func TestTheEndOfServeCutsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{each: time.Second}, "a")
		w.router.Set([]Service{public("a")})
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan int)
		go func() {
			w.router.ServeConn(ctx, far)
			w.mu.Lock()
			defer w.mu.Unlock()
			served <- len(w.records)
		}()
		request, err := http.NewRequest("POST", "http://localhost/v1/completions", strings.NewReader(streamed))
		if err != nil {
			t.Fatal(err)
		}
		go request.Write(near)
		time.AfterFunc(2500*time.Millisecond, cancel)
		text, _ := io.ReadAll(near)
		if n := strings.Count(string(text), "data:"); n != 3 || strings.HasSuffix(string(text), "0\r\n\r\n") {
			t.Errorf("the answer is %q", text)
		}
		if n := <-served; n != 1 {
			t.Errorf("%d requests were accounted for when ServeConn returned", n)
		}
		w.settled("chat")
	})
}

func TestAConnectionSwitchesProtocols(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a")
		w.router.Set([]Service{public("a")})
		near, far := net.Pipe()
		go w.router.ServeConn(t.Context(), far)
		fmt.Fprint(near, "GET /services/chat/shout HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\n"+
			"Upgrade: websocket\r\n\r\n")
		reader := bufio.NewReader(near)
		answer, err := http.ReadResponse(reader, nil)
		if err != nil || answer.StatusCode != 101 || answer.Header.Get("Upgrade") != "websocket" {
			t.Fatalf("the answer is %v, %v", answer, err)
		}
		for _, word := range []string{"one", "two"} {
			time.Sleep(time.Hour) // such a connection may be silent
			fmt.Fprintln(near, word)
			if line, err := reader.ReadString('\n'); line != strings.ToUpper(word)+"\n" {
				t.Errorf("the echo of %s is %q, %v", word, line, err)
			}
		}
		near.Close()
		synctest.Wait()
		w.settled("chat")
		got := w.do(t.Context(), "GET", "/services/chat/shout", nil, "Connection", "Upgrade", "Upgrade", "h2c")
		if got.code() != "502 bad_gateway" {
			t.Errorf("another protocol: %s", got.code())
		}
		if one := w.accounts(2)[0]; one.Outcome != OutcomeOK || one.Status != 101 || one.BytesOut != 8 {
			t.Errorf("the record is %+v", one)
		}
	})
}

func TestAThousandStreamsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start(manner{}, "a", "b", "c")
	w.router.Set([]Service{public("a", "b", "c")})
	hold := make(chan struct{})
	for _, f := range w.fakes {
		f.mu.Lock()
		f.hold = hold
		f.mu.Unlock()
	}
	var group sync.WaitGroup
	for range 1000 {
		group.Go(func() { checkStream(t, w.post(streamed), 8) })
	}
	running := func() (sum int64) {
		for _, f := range w.fakes {
			sum += f.running.Load()
		}
		return sum
	}
	until(t, "1,000 streams run", func() bool { return running() == 1000 })
	for id, load := range w.router.Traffic("chat").Replicas {
		if load.Outstanding < 330 || load.Outstanding > 336 { // one conversation: up to 1 more at its replica
			t.Errorf("%s has %d of 1,000 streams", id, load.Outstanding)
		}
	}
	close(hold)
	group.Wait()
	w.settled("chat")
	w.accounts(1000)
}

// Requests of all kinds at once, with replicas that die and return, and services that change.
func TestNothingStaysOutstanding(t *testing.T) {
	w := newWorld(t)
	ids := []string{"a", "b", "c"}
	w.start(manner{each: 100 * time.Microsecond}, "a", "b")
	w.start(manner{each: 100 * time.Microsecond, cutAfter: 4}, "c")
	s := public("a", "b", "c")
	s.RetryUnanswered = true
	w.router.Set([]Service{s})
	stop := make(chan struct{})
	var changes, group sync.WaitGroup
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			next := s
			next.Replicas = append([]Replica{}, s.Replicas...)
			next.Replicas[i%3].Ready = i%2 == 0
			if i%10 == 9 {
				w.mu.Lock()
				f := w.fakes["a"]
				w.mu.Unlock()
				f.die()
				w.start(manner{each: 100 * time.Microsecond}, "a")
			}
			w.router.Set([]Service{next})
		}
	})
	for i := range 300 {
		group.Go(func() {
			ctx := t.Context()
			if i%5 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(i%7)*time.Millisecond)
				defer cancel()
			}
			body := []string{plain, streamed}[i%2]
			w.do(ctx, "POST", "/v1/chat/completions", strings.NewReader(body), "X-Session-Id", ids[i%3])
		})
	}
	group.Wait()
	close(stop)
	changes.Wait()
	w.settled("chat")
	w.router.mu.Lock()
	defer w.router.mu.Unlock()
	for _, one := range w.router.table.services[0].replicas {
		if one.outstanding != 0 {
			t.Errorf("%s has %d requests", one.id, one.outstanding)
		}
	}
}
