package services

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"slipway/backend/serving"
	"slipway/backend/session"
	"slipway/backend/store"
)

func (s *Services) ListServices(context.Context) ([]session.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []session.Service{}
	for _, name := range slices.Sorted(maps.Keys(s.list)) {
		if one := s.list[name]; !one.Removed {
			list = append(list, s.describe(one))
		}
	}
	return list, nil
}

func (s *Services) DeployService(ctx context.Context, req session.DeployRequest) (session.Service, error) {
	if req.Owner == "" {
		req.Owner = s.config.Owner
	}
	req.Spec.Type, req.Spec.Name, req.Spec.Agent = session.Inference, "", ""
	wrong := req.ServiceWish.Validate()
	if e := session.ServiceNames.Check(req.Name); e != nil {
		wrong = append(wrong, *e)
	}
	faults, err := s.config.Sessions.CheckReplica(ctx, req.Owner, req.Spec)
	if err != nil {
		return session.Service{}, err
	}
	if wrong = append(wrong, faults...); len(wrong) > 0 {
		return session.Service{}, session.Invalid(wrong)
	}
	if len(req.Spec.Secrets) > 0 {
		return session.Service{}, session.Refused(session.CodeInvalid, session.FieldError{Field: "secrets",
			Kind: session.KindConflict, Message: "A service cannot have secrets yet.",
			Hint: "Put what it needs into a file in a folder that it mounts."})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Clock.Now().UTC()
	one, found := s.list[req.Name]
	switch {
	case found && (one.Owner != req.Owner || one.Removed):
		return session.Service{}, session.NewError(session.CodeNameTaken,
			fmt.Sprintf("There is a service named %s on this machine already.", req.Name), "Choose another name.")
	case !found && len(s.list) >= maxServices:
		return session.Service{}, session.NewError(session.CodeTooManySessions,
			fmt.Sprintf("This machine has %d services, the maximum.", maxServices), "Remove some of them.")
	case !found:
		id := serving.ID(strings.ToLower(rand.Text()[:12]))
		one = &service{state: session.ServiceDeploying, kept: kept{Name: req.Name, Owner: req.Owner, CreatedAt: now,
			Plan: serving.New(id, req.Name)}}
	}
	changed := one.kept
	changed.Wish, changed.ByAdmin = req.ServiceWish, req.ByAdmin
	if len(changed.Revisions) == 0 || !sameSpec(changed.Revisions[0].Spec, req.Spec) {
		number := 1
		if len(changed.Revisions) > 0 {
			number = changed.Revisions[0].Number + 1
		}
		changed.Revisions = append([]session.Revision{{Number: number, Spec: req.Spec, CreatedAt: now}},
			changed.Revisions[:min(len(changed.Revisions), keptRevisions-1)]...)
	}
	if number := changed.Revisions[0].Number; number > 1 {
		changed.Plan = changed.Plan.Update(number)
	}
	changed.startOrStop(now)
	return s.change(one, changed)
}

// sameSpec reports whether two specs ask for the same.
func sameSpec(a, b session.Spec) bool { return reflect.DeepEqual(a.WithDefaults(), b.WithDefaults()) }

// change stores what a service is changed to. The caller holds mu.
func (s *Services) change(one *service, to kept) (session.Service, error) {
	to, _ = change{before: one.kept, after: to, person: true, now: s.config.Clock.Now()}.told()
	err := s.config.Records.Update(func(tx *store.Tx) error { return tx.PutService(to.Name, to) })
	if err != nil {
		return session.Service{}, err
	}
	if !reflect.DeepEqual(one.Wish.Rules, to.Wish.Rules) {
		one.rules = nil // until the next plan
	}
	one.kept = to
	s.list[to.Name] = one
	s.config.Listeners.Open() // its address is part of what the caller gets
	s.route()
	s.planSoon()
	return s.describe(one), nil
}

// update changes a service that exists. prepare gets a copy of what is kept of it.
func (s *Services) update(name string, prepare func(*kept) error) (session.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.list[name]
	if one == nil || one.Removed {
		return session.Service{}, session.NoService(name)
	}
	changed := one.kept
	changed.Tokens = slices.Clone(changed.Tokens)
	if err := prepare(&changed); err != nil {
		return session.Service{}, err
	}
	return s.change(one, changed)
}

func (s *Services) ChangeService(_ context.Context,
	name string, change session.ServiceChange) (session.Service, error) {
	return s.update(name, func(k *kept) error {
		wish := &k.Wish
		set(&wish.Replicas, change.Replicas)
		set(&wish.Sleep, change.Sleep)
		set(&wish.Public, change.Public)
		set(&wish.Retry, change.Retry)
		set(&wish.MaySleep, change.MaySleep)
		set(&wish.Rules, change.Rules)
		if wrong := wish.Validate(); len(wrong) > 0 {
			return session.Invalid(wrong)
		}
		if change.Revision != 0 {
			if !slices.ContainsFunc(k.Revisions, func(r session.Revision) bool { return r.Number == change.Revision }) {
				return session.Refused(session.CodeInvalid, session.FieldError{Field: "revision",
					Kind: session.KindNotFound, Message: fmt.Sprintf("%s has no revision %d.", name, change.Revision),
					Hint: "The list of services shows its revisions."})
			}
			k.Plan = k.Plan.Update(change.Revision)
		}
		if change.TryAgain {
			k.Plan = k.Plan.TryAgain()
		}
		k.startOrStop(s.config.Clock.Now().UTC())
		return nil
	})
}

// startOrStop makes the plan follow the wish for replicas.
func (k *kept) startOrStop(now time.Time) {
	if k.Wish.Replicas == 0 {
		k.Plan = k.Plan.Stop()
	} else if k.Plan.Stopping {
		k.Plan = k.Plan.Start(now)
	}
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

// RemoveService implements [session.Services]. The service is forgotten once its replicas have ended.
func (s *Services) RemoveService(_ context.Context, name string) error {
	_, err := s.update(name, func(k *kept) error {
		k.Removed, k.Wish.Replicas, k.Tokens = true, 0, nil
		k.Plan = k.Plan.Stop()
		return nil
	})
	return err
}

func (s *Services) AddServiceToken(_ context.Context,
	name string, req session.TokenRequest) (session.NewToken, error) {
	if wrong := checkToken(req); len(wrong) > 0 {
		return session.NewToken{}, session.Invalid(wrong)
	}
	now := s.config.Clock.Now().UTC()
	made := session.NewToken{Text: "sk-" + strings.ToLower(rand.Text()+rand.Text()), ServiceToken: session.ServiceToken{
		ID: strings.ToLower(rand.Text()[:8]), Name: req.Name, CreatedAt: now, PerMinute: req.PerMinute,
		Concurrent: req.Concurrent}}
	if req.Lifetime > 0 {
		made.ExpiresAt = now.Add(time.Duration(req.Lifetime))
	}
	hash := sha256.Sum256([]byte(made.Text))
	_, err := s.update(name, func(k *kept) error {
		k.Tokens = slices.DeleteFunc(k.Tokens, func(t keptToken) bool {
			return !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(now)
		})
		if len(k.Tokens) >= maxTokens {
			return session.NewError(session.CodeTooManySessions,
				fmt.Sprintf("%s has %d tokens, the maximum.", name, maxTokens), "Revoke some of them.")
		}
		k.Tokens = append(k.Tokens, keptToken{made.ServiceToken, hex.EncodeToString(hash[:])})
		return nil
	})
	if err != nil {
		return session.NewToken{}, err
	}
	return made, nil
}

func checkToken(req session.TokenRequest) (wrong []session.FieldError) {
	if e := session.ValidateLabel(req.Name); e != nil || req.Name == "" {
		wrong = append(wrong, session.FieldError{Field: "name", Kind: session.KindInvalid,
			Message: "A token needs a name of at most 64 characters.", Hint: "Write who uses it, for example editor."})
	}
	const most = 1_000_000
	if req.Lifetime < 0 || req.PerMinute < 0 || req.PerMinute > most || req.Concurrent < 0 || req.Concurrent > most {
		wrong = append(wrong, session.FieldError{Field: "perMinute", Kind: session.KindRange,
			Message: "A limit of the token is negative or too large.", Hint: "Leave it empty for none."})
	}
	return wrong
}

func (s *Services) RevokeServiceToken(_ context.Context, name, token string) error {
	_, err := s.update(name, func(k *kept) error {
		k.Tokens = slices.DeleteFunc(k.Tokens, func(t keptToken) bool { return t.ID == token })
		return nil
	})
	return err
}

func (s *Services) DialService(ctx context.Context) (net.Conn, error) { return s.pipe.dial(ctx) }
