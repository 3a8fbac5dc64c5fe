// Package remote reaches agents on other machines: by the system's ssh, which
// also installs and upgrades them, or as a paired client. It is all that knows of
// ssh, keys and lines.
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

// Config says how agents are reached.
type Config struct {
	Home place.Home
	// User is how this computer is called to others where it has no name.
	User string
	Log  *slog.Logger
	// Clock is what people are told the times of connections by.
	Clock *pace.Clock
	// Dialer replaces the dialer of an agent; nil: it stays as it is.
	Dialer func(hub.Entry, tunnel.Dialer) tunnel.Dialer
	// SSHConfig and SSH stand in for the person's ssh configuration and for the
	// system's client; empty: those.
	SSHConfig, SSH string
	// Programs are brought to other machines; nil: those beside this one.
	Programs provision.Programs
}

// Connector connects to agents on other machines.
type Connector struct {
	config  Config
	sockets string // folder of those of connections by ssh

	// mu guards everything below.
	mu     sync.Mutex
	key    *secure.Identity          // this computer's own; nil: not read yet
	agents map[string]*agent         // by the ids of their entries
	fresh  map[string]*sshConnection // logins of agents just added, by the ids of their entries
}

var _ hub.Connector = (*Connector)(nil)

// deviceKey is the file of this computer's own key.
const deviceKey = "device.key"

// sshFolder has the sockets of connections by ssh.
const sshFolder = "ssh"

// socketsOf is where the sockets of connections by ssh are: in the home, and where
// its path is too long for them in its runtime directory. No session sees either;
// through those sockets it would be logged in elsewhere.
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

// sshConfigVariable names a configuration file for ssh in place of the person's.
const sshConfigVariable = "SLIPWAY_SSH_CONFIG"

// New needs the lock of the home, since it removes what an earlier run left.
func New(config Config) *Connector {
	sockets := socketsOf(config.Home)
	if err := sshstdio.Sweep(sockets); err != nil {
		config.Log.Warn("what an earlier run left of its connections cannot be removed", "error", err)
	}
	config.SSHConfig = cmp.Or(config.SSHConfig, os.Getenv(sshConfigVariable))
	return &Connector{config: config, sockets: sockets, agents: map[string]*agent{},
		fresh: map[string]*sshConnection{}}
}

// Tidy removes the directory of sockets where that is not in the home, and what
// holds it, as far as they are empty.
func (c *Connector) Tidy() {
	if dir := filepath.Dir(c.sockets); dir != c.config.Home.Dir {
		_ = os.Remove(c.sockets) // it may never have been made
		_ = os.Remove(dir)       // the agent of another program may have sockets there
	}
}

// Run looks after every line when the network changes or the machine wakes,
// until ctx ends.
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

// Nudge has every line look at its connection at once.
func (c *Connector) Nudge() {
	for _, one := range c.all() {
		one.line.Nudge()
	}
}

// identity is this computer's own key, which is made when it is needed first.
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

// Key is the fingerprint of this computer's own key; empty: it cannot be read.
func (c *Connector) Key() string {
	identity, err := c.identity()
	if err != nil {
		return ""
	}
	return identity.Fingerprint()
}

// hostName is what this computer is called elsewhere.
func (c *Connector) hostName() string {
	name, _ := os.Hostname()
	return cmp.Or(name, c.config.User)
}

func (c *Connector) Open(entry hub.Entry, listed hub.Listed) (hub.Remote, error) {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return nil, err
	}
	one := newAgent(c, entry, listed)
	if address.Scheme == hub.SchemeSSH {
		err = one.bySSH(c.login(entry))
	} else {
		err = one.byTLS(address)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents[entry.ID] = one
	return one, nil
}

// login takes over the connection that an agent was just added by, or prepares
// another.
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

// forget ends what Open has made.
func (c *Connector) forget(one *agent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.agents[one.entry.ID] == one {
		delete(c.agents, one.entry.ID)
	}
}

// of returns the way to an agent of the directory, nil where it has none.
func (c *Connector) of(entry hub.Entry) *agent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.agents[entry.ID]
}
