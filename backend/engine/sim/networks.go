package sim

import (
	"context"
	"fmt"
	"maps"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// CreateNetwork implements [engine.Networks]. A simulated network is a name:
// no simulated container reaches another at all.
func (s *Sim) CreateNetwork(ctx context.Context, n engine.Network) error {
	name, labels := n.Name, n.Labels
	if err := s.check(ctx); err != nil {
		return err
	}
	if name == "" || labels[engine.LabelInstance] == "" {
		return &session.Error{Code: "engine_network_invalid", Message: "A network needs a name and the label " +
			engine.LabelInstance + "."}
	}
	s.mu.Lock()
	there, taken := s.networks[name]
	if !taken {
		s.networks[name] = maps.Clone(labels)
	}
	s.mu.Unlock()
	switch {
	case !taken:
		return s.save()
	case maps.Equal(there, labels):
		return nil
	}
	return &session.Error{Code: "engine_network_name-taken", Message: fmt.Sprintf("Another network is named %s.", name),
		Hint: "End the session that has it, or launch again."}
}

func (s *Sim) RemoveNetwork(ctx context.Context, name string) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	labels, there := s.networks[name]
	there = there && (s.config.Instance == "" || labels[engine.LabelInstance] == s.config.Instance)
	busy := false
	for _, c := range s.containers {
		busy = busy || c.Spec.Network == name && c.State.Running
	}
	if there && !busy {
		delete(s.networks, name)
	}
	s.mu.Unlock()
	switch {
	case !there:
		return nil
	case busy:
		return &session.Error{Code: "engine_network_in-use",
			Message: fmt.Sprintf("Containers still use the network %s.", name), Hint: "Remove them first."}
	}
	return s.save()
}

// hasNetwork reports whether a network is there, as the empty name always is.
func (s *Sim) hasNetwork(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.networks[name]
	return ok || name == ""
}

// Attachment implements [engine.Engine]: simulated devices need no way in.
func (s *Sim) Attachment(ctx context.Context, _ bool) (engine.Attachment, error) {
	if err := s.check(ctx); err != nil {
		return engine.Attachment{}, err
	}
	return engine.Attachment{Way: engine.AttachSim}, nil
}
