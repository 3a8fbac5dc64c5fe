// Package networks makes the private networks of sessions on a Docker daemon.
package networks

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// optionReach is whether the containers of a bridge reach each other.
const optionReach = "com.docker.network.bridge.enable_icc"

// Networks are the private networks of one instance. It is safe for concurrent use.
type Networks struct {
	daemon   *daemon.Daemon
	instance string

	// Names of the networks that this process made. The sweep keeps them, because their containers may come later.
	made sync.Map
	// sweeping is held by the sweep, and shared by those that make a network or keep one, until it is among made.
	sweeping sync.RWMutex
	together atomic.Bool // the last one that was to keep its containers apart does not
}

// New returns the networks with an instance's label.
func New(d *daemon.Daemon, instance string) *Networks {
	return &Networks{daemon: d, instance: instance}
}

// CreateNetwork makes a private network, or keeps the one with the same name and labels. It fails with
// engine_call_invalid, and with engine_call_conflict also where the daemon has no addresses left.
func (ns *Networks) CreateNetwork(ctx context.Context, n engine.Network) error {
	if n.Name == "" || n.Labels[engine.LabelInstance] == "" {
		return &session.Error{Code: session.CodeEngineInvalid, Message: "A network needs a name and the label " +
			engine.LabelInstance + "."}
	}
	ns.sweeping.RLock()
	ns.made.Store(n.Name, true)
	ns.sweeping.RUnlock()
	var err error
	for range 2 { // another call may be quicker than the first try
		there, lookErr := ns.network(ctx, n.Name)
		switch {
		case lookErr != nil:
			return lookErr
		case there != nil && maps.Equal(daemon.OwnLabels(there.Labels), daemon.OwnLabels(n.Labels)):
			return nil
		case there != nil:
			return session.NewError(session.CodeEngineConflict, "Another network is named "+n.Name+".",
				"Remove it with `docker network rm "+n.Name+"` or launch again.")
		}
		if err = ns.makeNetwork(ctx, n); !errdefs.IsConflict(err) {
			break
		}
	}
	if err != nil && daemon.ReasonOf(daemon.Text(err), err) == daemon.ReasonNoAddresses {
		return session.WrapError(err, session.CodeEngineConflict, "Docker has no addresses left for another network.",
			"Remove unused networks with `docker network prune`, or give the daemon more default-address-pools.")
	}
	return daemon.Failure(ctx, err)
}

// makeNetwork creates a network. If it cannot isolate its containers from each other, it still isolates the network.
func (ns *Networks) makeNetwork(ctx context.Context, n engine.Network) error {
	facts, err := ns.daemon.Facts(ctx)
	if err != nil {
		return err
	}
	options := network.CreateOptions{Driver: "bridge", Labels: n.Labels}
	if !n.Apart || facts.Podman { // which cannot, see [Networks.NetworkWarnings]
		_, err = ns.daemon.API.NetworkCreate(ctx, n.Name, options)
		return err
	}
	options.Options = map[string]string{optionReach: "false"}
	_, err = ns.daemon.API.NetworkCreate(ctx, n.Name, options)
	together := err != nil && daemon.ReasonOf(daemon.Text(err), err) == daemon.ReasonNoBridgeFilter
	if together {
		ns.daemon.Log.Warn("the containers of a network reach each other", "network", n.Name, "error", err)
		options.Options = nil
		_, err = ns.daemon.API.NetworkCreate(ctx, n.Name, options)
	}
	if err == nil {
		ns.together.Store(together)
	}
	return err
}

// network returns a network by name, nil if there is none.
func (ns *Networks) network(ctx context.Context, name string) (*network.Inspect, error) {
	there, err := ns.daemon.API.NetworkInspect(ctx, name, network.InspectOptions{})
	if err != nil && strings.Contains(daemon.Text(err), "ambiguous") {
		return ns.single(ctx, name)
	}
	switch {
	case errdefs.IsNotFound(err), err == nil && there.Name != name: // Docker also finds networks by their ids
		return nil, nil
	case err != nil:
		return nil, daemon.Failure(ctx, err)
	}
	return &there, nil
}

