package remote

import (
	"context"
	"slices"
	"sync"

	"slipway/backend/agentrpc"
	"slipway/backend/hub"
	"slipway/backend/provision"
	"slipway/tunnel"
	"slipway/tunnel/sshstdio"
)

type sshConnection struct {
	*sshstdio.Remote
	asker *asker
}

func (c *Connector) openSSH(entry hub.Entry) (*sshConnection, error) {
	host, err := sshstdio.ParseHost(entry.Address)
	if err != nil {
		return nil, agentrpc.FaultError(err)
	}
	connection := &sshConnection{asker: &asker{}}
	config := sshstdio.Config{Host: host, Asker: connection.asker, ConfigFile: c.config.SSHConfig, Folder: c.sockets,
		SSH: c.config.SSH}
	if entry.Dir != "" {
		config.Command = provision.Bridge(entry.Dir)
	}
	connection.Remote, err = sshstdio.Open(config)
	if err != nil {
		return nil, agentrpc.FaultError(err)
	}
	return connection, nil
}

// asker passes questions to the operation that a person watches, and fails without one.
type asker struct {
	mu   sync.Mutex // guards work, the newest last
	work []*hub.Work
}

// ask passes questions to an operation until end is called.
func (a *asker) ask(work *hub.Work) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.work = append(a.work, work)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		i := slices.Index(a.work, work)
		a.work = slices.Delete(a.work, i, i+1)
	}
}

func (a *asker) Ask(ctx context.Context, q sshstdio.Question) (string, error) {
	a.mu.Lock()
	var work *hub.Work
	if len(a.work) > 0 {
		work = a.work[len(a.work)-1]
	}
	a.mu.Unlock()
	if work == nil {
		return "", tunnel.ErrWouldAsk
	}
	return work.Ask(ctx, hub.Prompt{Kind: hub.PromptKind(q.Kind), Text: q.Text, Secret: q.Secret, Again: q.Again,
		Fingerprint: q.Fingerprint, Host: q.Host})
}
