package sim

import (
	"context"
	"fmt"
	"maps"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// networks are the private networks of the machine. A simulated network is a
// name: no simulated container reaches another at all.
type networks struct {
	*machine
	labels map[string]map[string]string // by name; guarded by mu
	busy   func(name string) bool       // whether a container runs in it; called with mu held
}

func (s *networks) CreateNetwork(ctx context.Context, n engine.Network) error {
	name, labels := n.Name, n.Labels
	if err := s.check(ctx); err != nil {
		return err
	}
	if name == "" || labels[engine.LabelInstance] == "" {
		return &session.Error{Code: session.CodeEngineInvalid, Message: "A network needs a name and the label " +
			engine.LabelInstance + "."}
	}
	s.mu.Lock()
	there, taken := s.labels[name]
	if !taken {
		s.labels[name] = maps.Clone(labels)
	}
	s.mu.Unlock()
	switch {
	case !taken:
		return s.save()
	case maps.Equal(there, labels):
		return nil
	}
	return session.NewError(session.CodeEngineConflict, fmt.Sprintf("Another network is named %s.", name),
		"End the session that has it, or launch again.")
}

func (s *networks) RemoveNetwork(ctx context.Context, name string) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	labels, there := s.labels[name]
	there = there && (s.config.Instance == "" || labels[engine.LabelInstance] == s.config.Instance)
	busy := s.busy(name)
	if there && !busy {
		delete(s.labels, name)
	}
	s.mu.Unlock()
	switch {
	case !there:
		return nil
	case busy:
		return session.NewError(session.CodeEngineConflict, fmt.Sprintf("Containers still use the network %s.", name),
			"Remove them first.")
	}
	return s.save()
}

// has reports whether a network is there, as the empty name always is.
func (s *networks) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.labels[name]
	return ok || name == ""
}
