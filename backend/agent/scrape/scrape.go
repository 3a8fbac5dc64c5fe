// Package scrape asks model servers for their metrics.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/prometheus"
	"slipway/backend/session"
)

const (
	every  = 5 * time.Second
	oldest = 15 * time.Second // age at which a value is no value any more
	limit  = 3 * time.Second  // for an answer
	most   = 1 << 20          // bytes of an answer
)

// Config says how servers are reached.
type Config struct {
	Clock *pace.Clock
	// Dial connects to a port of a replica.
	Dial func(ctx context.Context, id session.ID, port int) (net.Conn, error)
}

// Target is a server and the metrics that are wanted of it.
type Target struct {
	ID      session.ID
	Port    int
	Metrics []string
}

// Scraper keeps the metrics of servers. Its methods are safe for concurrent use.
type Scraper struct {
	config Config
	asks   sync.WaitGroup

	mu      sync.Mutex // guards the rest
	servers map[session.ID]*server
}

// server is what is known of one.
type server struct {
	metrics []string // that were asked for last
	next    time.Time
	asking  bool
	values  map[string]float64
	at      time.Time // of values
}

// New returns a scraper that has no values yet.
func New(config Config) *Scraper { return &Scraper{config: config, servers: map[session.ID]*server{}} }

// Scrape asks those targets that are due, without waiting for their answers, and forgets all other servers. It is
// called again and again, with all targets.
func (s *Scraper) Scrape(ctx context.Context, targets []Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, servers := s.config.Clock.Now(), make(map[session.ID]*server, len(targets))
	for _, t := range targets {
		one := s.servers[t.ID]
		if one == nil {
			one = &server{}
		}
		servers[t.ID] = one
		if one.asking || now.Before(one.next) && slices.Equal(one.metrics, t.Metrics) {
			continue
		}
		one.asking, one.next, one.metrics = true, now.Add(every), t.Metrics
		s.asks.Go(func() {
			values, err := s.ask(ctx, t)
			s.mu.Lock()
			defer s.mu.Unlock()
			if one.asking = false; err == nil {
				one.values, one.at = values, now
			}
		})
	}
	s.servers = servers
}

// Wait waits for the answers of those that are asked.
func (s *Scraper) Wait() { s.asks.Wait() }

// Value returns the last value of a metric of a server. It is missing if it is too old.
func (s *Scraper) Value(id session.ID, metric string) (value float64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.servers[id]
	if one == nil || s.config.Clock.Since(one.at) > oldest {
		return 0, false
	}
	value, known = one.values[metric]
	return value, known
}

func (s *Scraper) ask(ctx context.Context, t Target) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := s.config.Dial(ctx, t.ID, t.Port)
	if err != nil {
		return nil, err
	}
	status, body, err := Get(ctx, conn, "/metrics", most+1)
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("the status is %d", status)
	case len(body) > most:
		return nil, errors.New("the answer is too long")
	}
	values, err := prometheus.Read(string(body), t.Metrics)
	for name, value := range values {
		if value > session.MaxRuleValue || value < -session.MaxRuleValue {
			delete(values, name)
		}
	}
	return values, err
}

// Get asks a server once over a connection, which it closes. It returns at most most bytes of the body, and a status of
// 0 if there was no answer.
func Get(ctx context.Context, conn net.Conn, path string, most int64) (status int, body []byte, err error) {
	defer conn.Close() //nolint:errcheck // nothing is to be written any more
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err = io.ReadAll(io.LimitReader(answer.Body, most))
	return answer.StatusCode, body, err
}
