package enginetest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
)

func (f *Fake) CreateNetwork(ctx context.Context, n engine.Network) error {
	name, labels := n.Name, n.Labels
	if err := f.enter(ctx, CallCreateNetwork); err != nil {
		return err
	}
	if name == "" || labels[engine.LabelInstance] == "" {
		return &session.Error{Code: "engine_network_invalid", Message: "A network needs a name and the label " +
			engine.LabelInstance + "."}
	}
	f.mu.Lock()
	there, taken := f.networks[name]
	if !taken {
		f.networks[name] = engine.Network{Name: name, Labels: maps.Clone(labels), Apart: n.Apart}
	}
	f.mu.Unlock()
	if taken && !maps.Equal(there.Labels, labels) {
		return &session.Error{Code: "engine_network_name-taken", Message: fmt.Sprintf("Another network is named %s.",
			name), Hint: "Remove it or launch again."}
	}
	return f.leave(CallCreateNetwork)
}

func (f *Fake) RemoveNetwork(ctx context.Context, name string) error {
	if err := f.enter(ctx, CallRemoveNetwork); err != nil {
		return err
	}
	if err := f.removeNetwork(name); err != nil {
		return err
	}
	return f.leave(CallRemoveNetwork)
}

func (f *Fake) removeNetwork(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		if c.spec.Network == name && c.state.Running {
			return &session.Error{Code: "engine_network_in-use",
				Message: fmt.Sprintf("Containers still use the network %s.", name), Hint: "Remove them first."}
		}
	}
	delete(f.networks, name)
	return nil
}

// Networks returns the names of the networks that are there, sorted.
func (f *Fake) Networks() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.networks))
}

// Network returns a network as it was asked for.
func (f *Fake) Network(name string) (engine.Network, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, there := f.networks[name]
	return n, there
}

// Attachment implements [engine.Engine]: what [Fake.SetAttachment] has set,
// by default that devices are simulated.
func (f *Fake) Attachment(ctx context.Context, _ bool) (engine.Attachment, error) {
	if err := f.enter(ctx, CallAttachment); err != nil {
		return engine.Attachment{}, err
	}
	f.mu.Lock()
	attachment := f.attachment
	f.mu.Unlock()
	return attachment, f.leave(CallAttachment)
}

// SetAttachment says how devices are handed to containers.
func (f *Fake) SetAttachment(attachment engine.Attachment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attachment = attachment
}
