package backend

import (
	"context"
	"sync"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/hub"
	"slipway/backend/provision"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/secure"
)

// announceTime is how long an agent may take to learn of this computer's new
// key. One that is not reached learns of it later.
const announceTime = 5 * time.Second

func (r *reacher) Rotate(ctx context.Context) (hub.Rotation, error) {
	if _, err := r.identity(); err != nil {
		return hub.Rotation{}, err
	}
	before, next, err := r.replaceIdentity()
	if err != nil {
		return hub.Rotation{}, err
	}
	r.log.Info("this computer has another key", "before", before.Fingerprint(), "key", next.Fingerprint())
	rotation := hub.Rotation{Before: before.Fingerprint(), Fingerprint: next.Fingerprint()}
	var group sync.WaitGroup
	var mu sync.Mutex // guards rotation
	for _, one := range r.all() {
		if one.tls == nil {
			continue // it is reached by ssh, which has keys of its own
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

// replaceIdentity keeps another key for this computer. The old one has to have
// been read.
func (r *reacher) replaceIdentity() (before, next *secure.Identity, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := r.home.Join(deviceKey)
	before = r.device
	if next, err = before.Rotate(); err == nil {
		err = next.Save(path)
	}
	if err != nil {
		return nil, nil, &session.Error{Code: "agent_rotate_internal-error",
			Message: "The new key cannot be kept, so the old one stays.", Hint: "Look at the disk that has " + path +
				".", Err: err}
	}
	r.device = next
	return before, next, nil
}

// announce shows an agent this computer's new key. The agent ends the
// connections of the old key by that, and the line makes a new one.
func (m *remote) announce(ctx context.Context, identity *secure.Identity) bool {
	if err := m.tls.become(identity); err != nil {
		m.reacher.log.Error("an agent is reached with the old key", "agent", m.entry.ID, "error", err)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	up, err := tunnel.Dial(ctx, m.tls, tunnel.Config{OneCarrier: true})
	if err != nil {
		m.reacher.log.Info("an agent learns of the new key later", "agent", m.entry.ID, "error", err)
		return false
	}
	_ = up.Close() // the agent knows by now
	return true
}

func (m *remote) RotateKey(ctx context.Context) (hub.Rotation, error) {
	if err := m.keeper(); err != nil {
		return hub.Rotation{}, &session.Error{Code: "agent_rotate_unavailable",
			Message: "The key of this agent is changed on its own machine.", Hint: "Log in there: slipway agent rotate",
			Err: err}
	}
	var rotated daemon.Rotated
	if err := provision.Ask(ctx, m.ssh, m.entry.Dir, &rotated, "rotate"); err != nil {
		return hub.Rotation{}, err
	}
	return hub.Rotation{Before: rotated.Before, Fingerprint: rotated.Key}, nil
}