// single returns the oldest of several networks of ours that have the same name, and removes the others. Docker makes a
// second one if a call that was given up is repeated before it has ended, and then finds none of them by their name.
func (ns *Networks) single(ctx context.Context, name string) (*network.Inspect, error) {
	all, err := ns.daemon.API.NetworkList(ctx, network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", name),
		filters.Arg("label", engine.LabelInstance+"="+ns.instance))})
	all = slices.DeleteFunc(all, func(n network.Summary) bool { return n.Name != name })
	if err != nil || len(all) == 0 {
		return nil, daemon.Failure(ctx, err)
	}
	slices.SortFunc(all, func(a, b network.Summary) int { return a.Created.Compare(b.Created) })
	for _, n := range all[1:] {
		if err := ns.daemon.API.NetworkRemove(ctx, n.ID); err != nil && !errdefs.IsNotFound(err) {
			return nil, daemon.Failure(ctx, err)
		}
	}
	there, err := ns.daemon.API.NetworkInspect(ctx, all[0].ID, network.InspectOptions{})
	return &there, daemon.Failure(ctx, err)
}

// RemoveNetwork removes a network of ours. One in use is engine_call_conflict.
func (ns *Networks) RemoveNetwork(ctx context.Context, name string) error {
	there, err := ns.network(ctx, name)
	if err != nil {
		return err
	}
	ns.made.Delete(name)
	if there == nil || there.Labels[engine.LabelInstance] != ns.instance {
		return nil
	}
	if len(there.Containers) == 0 { // Podman would remove them, too
		err = ns.daemon.API.NetworkRemove(ctx, there.ID)
	}
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case len(there.Containers) > 0, errdefs.IsPermissionDenied(err), errdefs.IsConflict(err):
		return session.WrapError(err, session.CodeEngineConflict, "Containers still use the network "+name+".",
			"Remove them first.")
	}
	return daemon.Failure(ctx, err)
}

// SweepNetworks removes our networks without containers that this process did not make.
func (ns *Networks) SweepNetworks(ctx context.Context, states []engine.State) error {
	sessions, owners := map[string]bool{}, map[string]bool{}
	for _, s := range states {
		sessions[s.Labels[engine.LabelSession]], owners[s.Labels[engine.LabelOwner]] = true, true
	}
	found, err := ns.daemon.API.NetworkList(ctx,
		network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", engine.LabelInstance+"="+ns.instance))})
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	for _, n := range found {
		used := sessions[n.Labels[engine.LabelSession]]
		if owner, shared := n.Labels[engine.LabelOwner]; shared {
			used = owners[owner]
		}
		if used {
			continue
		}
		if err := ns.sweep(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes a network unless this process has made or kept it meanwhile.
func (ns *Networks) sweep(ctx context.Context, n network.Summary) error {
	ns.sweeping.Lock()
	defer ns.sweeping.Unlock()
	if _, made := ns.made.Load(n.Name); made {
		return nil
	}
	if err := ns.daemon.API.NetworkRemove(ctx, n.ID); !errdefs.IsNotFound(err) {
		return daemon.Failure(ctx, err)
	}
	return nil
}

// NetworkWarnings say where the daemon does not isolate sessions.
func (ns *Networks) NetworkWarnings(facts *daemon.Facts) []session.Warning {
	switch {
	case facts.Here && unfiltered(ns.daemon.Host()):
		return []session.Warning{{Code: session.CodeNoFilter, Title: "Sessions are not kept apart", At: time.Now(),
			Text: "This Docker does not set up packet filter rules (iptables is off), so a server in one " +
				"session can be reached from every other session on the machine, including those of other people."}}
	case facts.Podman:
		// Podman 4.3 takes no option for it by Docker's API, and forgets that of its own API at the next inspection.
		return []session.Warning{{Code: session.CodeNoFilter, Title: "Sessions are not kept apart", At: time.Now(),
			Text: "Podman connects its networks, so a server in one session can be reached from every other session " +
				"on the machine, including those of other people."}}
	case ns.together.Load():
		return []session.Warning{{Code: session.CodeNotApart,
			Title: "Sessions of one person reach each other", At: time.Now(),
			Text: "The kernel does not filter what goes through a bridge, so a server in one session is reached from " +
				"the others of the same person. Those of other people are kept out."}}
	}
	return nil
}

// Join puts a container into its private network under its host name; without one Docker's default applies.
func Join(c engine.Container) *network.NetworkingConfig {
	if c.Network == "" {
		return nil
	}
	var names []string
	if c.Guest.Cluster != nil {
		names = []string{c.Hostname}
	}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{c.Network: {Aliases: names}}}
}

// CheckNetwork fails with engine_call_conflict for a missing network. Docker would fail only at the start.
func (ns *Networks) CheckNetwork(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	there, err := ns.network(ctx, name)
	// The networks of the machine itself belong to Docker.
	if err == nil && (there == nil || len(daemon.OwnLabels(there.Labels)) == 0) {
		return session.NewError(session.CodeEngineConflict, "The network "+name+" does not exist.",
			"Launch the session again.")
	}
	return err
}
