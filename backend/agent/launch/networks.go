package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/session"
)

type networks struct {
	host host.Host
	turn chan struct{} // holds a token while networks are created or removed
	// left are live sessions that have left their network; guarded by turn.
	left  map[session.ID]bool
	names sync.Map // of networks that may exist
}

// openNetworks returns the networks of an agent, with those that an earlier run may have left.
func openNetworks(h host.Host) (*networks, error) {
	n := &networks{host: h, turn: make(chan struct{}, 1), left: map[session.ID]bool{}}
	const newest = 500
	list, err := h.Records.List(session.Filter{Limit: newest})
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Attempt > 0 {
			n.names.Store(n.of(s).Name, true)
		}
	}
	return n, nil
}

// of is the network of a session's containers. The kernels of a cluster have their own, in which they reach each other.
// The single kernels of one person share one in which none reaches another: Docker's default address pools have about
// thirty networks, and a person may have more sessions.
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

func (n *networks) create(ctx context.Context, s session.Session) error {
	network := n.of(s)
	return n.inTurn(ctx, func() error {
		delete(n.left, s.ID)
		n.names.Store(network.Name, true)
		return n.host.Engine.CreateNetwork(ctx, network)
	})
}

// leave removes a network that no session needs but the one that leaves it; the last of several that end at once
// removes it. While a container that could not be removed is in it, it stays.
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
		n.names.Delete(name)
		return nil
	})
}

// inTurn does one thing with networks at a time, so that none is removed between its creation and its use.
func (n *networks) inTurn(ctx context.Context, do func() error) error {
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-n.turn }()
	return do()
}

// needed reports whether any session uses a network, or is about to. It needs the turn, and cleans up left.
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

func (n *networks) sweep(ctx context.Context) error {
	for name := range n.names.Range {
		name := name.(string)
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
