package remote

import (
	"context"
	"sync"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

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
