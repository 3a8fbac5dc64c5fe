package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"slipway/backend/agentrpc"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

const pairTries = 3 // codes that a person may enter in one operation

// pinnedDialer dials an agent that this computer is paired with. Both keys can be replaced.
type pinnedDialer struct {
	config secure.DialConfig

	mu       sync.Mutex // guards the following fields
	identity *secure.Identity
	key      string // expected fingerprint of the agent
	now      *secure.Dialer
}

func (d *pinnedDialer) expect(key string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set(d.identity, key)
}

func (d *pinnedDialer) become(identity *secure.Identity) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.set(identity, d.key)
}

// set needs mu.
func (d *pinnedDialer) set(identity *secure.Identity, key string) error {
	config := d.config
	config.Identity, config.Key = identity, key
	var dialer *secure.Dialer
	if keep := config.Moved; keep != nil {
		config.Moved = func(moved string) error {
			if err := keep(moved); err != nil {
				return err
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.now == dialer {
				d.key = moved
			}
			return nil
		}
	}
	var err error
	dialer, err = secure.NewDialer(config)
	if err != nil {
		return session.WrapError(err, session.CodeConnectInvalid, "The key of the agent cannot be read.",
			"Remove the agent and add it again.")
	}
	d.identity, d.key, d.now = identity, key, dialer
	return nil
}

func (d *pinnedDialer) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	d.mu.Lock()
	now := d.now
	d.mu.Unlock()
	return now.Dial(ctx, silent)
}

// dialConfig returns how this computer dials an address.
func (c *Connector) dialConfig(address hub.Address) (secure.DialConfig, error) {
	identity, err := c.identity()
	if err != nil {
		return secure.DialConfig{}, err
	}
	text := net.JoinHostPort(address.Host, fmt.Sprint(cmp.Or(address.Port, secure.DefaultPort)))
	if address.Scheme == hub.SchemeWSS {
		text = address.String()
	}
	at, err := secure.ParseAddress(text)
	if err != nil {
		return secure.DialConfig{}, agentrpc.FaultError(err)
	}
	return secure.DialConfig{Identity: identity, Address: at, Fallback: !at.Web}, nil
}

// byTLS creates the line to an agent that this computer is paired with.
func (a *agent) byTLS(address hub.Address) error {
	config, err := a.connector.dialConfig(address)
	if err != nil {
		return err
	}
	config.Moved = a.listed.Pin
	transport := "tls"
	if config.Address.Web {
		transport = "wss"
	}
	a.tls = &pinnedDialer{config: config, identity: config.Identity}
	if err := a.tls.expect(a.entry.Fingerprint); err != nil {
		return err
	}
	a.begin(transport, a.tls)
	return nil
}

// pair pairs this computer with an agent. It prompts for the code, again if it is wrong.
func (c *Connector) pair(ctx context.Context, work *hub.Work, address hub.Address) (paired secure.Paired, err error) {
	config, err := c.dialConfig(address)
	if err != nil {
		return secure.Paired{}, err
	}
	name, _ := os.Hostname()
	name = cmp.Or(name, c.config.User)
	return paired, work.Do("pair", "Pair", func() (string, error) {
		why := ""
		for try := 1; ; try++ {
			code, err := work.Ask(ctx, hub.Prompt{Kind: hub.PromptPairCode, Again: try > 1, Host: address.Host,
				Text: why + "Type the code that slipway agent pair shows on " + address.Host + "."})
			if err != nil {
				return "", err
			}
			paired, err = secure.Pair(ctx, secure.PairConfig{Dial: config, Code: code, Name: name})
			if err == nil {
				return fmt.Sprintf("%s knows this computer now; its key is %s.", paired.Name,
					secure.ShortFingerprint(paired.Key)), nil
			}
			told := connectError(err)
			mistyped := told.Code == session.CodePairCode || told.Code == session.CodePairExpired
			if !mistyped || try == pairTries {
				return "", told
			}
			why = told.Message + " "
		}
	})
}

