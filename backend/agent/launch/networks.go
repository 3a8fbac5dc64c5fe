package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/session"
)

// networks are the networks of sessions' containers.
type networks struct {
	host host.Host
	turn chan struct{} // holds a token while networks are made or removed
	// left are live sessions that have left their network; whoever has put the token into turn may use it.
	left map[session.ID]bool

	mu    sync.Mutex      // guards names
	names map[string]bool // of networks that may be there
}

// openNetworks returns the networks of an agent. It knows those that an agent before it may have left: of sessions that
// ended lately or are back in the queue.
func openNetworks(h host.Host) (*networks, error) {
	n := &networks{host: h, turn: make(chan struct{}, 1), left: map[session.ID]bool{}, names: map[string]bool{}}
	const newest = 500
	list, err := h.Records.List(session.Filter{Limit: newest})
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Attempt > 0 {
			n.note(n.of(s).Name, true)
		}
	}
	return n, nil
}

// of is the network of a session's containers. The kernels of a cluster have one of their own, in which they reach each
// other. The single kernels of one person share one in which nobody reaches anybody: Docker's usual address pools hold
// thirty networks, and a person may have more sessions than that.
func (n *networks) of(s session.Session) engine.Network {
	instance := n.host.Records.Instance()
	if s.Spec.Cluster > 1 {
		return engine.Network{Name: "slipway-" + string(s.ID), Labels: map[string]string{
			engine.LabelSession: string(s.ID), engine.LabelInstance: instance, engine.LabelAgent: n.host.Agent,
		}}
	}
	sum := sha256.Sum256([]byte(instance + "\x00" + s.Owner))
	return engine.Network{Name: "slipway-of-" + hex.EncodeToString(sum[:8]), Apart: true, Labels: map[string]string{
		engine.LabelOwner: s.Owner, engine.LabelInstance: instance,
	}}
}

// create makes the network of a session, where it is not there yet.
func (n *networks) create(ctx context.Context, s session.Session) error {
	network := n.of(s)
	return n.inTurn(ctx, func() error {
		delete(n.left, s.ID)
		n.note(network.Name, true)
		return n.host.Engine.CreateNetwork(ctx, network)
	})
}

// leave removes a network that no session needs, apart from the one that leaves it; of several that end at once the
// last one does. Where a container that could not be removed is still in it, it stays until that is gone.
func (n *networks) leave(ctx context.Context, name string, leaves session.ID) error {
	return n.inTurn(ctx, func() error {
		if leaves != "" {
			n.left[leaves] = true
		}
		needed, err := n.needed(name)
		if err != nil || needed {
			return err
		}
		err = n.host.Engine.RemoveNetwork(ctx, name)
		switch {
		case session.CodeOf(err) == session.CodeEngineConflict:
			return nil
		case err != nil:
			return err
		}
		n.note(name, false)
		return nil
	})
}

// inTurn does one thing with networks at a time, so that none is removed between its making and its use: whoever makes
// one holds resources by then.
func (n *networks) inTurn(ctx context.Context, do func() error) error {
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-n.turn }()
	return do()
}

// needed reports whether any session has its containers in a network, or is about to. It needs the turn, and forgets of
// sessions that are over that they have left theirs.
func (n *networks) needed(name string) (needed bool, err error) {
	live, _, err := n.host.Records.Live()
	if err != nil {
		return false, err
	}
	without := map[session.ID]bool{}
	for _, s := range live {
		switch {
		case !s.Status.HoldsResources():
		case n.left[s.ID]:
			without[s.ID] = true
		default:
			needed = needed || n.of(s).Name == name
		}
	}
	n.left = without
	return needed, nil
}

// note remembers that a network may be there, or that it is gone.
func (n *networks) note(name string, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if there {
		n.names[name] = true
	} else {
		delete(n.names, name)
	}
}

// sweep removes networks that no session needs.
func (n *networks) sweep(ctx context.Context) error {
	n.mu.Lock()
	names := slices.Sorted(maps.Keys(n.names))
	n.mu.Unlock()
	for _, name := range names {
		err := engine.Within(ctx, n.host.Limits.Call, "network",
			func(ctx context.Context) error { return n.leave(ctx, name, "") })
		if err != nil {
			if engine.Unavailable(err) {
				return err
			}
			n.host.Log.Warn("a network that no session needs could not be removed", "network", name, "err", err)
		}
	}
	return nil
}
