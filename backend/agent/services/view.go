package services

import (
	"cmp"
	"slices"

	"slipway/backend/serving"
	"slipway/backend/session"
)

// describe returns a service as people see it. The caller holds mu.
func (s *Services) describe(one *service) session.Service {
	traffic, count := s.router.Traffic(one.Name), s.tally.read(one.Name)
	v := session.Service{Name: one.Name, Owner: one.Owner, Agent: s.config.Agent, ServiceWish: one.Wish,
		Revision: one.Plan.Wanted(),
		ServiceCondition: session.ServiceCondition{State: one.state, Said: one.why,
			Why: session.Reader{}.Read(one.why...)},
		Revisions: slices.Clone(one.Revisions),
		Addresses: s.config.Listeners.Addresses(), Events: slices.Clone(one.Events),
		Live: []session.Replica{}, Tokens: []session.ServiceToken{}, CreatedAt: one.CreatedAt,
		Traffic: session.ServiceTraffic{Waiting: traffic.Waiting, Last: s.shown(traffic.Last),
			Requests: count.Total(), Failed: count.Failed + count.Cut, Prompt: count.Prompt,
			Completion: count.Completion, FirstWordMs: count.firstWord(50), FirstWordP99Ms: count.firstWord(99),
			TokensPerSecond: count.pace.mean(s.config.Clock.Now())}}
	v.Scaling = session.ServiceScaling{Target: cmp.Or(one.Plan.Scaling.Target, one.Wish.Replicas),
		ChangedAt: one.Plan.Scaling.At, Rules: slices.Clone(one.rules)}
	if one.Plan.Stopping {
		v.Scaling.Target = 0
	}
	for _, t := range one.Tokens {
		v.Tokens = append(v.Tokens, t.ServiceToken)
	}
	for _, r := range s.replicasOf(one.Name) {
		if r.Phase == serving.Ended {
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
	return v
}