// pairAgain pairs with an agent that no longer knows this computer.
func (a *agent) pairAgain(ctx context.Context, work *hub.Work) error {
	address, err := hub.ParseAddress(a.entry.Address)
	if err != nil {
		return err
	}
	paired, err := a.connector.pair(ctx, work, address)
	if err != nil {
		return err
	}
	if err := a.listed.Pin(paired.Key); err != nil {
		return err
	}
	return a.tls.expect(paired.Key)
}

// probeTLS checks whether an agent answers. An agent of the directory also checks its own machine.
func (c *Connector) probeTLS(ctx context.Context, work *hub.Work, entry hub.Entry, address hub.Address) error {
	if known := c.of(entry); known != nil {
		return known.examine(ctx, work)
	}
	config, err := c.dialConfig(address)
	if err != nil {
		return err
	}
	config.Key = config.Identity.Fingerprint() // no agent has it, so the error names the agent's own
	return work.Do("answer", "Check whether an agent answers", func() (string, error) {
		dialer, err := secure.NewDialer(config)
		if err != nil {
			return "", err
		}
		conn, err := dialer.Dial(ctx, true)
		if err == nil {
			return "This computer itself answers there.", conn.Close()
		}
		if other, ok := errors.AsType[*secure.KeyError](err); ok {
			return "An agent with the key " + secure.ShortFingerprint(other.Got) +
				" answers. Add it, with a code that slipway agent pair shows there.", nil
		}
		return "", connectError(err)
	})
}

// examine lets a connected agent check its own machine.
func (a *agent) examine(ctx context.Context, work *hub.Work) error {
	checks, err := a.client.Doctor(ctx)
	if err != nil {
		return err
	}
	for _, check := range checks {
		report{work}.Tell(check)
	}
	return nil
}

// announceTime is how long to wait for an agent to learn this computer's new key. Others learn it later.
const announceTime = 5 * time.Second

func (c *Connector) Rotate(ctx context.Context) (hub.Rotation, error) {
	if _, err := c.identity(); err != nil {
		return hub.Rotation{}, err
	}
	before, next, err := c.replaceIdentity()
	if err != nil {
		return hub.Rotation{}, err
	}
	c.config.Log.Info("this computer has another key", "before", before.Fingerprint(), "key", next.Fingerprint())
	rotation := hub.Rotation{Before: before.Fingerprint(), Fingerprint: next.Fingerprint()}
	var group sync.WaitGroup
	var mu sync.Mutex // guards rotation
	for _, one := range c.all() {
		if one.tls == nil {
			continue // ssh has its own keys
		}
		group.Go(func() {
			told := one.announce(ctx, next)
			mu.Lock()
			defer mu.Unlock()
			if told {
				rotation.Told = append(rotation.Told, one.entry.ID)
			} else {
				rotation.Later = append(rotation.Later, one.entry.ID)
			}
		})
	}
	group.Wait()
	return rotation, nil
}

// replaceIdentity stores a new key for this computer. The old one must have been read.
func (c *Connector) replaceIdentity() (before, next *secure.Identity, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := c.config.Home.Join(deviceKey)
	before = c.key
	if next, err = before.Rotate(); err == nil {
		err = next.Save(path)
	}
	if err != nil {
		return nil, nil, session.WrapError(err, session.CodeAgentInternal,
			"The new key cannot be kept, so the old one stays.", "Look at the disk that has "+path+".")
	}
	c.key = next
	return before, next, nil
}

// announce connects to an agent with the new key. The agent then closes the connections of the old one.
func (a *agent) announce(ctx context.Context, identity *secure.Identity) bool {
	if err := a.tls.become(identity); err != nil {
		a.connector.config.Log.Error("an agent is reached with the old key", "agent", a.entry.ID, "error", err)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	up, err := tunnel.Dial(ctx, a.tls, tunnel.Config{OneCarrier: true})
	if err != nil {
		a.connector.config.Log.Info("an agent learns of the new key later", "agent", a.entry.ID, "error", err)
		return false
	}
	_ = up.Close() // the agent knows the key now
	return true
}
