package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// down is the service without ready replicas.
func down(s Service) Service {
	s.Replicas = nil
	return s
}

func TestABurstWaitsForTheFirstReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a", "b")
		w.router.Set([]Service{down(public())})
		results := make(chan reply, 300)
		for range 300 {
			go func() { results <- w.post(plain) }()
		}
		synctest.Wait()
		if got := w.router.Traffic("chat").Waiting; got != 256 || len(results) != 44 || len(w.wakes) != 256 {
			t.Errorf("%d requests wait, %d were refused, %d woke the service", got, len(results), len(w.wakes))
		}
		for range 44 {
			if got := <-results; got.code() != "503 unavailable" || got.header.Get("Retry-After") != "5" {
				t.Errorf("a request too many: %s, Retry-After %q", got.code(), got.header.Get("Retry-After"))
			}
		}
		w.router.Set([]Service{public("a", "b")})
		for range 256 {
			if err := plainError(<-results, 8); err != nil {
				t.Error(err)
			}
		}
		if a, b := len(w.fakes["a"].requests()), len(w.fakes["b"].requests()); a != 128 || b != 128 {
			t.Errorf("the replicas got %d and %d requests", a, b)
		}
		w.settled("chat")
	})
}

func TestRequestsThatWaitKeepTheirOrder(t *testing.T) {
	s := &service{}
	for range 4 {
		s.waiting = append(s.waiting, &waiter{done: make(chan struct{})})
	}
	waiting := slices.Clone(s.waiting)
	s.replace(public("a", "b"), &sticky{})
	for i, one := range waiting {
		<-one.done
		if want := public("a", "b").Replicas[i%2].ID; one.replica.id != want {
			t.Errorf("request %d goes to %s, want %s", i, one.replica.id, want)
		}
	}
	if len(s.waiting) != 0 {
		t.Errorf("%d requests wait still", len(s.waiting))
	}
}

func TestAPlaceIsGivenBackIfTheClientLeftMeanwhile(t *testing.T) {
	r := New(Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kept := 0
	for range 100 { // whether the client or the place is noticed first is left to chance
		one := &replica{outstanding: 1}
		w := &waiter{done: make(chan struct{}), timer: time.NewTimer(time.Hour), replica: one}
		close(w.done)
		if got, p := r.wait(ctx, &call{service: &service{}}, w); (got != nil) != (p == nil) {
			t.Fatalf("the wait ends with %v and %v", got, p)
		} else if got != nil {
			kept++
			r.release(got)
		}
		if one.outstanding != 0 {
			t.Fatalf("%d places are left", one.outstanding)
		}
	}
	if kept == 0 || kept == 100 {
		t.Errorf("%d of 100 were kept", kept)
	}
}

func TestAWaitEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		asleep bool
		after  time.Duration
	}{
		{"after 30 s", false, 30 * time.Second},
		{"after 10 min while the service wakes", true, 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := down(public())
				s.Asleep = c.asleep
				w.router.Set([]Service{s})
				began := time.Now()
				got := w.post(plain)
				if got.code() != "503 unavailable" || got.header.Get("Retry-After") == "" {
					t.Errorf("the answer is %s", got.code())
				}
				if waited := time.Since(began); waited != c.after {
					t.Errorf("it waited %s", waited)
				}
				if one := w.accounts(1)[0]; one.Outcome != OutcomeFailed || one.Status != 503 || one.Revision != 7 {
					t.Errorf("the record is %+v", one)
				}
			})
		})
	}
	t.Run("30 s after it stopped to wake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := down(public())
			s.Asleep = true
			w.router.Set([]Service{s})
			began := time.Now()
			time.AfterFunc(time.Minute, func() { w.router.Set([]Service{down(public())}) })
			if got := w.post(plain); got.code() != "503 unavailable" || time.Since(began) != 90*time.Second {
				t.Errorf("the answer is %s after %s", got.code(), time.Since(began))
			}
		})
	})
	t.Run("when the service or the token is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := down(public())
			s.Public, s.Tokens = false, []Token{token("t", "secret")}
			w.router.Set([]Service{s})
			results := make(chan reply, 1)
			go func() { results <- w.post(plain, "X-Api-Key", "secret") }()
			synctest.Wait()
			s.Tokens = nil
			w.router.Set([]Service{s})
			if got := (<-results).code(); got != "401 invalid_api_key" {
				t.Errorf("with a revoked token: %s", got)
			}
			w.router.Set([]Service{down(public())})
			go func() { results <- w.post(plain) }()
			synctest.Wait()
			w.router.Set(nil)
			if got := (<-results).code(); got != "404 not_found" {
				t.Errorf("without the service: %s", got)
			}
		})
	})
	t.Run("when the client leaves", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.router.Set([]Service{down(public())})
			ctx, cancel := context.WithCancel(t.Context())
			go w.do(ctx, "POST", "/v1/chat/completions", strings.NewReader(plain))
			synctest.Wait()
			cancel()
			synctest.Wait()
			if got := w.router.Traffic("chat"); got.Waiting != 0 || got.IdleSince.IsZero() {
				t.Errorf("the traffic is %+v", got)
			}
			if one := w.accounts(1)[0]; one.Outcome != OutcomeClientLeft || one.Status != 0 {
				t.Errorf("the record is %+v", one)
			}
		})
	})
}

func TestAClientOfAStreamSeesThatItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a")
		w.router.Set([]Service{down(public())})
		time.AfterFunc(25*time.Second, func() { w.router.Set([]Service{public("a")}) })
		got := w.post(streamed)
		words, ok := strings.CutPrefix(got.body, ": waiting\n\n: waiting\n\n")
		if got.body = words; !ok || got.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("the answer begins with %.40q", words)
		}
		checkStream(t, got, 8)
		brief := down(public())
		brief.Limits.Hold = 25 * time.Second
		w.router.Set([]Service{brief})
		got = w.post(streamed)
		event, ok := strings.CutPrefix(got.body, ": waiting\n\n: waiting\n\ndata: ")
		if got.status != 200 || !ok || got.err != nil || !strings.HasSuffix(event, "\n\n") ||
			!strings.HasPrefix(event, `{"error":{"message":"No replica`) {
			t.Errorf("the failure is %d, %v, %q", got.status, got.err, got.body)
		}
		w.fakes["a"].behave(manner{status: 500})
		time.AfterFunc(15*time.Second, func() { w.router.Set([]Service{public("a")}) })
		if got := w.post(streamed); !strings.HasPrefix(got.body, ": waiting\n\ndata: {\"error\":") {
			t.Errorf("an error of the replica is %q", got.body)
		}
		w.fakes["a"].behave(manner{cutAfter: 2})
		w.router.Set([]Service{down(public())})
		time.AfterFunc(15*time.Second, func() { w.router.Set([]Service{public("a")}) })
		if got := w.post(streamed); got.err == nil || strings.Contains(got.body, "error") {
			t.Errorf("a cut after waiting is %v, %q", got.err, got.body)
		}
		records := w.accounts(4)
		for i, want := range []Outcome{OutcomeOK, OutcomeFailed, OutcomeFailed, OutcomeCut} {
			if records[i].Outcome != want {
				t.Errorf("outcome %d is %s, want %s", i, records[i].Outcome, want)
			}
		}
	})
}

func TestARefusedReplicaIsOutUntilTheNextSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start(manner{}, "a", "b")
		w.router.Set([]Service{public("a", "b")})
		w.fakes["a"].die()
		for i := range 6 {
			if err := plainError(w.post(plain), 8); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
		if fmt.Sprint(w.refused) != "[a]" {
			t.Errorf("reported as refused: %v", w.refused)
		}
		w.fakes["b"].die()
		results := make(chan reply, 1)
		go func() { results <- w.post(streamed) }()
		synctest.Wait()
		if got := w.router.Traffic("chat").Waiting; got != 1 || fmt.Sprint(w.refused) != "[a b]" {
			t.Errorf("%d requests wait, reported as refused: %v", got, w.refused)
		}
		w.start(manner{}, "a")
		w.router.Set([]Service{public("a")})
		checkStream(t, <-results, 8)
		w.settled("chat")
	})
}
