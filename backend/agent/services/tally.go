package services

import (
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/router"
	"slipway/backend/session"
)

// counts are the requests of a service since the agent started.
type counts struct {
	session.Requests
	first []time.Duration // of the last streams
	pace  pace
}

const keptFirst = 100

// firstWord is the time until the first word which so many percent of the last streams did not exceed, in milliseconds,
// rounded up; 0: there were none.
func (c counts) firstWord(percent int) int64 {
	sorted := slices.Sorted(slices.Values(c.first))
	if len(sorted) == 0 {
		return 0
	}
	at := sorted[min(len(sorted)*percent/100, len(sorted)-1)]
	return (at + time.Millisecond - 1).Milliseconds()
}

// pace counts the tokens that were generated in each of the last seconds. Those of a request count when it ends.
type pace [60]struct{ second, tokens int64 }

func (p *pace) add(now time.Time, tokens int64) {
	one := &p[now.Unix()%int64(len(p))]
	if one.second != now.Unix() {
		one.second, one.tokens = now.Unix(), 0
	}
	one.tokens += tokens
}

// mean is the mean of tokens per second in the last minute.
func (p pace) mean(now time.Time) float64 {
	var sum int64
	for _, one := range p {
		if now.Unix()-one.second < int64(len(p)) {
			sum += one.tokens
		}
	}
	return float64(sum) / float64(len(p))
}

// tally counts requests that have ended, and enters them in the accounts. It has its own mutex: an answer ends only
// after it is counted, and must not wait for a plan.
type tally struct {
	mu     sync.Mutex // guards everything below
	counts map[string]*counts
	tokens map[string]string // names of tokens, by service/ID
}

// follow takes over which services and tokens there are.
func (t *tally) follow(list map[string]*service) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.counts
	t.counts, t.tokens = map[string]*counts{}, map[string]string{}
	for name, one := range list {
		if t.counts[name] = before[name]; t.counts[name] == nil {
			t.counts[name] = &counts{}
		}
		for _, token := range one.Tokens {
			t.tokens[name+"/"+token.ID] = token.Name
		}
	}
}

// read returns the requests of a service.
func (t *tally) read(name string) counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts[name]
	if c == nil {
		return counts{}
	}
	return counts{c.Requests, slices.Clone(c.first), c.pace}
}

// add counts a request, and returns the name of its token, if that still exists.
func (t *tally) add(now time.Time, record router.Record, d session.Requests) (token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.counts[record.Service]; c != nil {
		c.Add(d)
		c.pace.add(now, d.Completion)
		if record.Stream && record.FirstWord > 0 {
			c.first = append(c.first[max(0, len(c.first)-keptFirst+1):], record.FirstWord)
		}
	}
	return t.tokens[record.Service+"/"+record.Token]
}

// account counts a request that has ended, unless it was refused before its service was found.
func (s *Services) account(record router.Record) {
	if record.Service == "" {
		return
	}
	d, now := countsOf(record), s.config.Clock.Now()
	token := s.tally.add(now, record, d)
	s.config.Accounts.Count(now, accounts.Asked{Service: record.Service, Owner: record.Owner,
		Revision: record.Revision, Token: record.Token}, token, d)
}

// countsOf is one request as counters.
func countsOf(record router.Record) (c session.Requests) {
	c.Prompt, c.Completion = int64(record.Prompt), int64(record.Completion)
	c.BytesIn, c.BytesOut = record.BytesIn, record.BytesOut
	switch record.Outcome {
	case router.OutcomeOK:
		c.Answered = 1
		c.Whole.Add(record.Whole)
	case router.OutcomeClientLeft:
		c.Left = 1
	case router.OutcomeCut:
		c.Cut = 1
	case router.OutcomeRefused:
		c.Refused = 1
	case router.OutcomeLimited:
		c.Limited = 1
	case router.OutcomeFailed:
		c.Failed = 1
	}
	if record.Stream && record.FirstWord > 0 {
		c.FirstWord.Add(record.FirstWord)
	}
	return c
}
