package agent

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"strconv"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// networkOf is the name of a session's private network; empty where it has only
// one kernel.
func networkOf(s session.Session) string {
	if s.Spec.Cluster < 2 {
		return ""
	}
	return "slipway-" + string(s.ID)
}

// createNetwork makes the private network of a cluster session.
func (a *Agent) createNetwork(ctx context.Context, l *launch) error {
	name := networkOf(l.session)
	if name == "" {
		return errSkipped
	}
	a.noteNetwork(l.session.ID, true)
	return a.engine.CreateNetwork(ctx, name, map[string]string{
		engine.LabelSession: string(l.session.ID), engine.LabelInstance: a.store.Instance(), engine.LabelAgent: a.config.Name,
	})
}

func (a *Agent) removeNetwork(ctx context.Context, s session.Session) error {
	name := networkOf(s)
	if name == "" {
		return nil
	}
	if err := a.engine.RemoveNetwork(ctx, name); err != nil {
		return err
	}
	a.noteNetwork(s.ID, false)
	return nil
}

// noteNetwork remembers that a session's network may be there, or that it is
// gone.
func (a *Agent) noteNetwork(id session.ID, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if there {
		a.networks[id] = true
	} else {
		delete(a.networks, id)
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
		if networkOf(s) != "" && s.Attempt > 0 {
			a.noteNetwork(s.ID, true)
		}
	}
	return nil
}

// sweepNetworks removes networks that no session needs.
func (a *Agent) sweepNetworks(ctx context.Context) error {
	a.mu.Lock()
	var ids []session.ID
	for id := range a.networks {
		ids = append(ids, id)
	}
	a.mu.Unlock()
	for _, id := range ids {
		s, err := a.store.Get(id)
		switch {
		case session.CodeOf(err) == session.Code("session_read_not-found"):
			s = session.Session{ID: id, Spec: session.Spec{Cluster: 2}}
		case err != nil:
			return err
		case s.Status.HoldsResources():
			continue
		}
		err = within(ctx, a.limits.Call, "network", func(ctx context.Context) error { return a.removeNetwork(ctx, s) })
		if err != nil {
			if unavailable(err) {
				return err
			}
			a.log.Warn("a network that no session needs could not be removed", "session", id, "err", err)
		}
	}
	return nil
}

// clusterOf lets the kernels of a session reach each other by ssh. The keys are
// made from the agent's secret, so that making a container again, after a crash
// too, gives the same.
func (a *Agent) clusterOf(s session.Session, k session.Kernel) *engine.Cluster {
	if networkOf(s) == "" {
		return nil
	}
	hosts := make([]string, len(s.Kernels))
	for i, kernel := range s.Kernels {
		hosts[i] = kernel.Hostname
	}
	attempt := strconv.Itoa(s.Attempt)
	return &engine.Cluster{
		Self: k.Hostname, Hosts: hosts,
		HostKey: a.sshKey("host", string(s.ID), attempt), UserKey: a.sshKey("user", string(s.ID), attempt),
	}
}

// sshKey makes a private key of Ed25519 in OpenSSH's format from the agent's
// secret and a purpose.
func (a *Agent) sshKey(purpose ...string) string {
	mac := hmac.New(sha256.New, a.store.Secret())
	mac.Write([]byte(strings.Join(purpose, "\x00"))) // a hash never fails
	key := ed25519.NewKeyFromSeed(mac.Sum(nil))
	return string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: openSSH(key)}))
}

// openSSH writes a key as PROTOCOL.key of OpenSSH describes it, without a
// passphrase.
func openSSH(key ed25519.PrivateKey) []byte {
	const kind, block = "ssh-ed25519", 8
	text := func(to []byte, s []byte) []byte {
		return append(binary.BigEndian.AppendUint32(to, uint32(len(s))), s...)
	}
	point := []byte(key.Public().(ed25519.PublicKey))
	public := text(text(nil, []byte(kind)), point)
	check := binary.BigEndian.Uint32(point)
	private := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, check), check)
	private = text(text(text(private, []byte(kind)), point), key)
	private = text(private, []byte("slipway"))
	for i := byte(1); len(private)%block != 0; i++ {
		private = append(private, i)
	}
	out := []byte("openssh-key-v1\x00")
	out = text(text(text(out, []byte("none")), []byte("none")), nil)
	out = binary.BigEndian.AppendUint32(out, 1)
	return text(text(out, public), private)
}

// clusterEnv tells a kernel's processes of the others.
func clusterEnv(s session.Session, number int) []session.EnvVar {
	count := max(1, len(s.Kernels))
	hosts := make([]string, count)
	for i := range hosts {
		hosts[i] = session.KernelName(i)
	}
	role, replicas := "main", "main:1"
	if number > 0 {
		role = "sub"
	}
	if count > 1 {
		replicas += ",sub:" + strconv.Itoa(count-1)
	}
	return []session.EnvVar{
		{Name: "SLIPWAY_CLUSTER_SIZE", Value: strconv.Itoa(count)},
		{Name: "SLIPWAY_CLUSTER_HOSTS", Value: strings.Join(hosts, ",")},
		{Name: "SLIPWAY_CLUSTER_HOST", Value: session.KernelName(number)},
		{Name: "SLIPWAY_CLUSTER_ROLE", Value: role},
		{Name: "SLIPWAY_CLUSTER_IDX", Value: strconv.Itoa(number)},
		{Name: "SLIPWAY_CLUSTER_REPLICAS", Value: replicas},
	}
}

// allContainers returns the engine's ids of a session's containers, those that
// are known.
func allContainers(s session.Session) []string {
	var ids []string
	for _, k := range s.Kernels {
		if k.Container != "" {
			ids = append(ids, k.Container)
		}
	}
	return ids
}
