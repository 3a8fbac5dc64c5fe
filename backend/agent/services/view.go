package services

import (
	"maps"
	"slices"
	"time"

	"slipway/backend/router"
	"slipway/backend/serving"
	"slipway/backend/session"
)

// counts are the requests of a service since the agent started.
type counts struct {
	requests, failed, prompt, completion int64
	first                                []time.Duration // of the last streams
}

const keptFirst = 100

// account counts a request that has ended.
func (s *Services) account(record router.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.list[record.Service]
	if one == nil || record.Outcome == router.OutcomeRefused {
		return
	}
	c := &one.count
	c.requests++
	if record.Outcome == router.OutcomeFailed || record.Outcome == router.OutcomeCut {
		c.failed++
	}
	c.prompt += int64(record.Prompt)
	c.completion += int64(record.Completion)
	if record.Stream && record.FirstWord > 0 {
		c.first = append(c.first[max(0, len(c.first)-keptFirst+1):], record.FirstWord)
	}
}

// describe returns a service as people see it. The caller holds mu.
func (s *Services) describe(one *service) session.Service {
	traffic := s.router.Traffic(one.Name)
	v := session.Service{Name: one.Name, Owner: one.Owner, Agent: s.config.Agent, ServiceWish: one.Wish,
		Revision: one.Plan.Wanted(), State: one.state, Why: session.Reader{}.Read(one.why...),
		Said: one.why, Revisions: slices.Clone(one.Revisions),
		Live: []session.Replica{}, Tokens: []session.ServiceToken{}, CreatedAt: one.CreatedAt,
		Traffic: session.ServiceTraffic{Waiting: traffic.Waiting, Last: s.shown(traffic.Last),
			Requests: one.count.requests, Failed: one.count.failed, Prompt: one.count.prompt,
			Completion: one.count.completion}}
	for _, t := range one.Tokens {
		v.Tokens = append(v.Tokens, t.ServiceToken)
	}
	oldestFirst := slices.SortedFunc(maps.Values(s.replicas), func(a, b *replica) int { return a.Attempt - b.Attempt })
	for _, r := range oldestFirst {
		if r.service != one.Name || r.Phase == serving.Ended {
			continue
		}
		load := traffic.Replicas[r.ID]
		v.Traffic.Outstanding += load.Outstanding
		live := session.Replica{Session: r.ID, Revision: r.Revision, State: session.ReplicaState(r.Phase),
			Since: r.Since, Outstanding: load.Outstanding}
		if r.why != nil {
			live.Why, live.Said = r.why.Message, r.why.Said
		}
		v.Live = append(v.Live, live)
	}
	if sorted := slices.Sorted(slices.Values(one.count.first)); len(sorted) > 0 {
		// Rounded up: 0 says that it is unknown.
		v.Traffic.FirstWordMs = (sorted[len(sorted)/2] + time.Millisecond - 1).Milliseconds()
	}
	return v
}
