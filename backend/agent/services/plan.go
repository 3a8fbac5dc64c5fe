package services

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/router"
	"slipway/backend/serving"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// planEvery is how often services are planned without news.
const planEvery = 500 * time.Millisecond

func (s *Services) planSoon() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run serves and plans until ctx ends.
func (s *Services) Run(ctx context.Context) {
	s.serve(ctx, s.pipe)
	for ctx.Err() == nil {
		s.plan(ctx)
		pause := time.Hour // nothing is to be planned on a machine without services
		if s.any() {
			s.config.Listeners.Open()
			pause = planEvery
		}
		s.serve(ctx, s.config.Listeners.Take()...)
		host.Wait(ctx, s.config.Clock.Often(pause), s.wake)
	}
	_ = s.pipe.Close()
	s.checks.Wait()
	s.scraper.Wait()
}

// serve lets clients in until ctx ends, and closes the listeners then.
func (s *Services) serve(ctx context.Context, listeners ...net.Listener) {
	for _, listener := range listeners {
		s.checks.Go(func() {
			if err := s.router.Serve(ctx, listener); err != nil && ctx.Err() == nil {
				s.config.Log.Error("services are not reached", "at", listener.Addr(), "err", err)
			}
		})
	}
}

// any reports whether there is a service.
func (s *Services) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list) > 0
}

// launchKey is the idempotency key of a launch, by which its session is found again.
func launchKey(id serving.ID, attempt int) string { return fmt.Sprintf("service/%s/%d", id, attempt) }

func replicaName(service string, attempt int) string { return service + "-" + strconv.Itoa(attempt) }

// plan decides what happens next, stores it and carries it out.
func (s *Services) plan(ctx context.Context) {
	s.mu.Lock()
	names, snapshot, err := s.snapshot(ctx)
	if err != nil {
		s.mu.Unlock()
		s.config.Log.Warn("services cannot be planned", "err", err)
		return
	}
	decision := serving.Plan(snapshot, s.config.Clock.Now())
	for _, refused := range decision.Refused {
		s.config.Log.Error("the plan of services was wrong", "action", refused)
	}
	if err := s.store(names, decision); err != nil {
		s.mu.Unlock()
		s.config.Log.Warn("services cannot be stored", "err", err)
		return
	}
	for _, d := range decision.Drains {
		if r := s.replicas[d.Replica]; r != nil && r.Phase != serving.Ended {
			r.Phase = serving.Draining
		}
	}
	launches := s.launches(decision)
	s.forget()
	s.route()
	s.check(ctx)
	s.scrape(ctx)
	s.mu.Unlock()
	for _, t := range decision.Terminations {
		if _, err := s.config.Sessions.Terminate(ctx, t.Replica, false); err != nil {
			s.config.Log.Warn("a replica does not end", "session", t.Replica, "err", err)
		}
	}
	for _, req := range launches {
		if _, err := s.config.Sessions.LaunchReplica(ctx, req); err != nil {
			s.launchFailed(req, err)
		}
	}
}

// snapshot describes all services and their replicas. The caller holds mu.
func (s *Services) snapshot(ctx context.Context) (names []string, snapshot serving.Snapshot, err error) {
	for name, one := range s.list {
		if err := s.follow(ctx, one); err != nil {
			return nil, snapshot, err
		}
		traffic := s.router.Traffic(name)
		described := serving.Service{Record: one.Plan, Settings: one.settings(), Room: true,
			Traffic: serving.Traffic{Waiting: traffic.Waiting, Last: s.shown(traffic.Last),
				RPS: new(float64(traffic.Last30) / 30), Measured: s.measured(one)}}
		for id, load := range traffic.Replicas {
			if r := s.replicas[id]; r != nil {
				r.measure(load.Outstanding, s.shown(load.LastByte))
			}
		}
		for _, r := range s.replicasOf(name) {
			described.Replicas = append(described.Replicas, r.Replica)
		}
		s.lookForRoom(ctx, one, &described)
		names, snapshot.Services = append(names, name), append(snapshot.Services, described)
	}
	return names, snapshot, nil
}

// lookForRoom finds whether one more replica could start now, where the plan depends on it.
func (s *Services) lookForRoom(ctx context.Context, one *service, described *serving.Service) {
	if i := slices.IndexFunc(described.Replicas, func(r serving.Replica) bool { return r.Queued }); i >= 0 {
		described.Room = s.replicas[described.Replicas[i].ID].why == nil
	} else if described.Updating > 0 || described.Sleeping.Asleep && described.Traffic.Waiting > 0 {
		brief, cancel := context.WithTimeout(ctx, planLimit)
		defer cancel()
		preview, err := s.config.Sessions.Preview(brief, one.Owner, one.spec(one.Plan.Wanted()), 1)
		described.Room = err == nil && preview.Wait == nil
	}
	if !described.Room {
		described.Lacks = s.need(one.spec(one.Plan.Wanted()).Accelerator)
	}
}

// need is the device memory that a request takes, as far as it is known before devices are allocated.
func (s *Services) need(request gpu.Request) gpu.Bytes {
	largest := s.config.DeviceMemory()
	switch {
	case request.Memory > 0:
		return request.Memory
	case request.Devices > 0:
		return gpu.Bytes(request.Devices) * largest
	case request.Shares > 0:
		return largest * gpu.Bytes(request.Shares) / gpu.Bytes(gpu.WholeDevice)
	case request.Profile != "":
		return 1 // an instance, whose size only the driver knows
	}
	return 0
}

