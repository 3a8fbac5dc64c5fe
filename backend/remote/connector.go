// Package remote reaches agents on other machines: by the system's ssh, which also installs and upgrades them, or as a
// paired client. No other package knows about ssh, keys and lines.
package remote

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"slipway/backend/hub"
	"slipway/backend/pace"
	"slipway/backend/place"
	"slipway/backend/provision"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/netwatch"
	"slipway/tunnel/secure"
	"slipway/tunnel/sshstdio"
)

// Config says how to reach agents.
type Config struct {
	Home   place.Home
	User   string // name of this computer for others if it has no host name
	Log    *slog.Logger
	Clock  *pace.Clock                                  // for times that people see
	Dialer func(hub.Entry, tunnel.Dialer) tunnel.Dialer // replaces the dialer of an agent; nil: no replacement
	// SSHConfig and SSH replace the person's ssh configuration and the system's client, unless empty.
	SSHConfig, SSH string
	Programs       provision.Programs // to install on other machines; nil: those next to this program
}

// Connector connects to agents on other machines.
type Connector struct {
	config  Config
	sockets string // folder with the sockets of ssh connections

	mu     sync.Mutex                // guards the following fields
	key    *secure.Identity          // this computer's key; nil: not read yet
	agents map[string]*agent         // by the ids of their entries
	fresh  map[string]*sshConnection // of agents just added, by the ids of their entries
}

var _ hub.Connector = (*Connector)(nil)

const (
	deviceKey         = "device.key"         // file with this computer's key
	sshFolder         = "ssh"                // folder with the sockets of ssh connections
	sshConfigVariable = "SLIPWAY_SSH_CONFIG" // environment variable with the path of an ssh configuration
)

// socketsOf returns the folder for the sockets of ssh connections: in the home, or in its runtime directory if the path
// is too long for a socket. It must be hidden from sessions, which could use the connections.
func socketsOf(home place.Home) string {
	folder := home.Join(sshFolder)
	if sshstdio.Fits(folder) {
		return folder
	}
	if dir, err := home.MakeRuntimeDir(); err == nil {
		return filepath.Join(dir, sshFolder)
	}
	return folder
}

// New returns a Connector. The caller holds the lock of the home, because New removes what an earlier run left.
func New(config Config) *Connector {
	sockets := socketsOf(config.Home)
	if err := sshstdio.Sweep(sockets); err != nil {
		config.Log.Warn("what an earlier run left of its connections cannot be removed", "error", err)
	}
	config.SSHConfig = cmp.Or(config.SSHConfig, os.Getenv(sshConfigVariable))
	return &Connector{config: config, sockets: sockets, agents: map[string]*agent{},
		fresh: map[string]*sshConnection{}}
}

// Tidy removes empty directories for sockets outside of the home.
func (c *Connector) Tidy() {
	if dir := filepath.Dir(c.sockets); dir != c.config.Home.Dir {
		_ = os.Remove(c.sockets) // it may not exist
		_ = os.Remove(dir)       // the agent of another program may have sockets there
	}
}

// Run checks every line when the network changes or the machine wakes, until ctx ends.
func (c *Connector) Run(ctx context.Context) {
	err := netwatch.Run(ctx, func(netwatch.Change) { c.Nudge() })
	if ctx.Err() == nil && err != nil {
		c.config.Log.Warn("network changes are not reported, so lost connections are noticed later", "error", err)
	}
}

func (c *Connector) all() []*agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.agents))
}

// Nudge makes every line check its connection now.
func (c *Connector) Nudge() {
	for _, one := range c.all() {
		one.line.Nudge()
	}
}

// identity returns this computer's key, created on first use.
func (c *Connector) identity() (*secure.Identity, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key != nil {
		return c.key, nil
	}
	path := c.config.Home.Join(deviceKey)
	identity, err := secure.OpenIdentity(path)
	if err != nil {
		return nil, session.WrapError(err, session.CodeConnectAuth, "This computer's key cannot be read.",
			"Repair or remove "+path+"; without it, this computer must be paired again.")
	}
	c.key = identity
	return identity, nil
}

// Key returns the fingerprint of this computer's key; empty: it cannot be read.
func (c *Connector) Key() string {
	identity, err := c.identity()
	if err != nil {
		return ""
	}
	return identity.Fingerprint()
}

func (c *Connector) Open(entry hub.Entry, listed hub.Listed) (hub.Remote, error) {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return nil, err
	}
	one := &agent{connector: c, entry: entry, listed: listed, changed: make(chan struct{})}
	if address.Scheme != hub.SchemeSSH {
		err = one.byTLS(address)
	} else if one.ssh, err = c.login(entry); err == nil {
		one.begin("ssh", one.ssh)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents[entry.ID] = one
	return one, nil
}

// login returns the connection with which an agent was just added, or a new one.
func (c *Connector) login(entry hub.Entry) (*sshConnection, error) {
	c.mu.Lock()
	fresh := c.fresh[entry.ID]
	delete(c.fresh, entry.ID)
	c.mu.Unlock()
	if fresh != nil {
		return fresh, nil
	}
	return c.openSSH(entry)
}

func (c *Connector) forget(one *agent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.agents, func(_ string, other *agent) bool { return other == one })
}

func (c *Connector) of(entry hub.Entry) *agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agents[entry.ID]
}
