package sim

import (
	"context"
	"fmt"
	"maps"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// networks are the private networks of the machine. They are only names: simulated containers never reach each other.
type networks struct {
	*machine
	here map[string]engine.Network // by name; guarded by mu
	busy func(name string) bool    // whether a container runs in it; called with mu held
}

func (s *networks) CreateNetwork(ctx context.Context, n engine.Network) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	if n.Name == "" || n.Labels[engine.LabelInstance] == "" {
		return session.NewError(session.CodeEngineInvalid,
			"A network needs a name and the label "+engine.LabelInstance+".", "")
	}
	s.mu.Lock()
	there, taken := s.here[n.Name]
	if !taken {
		s.here[n.Name] = engine.Network{Name: n.Name, Labels: maps.Clone(n.Labels), Apart: n.Apart}
	}
	s.mu.Unlock()
	switch {
	case !taken:
		return s.save()
	case maps.Equal(there.Labels, n.Labels):
		return nil
	}
	return session.NewError(session.CodeEngineConflict, fmt.Sprintf("Another network is named %s.", n.Name),
		"End the session that has it, or launch again.")
}

func (s *networks) RemoveNetwork(ctx context.Context, name string) error {
	removed, err := locked(ctx, s.machine, func() (bool, error) {
		n, there := s.here[name]
		switch {
		case !there || s.config.Instance != "" && n.Labels[engine.LabelInstance] != s.config.Instance:
			return false, nil
		case s.busy(name):
			return false, session.NewError(session.CodeEngineConflict,
				fmt.Sprintf("Containers still use the network %s.", name), "Remove them first.")
		}
		delete(s.here, name)
		return true, nil
	})
	if !removed {
		return err
	}
	return s.save()
}

// has reports whether a network exists. The default network, "", always does.
func (s *networks) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.here[name]
	return ok || name == ""
}

func (s *networks) MadeNetworks() map[string]engine.Network {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.here)
}
