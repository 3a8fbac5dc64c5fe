package docker

import (
	"context"
	"maps"
	"sync"
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

// networks are the private networks that this process made. They stay when
// what earlier processes left is swept, because their containers may be still
// to come.
type networks struct {
	mu       sync.Mutex // guards everything below
	made     map[string]bool
	together bool // the last one that was to keep its containers apart does not
}

func (n *networks) setTogether(together bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.together = together
}

func (n *networks) areTogether() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.together
}

func (n *networks) note(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.made == nil {
		n.made = map[string]bool{}
	}
	n.made[name] = true
}

func (n *networks) forget(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.made, name)
}

func (n *networks) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.made[name]
}

// CreateNetwork implements [engine.Networks]. It fails with
// engine_network_invalid, engine_network_name-taken and, where the daemon has
// no addresses left to give, engine_network_no-addresses.
func (e *Engine) CreateNetwork(ctx context.Context, n engine.Network) error {
	if n.Name == "" || n.Labels[engine.LabelInstance] == "" {
		return &session.Error{Code: "engine_network_invalid", Message: "A network needs a name and the label " +
			engine.LabelInstance + "."}
	}
	e.networks.note(n.Name)
	there, err := e.network(ctx, n.Name)
	if err != nil {
		return err
	}
	if there != nil {
		return sameNetwork(*there, n.Labels)
	}
	err = e.makeNetwork(ctx, n)
	switch {
	case err == nil:
		return nil
	case errdefs.IsConflict(err): // another call was quicker
		if there, lookErr := e.network(ctx, n.Name); lookErr != nil || there != nil {
			if lookErr != nil {
				return lookErr
			}
			return sameNetwork(*there, n.Labels)
		}
	case daemon.ReasonOf(daemon.Text(err), err) == daemon.ReasonNoAddresses:
		return &session.Error{
			Code: "engine_network_no-addresses", Message: "Docker has no addresses left for another network.",
			Hint: "Remove networks that nobody uses with `docker network prune`, or give the daemon more " +
				"default-address-pools.", Err: err,
		}
	}
	return daemon.Failure(ctx, "network", err)
}

// makeNetwork asks the daemon for a network. Where the machine cannot keep the
// containers of one apart, those of other networks are kept out all the same.
func (e *Engine) makeNetwork(ctx context.Context, n engine.Network) error {
	options := network.CreateOptions{Driver: "bridge", Labels: n.Labels}
	if !n.Apart {
		_, err := e.daemon.API.NetworkCreate(ctx, n.Name, options)
		return err
	}
	options.Options = map[string]string{optionReach: "false"}
	_, err := e.daemon.API.NetworkCreate(ctx, n.Name, options)
	together := err != nil && daemon.ReasonOf(daemon.Text(err), err) == daemon.ReasonNoBridgeFilter
	if together {
		e.daemon.Log.Warn("the containers of a network reach each other", "network", n.Name, "error", err)
		options.Options = nil
		_, err = e.daemon.API.NetworkCreate(ctx, n.Name, options)
	}
	if err == nil {
		e.networks.setTogether(together)
	}
	return err
}

// network returns the network of a name, nil if there is none.
func (e *Engine) network(ctx context.Context, name string) (*network.Inspect, error) {
	there, err := e.daemon.API.NetworkInspect(ctx, name, network.InspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, daemon.Failure(ctx, "network", err)
	case there.Name != name: // Docker also finds networks by their ids
		return nil, nil
	}
	return &there, nil
}

func sameNetwork(there network.Inspect, labels map[string]string) error {
	if maps.Equal(ours(there.Labels), ours(labels)) {
		return nil
	}
	return &session.Error{
		Code: "engine_network_name-taken", Message: "Another network is named " + there.Name + ".",
		Hint: "Remove it with `docker network rm " + there.Name + "` or launch again.",
	}
}

// RemoveNetwork implements [engine.Networks]. A network of somebody else is
// left alone; one that a container still uses is engine_network_in-use.
func (e *Engine) RemoveNetwork(ctx context.Context, name string) error {
	there, err := e.network(ctx, name)
	if err != nil {
		return err
	}
	e.networks.forget(name)
	if there == nil || there.Labels[engine.LabelInstance] != e.config.Instance {
		return nil
	}
	err = e.daemon.API.NetworkRemove(ctx, there.ID)
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case errdefs.IsPermissionDenied(err), errdefs.IsConflict(err):
		return &session.Error{
			Code: "engine_network_in-use", Message: "Containers still use the network " + name + ".",
			Hint: "Remove them first.", Err: err,
		}
	}
	return daemon.Failure(ctx, "network", err)
}

// sweepNetworks removes our networks of sessions and persons that have no
// container and that this process did not make.
func (e *Engine) sweepNetworks(ctx context.Context, states []engine.State) error {
	sessions, owners := map[string]bool{}, map[string]bool{}
	for _, s := range states {
		sessions[s.Labels[engine.LabelSession]], owners[s.Labels[engine.LabelOwner]] = true, true
	}
	found, err := e.daemon.API.NetworkList(ctx,
		network.ListOptions{Filters: filters.NewArgs(filters.Arg("label", engine.LabelInstance+"="+e.config.Instance))})
	if err != nil {
		return daemon.Failure(ctx, "network", err)
	}
	for _, n := range found {
		used := sessions[n.Labels[engine.LabelSession]]
		if owner, shared := n.Labels[engine.LabelOwner]; shared {
			used = owners[owner]
		}
		if used || e.networks.has(n.Name) {
			continue
		}
		if err := e.daemon.API.NetworkRemove(ctx, n.ID); err != nil && !errdefs.IsNotFound(err) {
			return daemon.Failure(ctx, "network", err)
		}
	}
	return nil
}

// networkWarnings say where the daemon does not keep sessions apart.
func (e *Engine) networkWarnings(facts *daemon.Facts) []session.Warning {
	switch {
	case facts.Here && unfiltered(e.daemon.Host()):
		return []session.Warning{{Code: "engine_info_no-filter",
			Title: "Sessions are not kept apart", At: time.Now(),
			Text: "This Docker was told to leave the packet filter alone (iptables is off), so a server in one " +
				"session is reached from every other session of the machine, also of other people."}}
	case e.networks.areTogether():
		return []session.Warning{{Code: "engine_info_not-apart",
			Title: "Sessions of one person reach each other", At: time.Now(),
			Text: "The kernel does not filter what goes through a bridge, so a server in one session is reached from " +
				"the others of the same person. Those of other people are kept out."}}
	}
	return nil
}

// networking puts a container into its private network, where those of its
// cluster find it by its host name. Without one Docker's own default holds.
func networking(c engine.Container) *network.NetworkingConfig {
	if c.Network == "" {
		return nil
	}
	var names []string
	if c.Guest.Cluster != nil {
		names = []string{c.Hostname}
	}
	return &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{c.Network: {Aliases: names}}}
}

// checkNetwork fails with engine_create_no-network where c's network is not
// there, which Docker would say only when the container starts.
func (e *Engine) checkNetwork(ctx context.Context, c engine.Container) error {
	if c.Network == "" {
		return nil
	}
	there, err := e.network(ctx, c.Network)
	if err == nil && (there == nil || len(ours(there.Labels)) == 0) { // that of the machine itself is Docker's own
		return &session.Error{Code: "engine_create_no-network", Message: "The network " + c.Network +
			" does not exist.", Hint: "Launch the session again."}
	}
	return err
}
