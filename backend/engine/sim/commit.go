package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

const (
	// A container changes a little at its start and more for each minute, as people install things.
	changedFirst = 24 * gpu.MiB
	changedEach  = 16 * gpu.MiB
	changedMost  = 4 * gpu.GiB

	commitDelay = 800 * time.Millisecond
	commitRate  = 160 * gpu.MiB // bytes a second
)

func (s *containers) Changed(ctx context.Context, id string) (gpu.Bytes, error) {
	state, err := s.Inspect(ctx, id)
	if err != nil || state.StartedAt.IsZero() {
		return 0, err
	}
	end := s.config.Clock.Now()
	if !state.Running {
		end = state.FinishedAt
	}
	minutes := gpu.Bytes(max(end.Sub(state.StartedAt), 0) / time.Minute)
	return min(changedFirst+minutes*changedEach, changedMost), nil
}

func (s *containers) Commit(ctx context.Context, id string, c engine.Commit) (session.Image, error) {
	changed, err := s.Changed(ctx, id)
	if err != nil {
		return session.Image{}, err
	}
	s.mu.Lock()
	from := s.byID[id].Spec.Image
	s.mu.Unlock()
	base, _ := s.images.find(from)
	if err := s.pause(ctx, commitDelay+time.Duration(changed/commitRate)*time.Second); err != nil {
		return session.Image{}, err
	}
	if _, taken := s.images.find(c.Ref); taken {
		return session.Image{}, session.NewError(session.CodeImageExists,
			fmt.Sprintf("There is an image named %s already.", c.Ref), "Choose another name, or remove it.")
	}
	now := s.config.Clock.Now().UTC()
	origin := c.Origin
	made := session.Image{
		ID: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(c.Ref+now.String()))), Refs: []string{c.Ref},
		Size:      base.Size + changed,
		CreatedAt: now, Arch: arch(), Labels: origin.Labels(), Origin: &origin,
	}
	s.mu.Lock()
	s.images.keep(made)
	s.mu.Unlock()
	return made, s.save()
}