// settings are what the plan needs of the wish of a service.
func (k kept) settings() serving.Settings {
	return serving.Settings{Replicas: max(1, k.Wish.Replicas),
		Sleep: serving.Sleep{After: k.Wish.Sleep, May: k.Wish.MaySleep}, Rules: k.Wish.Rules}
}

func (k kept) spec(revision int) session.Spec { return session.SpecOf(k.Revisions, revision) }

// store stores the records that changed, and drops services that are over. The caller holds mu.
func (s *Services) store(names []string, decision serving.Decision) error {
	changed := map[string]kept{}
	for i, outcome := range decision.Services {
		one := s.list[names[i]]
		one.state, one.why, one.rules = session.ServiceState(outcome.State), outcome.Said, outcome.Rules
		to := one.kept
		to.Plan = outcome.Record
		to, happened := change{before: one.kept, after: to, replicas: s.replicasOf(names[i]), state: one.state,
			why: one.why, now: s.config.Clock.Now()}.told()
		if outcome.Changed || happened {
			changed[names[i]] = to
		}
	}
	over := slices.DeleteFunc(names, func(name string) bool {
		one := s.list[name]
		return !one.Removed || one.state != session.ServiceStopped
	})
	if len(changed) == 0 && len(over) == 0 {
		return nil
	}
	err := s.config.Records.Update(func(tx *store.Tx) error {
		for name, to := range changed {
			if err := tx.PutService(name, to); err != nil {
				return err
			}
		}
		for _, name := range over {
			if err := tx.DropService(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, to := range changed {
		s.list[name].kept = to
	}
	for _, name := range over {
		delete(s.list, name)
	}
	return nil
}

// launches are the requests for the launches of a plan. The caller holds mu.
func (s *Services) launches(decision serving.Decision) (requests []session.LaunchRequest) {
	for _, l := range decision.Launches {
		for _, one := range s.list {
			if one.Plan.ID != l.Service {
				continue
			}
			spec := one.spec(l.Revision)
			serves := *spec.Serving
			serves.Service, serves.Revision = one.Name, l.Revision
			spec.Serving, spec.Name = &serves, replicaName(one.Name, l.Attempt)
			requests = append(requests, session.LaunchRequest{Key: launchKey(one.Plan.ID, l.Attempt), Owner: one.Owner,
				Spec: spec, ByAdmin: one.ByAdmin})
		}
	}
	return requests
}

// launchFailed notes a launch that is refused, which then counts as a replica that has ended.
func (s *Services) launchFailed(req session.LaunchRequest, err error) {
	s.config.Log.Warn("a replica cannot be launched", "service", req.Spec.Serving.Service, "err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.list[req.Spec.Serving.Service]
	if one == nil {
		return
	}
	for _, m := range one.Plan.Members {
		if launchKey(one.Plan.ID, m.Attempt) == req.Key {
			now, id := s.config.Clock.Now(), session.ID(req.Key)
			failure := session.AsError(err, session.CodeServerFailed)
			s.replicas[id] = &replica{service: one.Name, Replica: serving.Replica{ID: id, Revision: m.Revision,
				Attempt: m.Attempt, Phase: serving.Ended, Since: now, End: &serving.End{At: now,
					Said: saidBy(failure.Message, failure.Said)}}}
		}
	}
}

// forget drops replicas that no plan remembers. The caller holds mu.
func (s *Services) forget() {
	for id, r := range s.replicas {
		one := s.list[r.service]
		if one == nil || !slices.ContainsFunc(one.Plan.Members,
			func(m serving.Member) bool { return m.Attempt == r.Attempt }) {
			delete(s.replicas, id)
		}
	}
}

// route tells the router where to send requests, and the tally whose they are. The caller holds mu.
func (s *Services) route() {
	var table []router.Service
	for name, one := range s.list {
		asleep := one.Plan.Sleeping.Asleep || one.state == session.ServiceDeploying && one.Wish.Sleep > 0
		// One that was removed answers what it was asked, and takes no other request.
		to := router.Service{Name: name, Owner: one.Owner, Revision: one.Plan.Revision,
			Public: one.Wish.Public && !one.Removed, Asleep: asleep && !one.Removed,
			IncludeUsage: true, RetryUnanswered: one.Wish.Retry, Tokens: s.tokens(one)}
		if serves := one.spec(one.Plan.Revision).Serving; serves != nil {
			to.Models = serves.Models
		}
		for _, r := range s.replicas {
			if r.service == name && r.Phase != serving.Ended {
				to.Replicas = append(to.Replicas, router.Replica{ID: r.ID, Revision: r.Revision, Port: r.port,
					Ready: r.Phase == serving.Healthy})
			}
		}
		table = append(table, to)
	}
	s.tally.follow(s.list)
	s.router.Set(table)
}

// shown is a moment of the router, which goes by the wall clock, on the clock of the machine.
func (s *Services) shown(real time.Time) time.Time {
	if real.IsZero() {
		return real
	}
	return s.config.Clock.At(real)
}

// tokens are those of a service, as the router knows them.
func (s *Services) tokens(one *service) []router.Token {
	tokens := make([]router.Token, 0, len(one.Tokens))
	for _, t := range one.Tokens {
		token := router.Token{ID: t.ID, Rate: float64(t.PerMinute), Concurrent: t.Concurrent}
		if !t.ExpiresAt.IsZero() {
			token.Expires = time.Now().Add(s.config.Clock.Real(s.config.Clock.Until(t.ExpiresAt)))
		}
		if n, err := hex.Decode(token.Hash[:], []byte(t.Hash)); err == nil && n == len(token.Hash) {
			tokens = append(tokens, token)
		}
	}
	return tokens
}
