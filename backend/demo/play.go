package demo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"slipway/backend/session"
)

// Launcher takes launches; an agent is one.
type Launcher interface {
	Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error)
}

// Play launches what a story has, one after the other. Each has a key, so that nothing is launched again in a
// demonstration that was kept.
func Play(ctx context.Context, on Launcher, acts []Act) error {
	for i, act := range acts {
		if err := act.launch(ctx, on, fmt.Sprintf("%s%d-%s", keyPrefix, i, act.Spec.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (a Act) launch(ctx context.Context, on Launcher, key string) error {
	if _, err := on.Launch(ctx, a.request(key)); err != nil {
		return fmt.Errorf("launch %s: %w", a.Spec.Name, err)
	}
	return nil
}

func (a Act) request(key string) session.LaunchRequest {
	return session.LaunchRequest{Key: key, Owner: cmp.Or(a.Owner, Person), Spec: a.Spec}
}

// keyPrefix begins the keys of launches that a story makes.
const keyPrefix = "demo-"

// NewID makes the ids of sessions on the machine: what a story launches has the same one in every demonstration of a
// seed.
func (m Machine) NewID(req session.LaunchRequest) session.ID {
	if !strings.HasPrefix(req.Key, keyPrefix) {
		return session.NewID()
	}
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s", m.Seed, m.Name, req.Owner, req.Key))
	id := make([]byte, 12)
	for i := range id {
		id[i] = letters[sum[i]%32]
	}
	if id[0] < 'a' {
		id[0] = 'a' + sum[12]%26
	}
	return session.ID(id)
}
