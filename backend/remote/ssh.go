package remote

import (
	"context"
	"errors"
	"slices"
	"sync"

	"slipway/backend/agentrpc"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/provision"
	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/askpass"
	"slipway/tunnel/sshstdio"
)

type sshConnection struct {
	*sshstdio.Remote
	asker *asker
}

func (c *Connector) openSSH(entry hub.Entry) (*sshConnection, error) {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return nil, err
	}
	host, err := sshstdio.ParseHost(address.SSH())
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

func (a *asker) Ask(ctx context.Context, q askpass.Question) (string, error) {
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

func (c *Connector) Probe(ctx context.Context, work *hub.Work, entry hub.Entry) error {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return err
	}
	if address.Scheme != hub.SchemeSSH {
		return c.probeTLS(ctx, work, entry, address)
	}
	return c.withSSH(work, entry, func(connection *sshConnection) error {
		_, err := provision.Probe(ctx, connection, c.options(work, entry))
		return err
	})
}

func (c *Connector) Add(ctx context.Context, work *hub.Work, entry hub.Entry,
	admit func(string) error) (hub.Entry, error) {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return entry, err
	}
	if address.Scheme != hub.SchemeSSH {
		paired, err := c.pair(ctx, work, address)
		if err == nil {
			entry.Fingerprint, entry.Owner = paired.Key, paired.Owner
		}
		return entry, err
	}
	connection, err := c.openSSH(entry)
	if err != nil {
		return entry, err
	}
	defer connection.asker.ask(work)()
	options := c.options(work, entry)
	options.Admit = func(found provision.Findings) error {
		if found.Running == nil {
			return nil
		}
		return admit(found.Running.Instance)
	}
	installed, err := provision.Install(ctx, connection, options)
	if err != nil {
		return entry, errors.Join(err, connection.Close())
	}
	entry.Dir = installed.Findings.Dir
	connection.SetCommand(provision.Bridge(entry.Dir))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh[entry.ID] = connection
	return entry, nil
}

func (c *Connector) Upgrade(ctx context.Context, work *hub.Work, entry hub.Entry) error {
	return c.withSSH(work, entry, func(connection *sshConnection) error {
		options := c.options(work, entry)
		options.Anyway = true // it runs there, so no finding prevents an upgrade
		_, err := provision.Install(ctx, connection, options)
		return err
	})
}

func (c *Connector) Remove(ctx context.Context, work *hub.Work, entry hub.Entry, uninstall bool) error {
	if !uninstall {
		return nil
	}
	return c.withSSH(work, entry, func(connection *sshConnection) error {
		return provision.Remove(ctx, connection, c.options(work, entry))
	})
}

// withSSH calls do with the connection to an agent's machine, unless this computer is only paired with the agent.
func (c *Connector) withSSH(work *hub.Work, entry hub.Entry, do func(*sshConnection) error) (err error) {
	if known := c.of(entry); known != nil {
		if known.ssh == nil {
			return session.NewError(session.CodeAgentUnavailable,
				"This computer is a paired client of the agent and has no login on its machine.",
				"Log in there and run slipway agent.")
		}
		defer known.ssh.asker.ask(work)()
		return do(known.ssh)
	}
	connection, err := c.openSSH(entry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	defer connection.asker.ask(work)()
	return do(connection)
}

func (c *Connector) options(work *hub.Work, entry hub.Entry) provision.Options {
	address, err := hub.ParseAddress(entry.Address)
	return provision.Options{Dir: entry.Dir, Programs: c.config.Programs, Version: place.Version, Report: report{work},
		Slurm: err == nil && address.Slurm}
}

// report reports provisioning and checks to an operation.
type report struct{ *hub.Work }

func (r report) Tell(check session.Check) {
	r.Work.Tell(hub.Step{Name: check.ID, Title: check.Title, State: hub.StepState(check.Result), Detail: check.Text,
		Remedy: check.Remedy})
}
