package scrape

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

	"slipway/backend/session"
)

const metric = "vllm:num_requests_waiting"

// replica is a server, whose answer may be changed.
type replica struct {
	*testing.T
	answer func(w io.Writer)
	asked  int
	refuse bool
	serves sync.WaitGroup
}

func (r *replica) dial(context.Context, session.ID, int) (net.Conn, error) {
	r.asked++
	if r.refuse {
		return nil, errors.New("refused")
	}
	ours, theirs := net.Pipe()
	r.serves.Go(func() {
		defer theirs.Close() //nolint:errcheck // a test
		req, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil || req.Method != http.MethodGet || req.URL.Path != "/metrics" {
			r.Errorf("asked %+v, %v", req, err)
			return
		}
		r.answer(theirs)
	})
	return ours, nil
}

// says answers with a status and a body.
func says(status int, body string) func(io.Writer) {
	return func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
}

// scraped runs a test in simulated time, with one replica.
func scraped(t *testing.T, test func(r *replica, s *Scraper, pass func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		r := &replica{T: t, answer: says(http.StatusOK, metric+" 7\n")}
		s := New(Config{Dial: r.dial})
		pass := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second / 2) {
				s.Scrape(t.Context(), []Target{{ID: "r1", Port: 8000, Metrics: []string{metric}}})
				synctest.Wait()
			}
		}
		test(r, s, pass)
		s.Wait()
		r.serves.Wait()
	})
}

func TestAServerIsAskedEveryFiveSeconds(t *testing.T) {
	scraped(t, func(r *replica, s *Scraper, pass func(time.Duration)) {
		pass(21 * time.Second)
		if got, known := s.Value("r1", metric); r.asked != 5 || got != 7 || !known {
			r.Errorf("asked %d times: %v, %v", r.asked, got, known)
		}
		for _, other := range []session.ID{"r1", "r2"} {
			if got, known := s.Value(other, "another"); known {
				r.Errorf("%s has %v", other, got)
			}
		}
		s.Scrape(r.Context(), []Target{{ID: "r1", Metrics: []string{"another"}}})
		synctest.Wait()
		if _, known := s.Value("r1", metric); known || r.asked != 6 {
			r.Errorf("another metric is not asked for at once: asked %d times", r.asked)
		}
		s.Scrape(r.Context(), nil)
		if len(s.servers) != 0 {
			r.Error("a server that is not wanted is remembered")
		}
	})
}

func TestAValueIsMissingWhileAServerFails(t *testing.T) {
	for name, fail := range map[string]func(r *replica){
		"refuses":           func(r *replica) { r.refuse = true },
		"hangs":             func(r *replica) { r.answer = func(io.Writer) { time.Sleep(time.Minute) } },
		"has no metrics":    func(r *replica) { r.answer = says(http.StatusNotFound, metric+" 7\n") },
		"lacks the metric":  func(r *replica) { r.answer = says(http.StatusOK, "another 7\n") },
		"has a page":        func(r *replica) { r.answer = says(http.StatusOK, "<html>\n"+metric+" 7\n") },
		"has an absurd one": func(r *replica) { r.answer = says(http.StatusOK, metric+" 1e300\n") },
		"breaks off": func(r *replica) {
			r.answer = func(w io.Writer) {
				_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"+metric+" 7\n")
			}
		},
		"speaks no HTTP":     func(r *replica) { r.answer = func(w io.Writer) { _, _ = io.WriteString(w, "hello\n") } },
		"answers for ever":   func(r *replica) { r.answer = endless("HTTP/1.1 200 OK\r\n\r\n", "a 1\n") },
		"has endless labels": func(r *replica) { r.answer = endless("HTTP/1.1 200 OK\r\n", "X: y\r\n") },
		"is slow": func(r *replica) {
			r.answer = func(w io.Writer) {
				_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n"+metric+" 7\n")
				for err == nil {
					time.Sleep(time.Second)
					_, err = io.WriteString(w, "a 1\n")
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			scraped(t, func(r *replica, s *Scraper, pass func(time.Duration)) {
				pass(time.Second)
				if _, known := s.Value("r1", metric); !known {
					r.Fatal("there is no value at first")
				}
				good := r.answer
				fail(r)
				pass(16 * time.Second)
				if got, known := s.Value("r1", metric); known {
					r.Errorf("it has %v", got)
				}
				r.answer, r.refuse = good, false
				pass(10 * time.Second)
				if got, known := s.Value("r1", metric); !known || got != 7 {
					r.Errorf("later it has %v, %v", got, known)
				}
			})
		})
	}
}

// endless answers with the same text until its connection is closed.
func endless(head, again string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, head)
		for err == nil {
			_, err = io.WriteString(w, strings.Repeat(again, 4096))
		}
	}
}

func TestAnOldValueStaysForAWhile(t *testing.T) {
	scraped(t, func(r *replica, s *Scraper, pass func(time.Duration)) {
		pass(time.Second / 2)
		r.refuse = true
		pass(14 * time.Second)
		if _, known := s.Value("r1", metric); !known {
			r.Error("it is missing after 14 s")
		}
	})
}
