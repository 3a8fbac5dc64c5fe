package services

import (
	"context"
	"slices"
	"time"

	"slipway/backend/agent/scrape"
	"slipway/backend/serving"
	"slipway/backend/session"
)

// replica is a session of a service, as long as the plan remembers it.
type replica struct {
	serving.Replica
	service string
	port    int
	grants  session.Grants
	why     *session.Wait // what its session waits for; nil: it does not wait, or why is unknown
	asking  bool          // a check is under way
}

// follow updates what is known of the members of a service from their sessions. The caller holds mu.
func (s *Services) follow(ctx context.Context, one *service) error {
	now := s.config.Clock.Now()
	for _, m := range one.Plan.Members {
		of, found, err := s.config.Records.ByKey(one.Owner, launchKey(one.Plan.ID, m.Attempt))
		if err != nil {
			return err
		}
		if !found {
			continue // it is launched again, under the same key
		}
		r := s.replicas[of.ID]
		if r == nil {
			r = &replica{service: one.Name, Replica: serving.Replica{ID: of.ID, Revision: m.Revision,
				Attempt: m.Attempt, Phase: serving.Waiting, Since: now}}
			if of.Spec.Serving != nil {
				r.port, r.Health = of.Spec.Serving.Port, of.Spec.Serving.Health
			}
			s.replicas[of.ID] = r
		}
		s.see(ctx, r, of, now)
		if !m.Drained.IsZero() && r.Phase != serving.Ended {
			r.Phase = serving.Draining
		}
	}
	return nil
}

// replicasOf are the replicas of a service, oldest first. The caller holds mu.
func (s *Services) replicasOf(service string) (all []*replica) {
	for _, r := range s.replicas {
		if r.service == service {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *replica) int { return a.Attempt - b.Attempt })
	return all
}

// see updates a replica from its session.
func (s *Services) see(ctx context.Context, r *replica, of session.Session, now time.Time) {
	r.Queued, r.Terminating, r.why = of.Status == session.Pending, of.Status == session.Terminating, nil
	if r.Queued { // why it waits is not stored
		if dressed, err := s.config.Sessions.Get(ctx, of.ID); err == nil && dressed.Wait != nil {
			r.why = dressed.Wait
		}
	}
	r.Memory, r.grants = 0, of.Grants
	for _, g := range of.Grants.GPUs {
		r.Memory += g.Memory
	}
	switch {
	case of.Status == session.Terminating:
		r.end(of, of.Stopping, now)
		if r.Phase == serving.Healthy { // it is out at once, not when a request is refused
			r.Replica = r.Judge(serving.Probe{Asked: now, Refused: true}, now)
		}
	case of.Status.Terminal() && r.Phase != serving.Ended:
		r.Phase, r.Since = serving.Ended, now
		r.end(of, of.Reason, now)
		brief, cancel := context.WithTimeout(ctx, planLimit)
		defer cancel()
		r.Log = s.config.LastLines(brief, of.ID)
	case of.Status == session.Running && r.Phase == serving.Waiting && of.StartedAt != nil:
		r.Replica = r.Run(*of.StartedAt, now)
	}
}

// end notes how the session of a replica ends or has ended.
func (r *replica) end(of session.Session, reason session.Reason, now time.Time) {
	r.End = &serving.End{At: now, Reason: reason, Said: session.Say("replicaEnded")}
	if of.TerminatedAt != nil {
		r.End.At = *of.TerminatedAt
	}
	if of.Error != nil {
		r.End.Said = saidBy(of.Error.Message, of.Error.Said)
	}
}

// saidBy is a message as a phrase: in other languages, too, if it brought phrases along.
func saidBy(message string, said []session.Phrase) session.Phrase {
	if len(said) == 0 {
		return session.Phrase{Text: message}
	}
	return session.Phrase{Text: " ", With: said}
}

// measure adds what the router saw of a replica.
func (r *replica) measure(outstanding int, moved time.Time) {
	r.Outstanding, r.Checks.Moved = outstanding, moved
}

// refused takes a replica out at once to which no connection came about.
func (s *Services) refused(id session.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.replicas[id]; r != nil {
		now := s.config.Clock.Now()
		r.Replica = r.Judge(serving.Probe{Asked: now, Refused: true}, now)
	}
	s.planSoon()
}

// check asks the replicas that are due whether they are healthy. The caller holds mu.
func (s *Services) check(ctx context.Context) {
	now := s.config.Clock.Now()
	for _, r := range s.replicas {
		if next := r.NextCheck(); r.asking || next.IsZero() || next.After(now) {
			continue
		}
		r.asking = true
		health, id, port := r.Health.WithDefaults(), r.ID, r.port
		s.checks.Go(func() {
			probe := s.probe(ctx, id, port, health)
			s.mu.Lock()
			defer s.mu.Unlock()
			if r.asking = false; ctx.Err() != nil {
				return
			}
			before := r.Phase
			r.Replica = r.Judge(probe, s.config.Clock.Now())
			if r.Phase != before {
				s.planSoon()
			}
		})
	}
}

// probe asks a replica once, over a connection of its own.
func (s *Services) probe(ctx context.Context, id session.ID, port int, health session.Health) serving.Probe {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(health.MaxWaitTime))
	defer cancel()
	asked := serving.Probe{Asked: s.config.Clock.Now()}
	conn, err := s.config.Dial(ctx, id, port)
	if err != nil {
		asked.Refused = ctx.Err() == nil
		return asked
	}
	asked.Status, _, _ = scrape.Get(ctx, conn, health.Path, mostAnswer)
	return asked
}

const (
	mostAnswer = 64 << 10 // bytes of the answer to a check that are read
	// planLimit limits what a plan asks others, because all requests wait for it.
	planLimit = 2 * time.Second
)
