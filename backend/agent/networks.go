package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// codeInUse says that a container still uses a network.
const codeInUse = session.Code("engine_network_in-use")

// networkOf is the network of a session's containers. The kernels of a cluster
// have one of their own, in which they reach each other. The single kernels of
// one person share one in which nobody reaches anybody: Docker's usual address
// pools hold thirty networks, and a person may have more sessions than that.
func (a *Agent) networkOf(s session.Session) engine.Network {
	instance := a.store.Instance()
	if clustered(s) {
		return engine.Network{Name: "slipway-" + string(s.ID), Labels: map[string]string{
			engine.LabelSession: string(s.ID), engine.LabelInstance: instance, engine.LabelAgent: a.config.Name,
		}}
	}
	sum := sha256.Sum256([]byte(instance + "\x00" + s.Owner))
	return engine.Network{Name: "slipway-of-" + hex.EncodeToString(sum[:8]), Apart: true, Labels: map[string]string{
		engine.LabelOwner: s.Owner, engine.LabelInstance: instance,
	}}
}

// clustered reports whether a session has several kernels.
func clustered(s session.Session) bool { return s.Spec.Cluster > 1 }

// createNetwork makes the network of a session, where it is not there yet.
func (a *Agent) createNetwork(ctx context.Context, l *launch) error {
	network := a.networkOf(l.session)
	return a.networkTurn(ctx, func() error {
		delete(a.networkless, l.session.ID)
		a.noteNetwork(network.Name, true)
		return a.engine.CreateNetwork(ctx, network)
	})
}

// leaveNetwork removes a network, unless another session than the one that
// leaves it needs it; of several that end at once the last one does. Where a container that could not be removed is
// still in
// it, it stays until that is gone.
func (a *Agent) leaveNetwork(ctx context.Context, name string, leaves session.ID) error {
	return a.networkTurn(ctx, func() error {
		if leaves != "" {
			a.networkless[leaves] = true
		}
		needed, err := a.needsNetwork(name)
		if err != nil || needed {
			return err
		}
		err = a.engine.RemoveNetwork(ctx, name)
		switch {
		case session.CodeOf(err) == codeInUse:
			return nil
		case err != nil:
			return err
		}
		a.noteNetwork(name, false)
		return nil
	})
}

// networkTurn does one thing with networks at a time, so that none is removed
// between its making and its use: whoever makes one holds resources by then.
func (a *Agent) networkTurn(ctx context.Context, do func() error) error {
	select {
	case a.networking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.networking }()
	return do()
}

// needsNetwork reports whether any session has its containers in a network, or
// is about to. It needs the turn, and forgets of sessions that are over that
// they have left theirs.
func (a *Agent) needsNetwork(name string) (needed bool, err error) {
	live, _, err := a.store.Live()
	if err != nil {
		return false, err
	}
	without := map[session.ID]bool{}
	for _, s := range live {
		switch {
		case !s.Status.HoldsResources():
		case a.networkless[s.ID]:
			without[s.ID] = true
		default:
			needed = needed || a.networkOf(s).Name == name
		}
	}
	a.networkless = without
	return needed, nil
}

// noteNetwork remembers that a network may be there, or that it is gone.
func (a *Agent) noteNetwork(name string, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if there {
		a.networks[name] = true
	} else {
		delete(a.networks, name)
	}
}

// seedNetworks remembers the networks that an agent before this one may have
// left: of sessions that ended lately or are back in the queue.
func (a *Agent) seedNetworks() error {
	const newest = 500
	list, err := a.store.List(session.Filter{Limit: newest})
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Attempt > 0 {
			a.noteNetwork(a.networkOf(s).Name, true)
		}
	}
	return nil
}

// sweepNetworks removes networks that no session needs.
func (a *Agent) sweepNetworks(ctx context.Context) error {
	a.mu.Lock()
	names := slices.Sorted(maps.Keys(a.networks))
	a.mu.Unlock()
	for _, name := range names {
		err := engine.Within(ctx, a.limits.Call, "network",
			func(ctx context.Context) error { return a.leaveNetwork(ctx, name, "") })
		if err != nil {
			if engine.Unavailable(err) {
				return err
			}
			a.log.Warn("a network that no session needs could not be removed", "network", name, "err", err)
		}
	}
	return nil
}
