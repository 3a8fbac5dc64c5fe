package backend

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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

// reacher reaches agents on other machines: by the system's ssh, or as a paired
// device. It implements [hub.Reacher].
type reacher struct {
	home     place.Home
	sockets  string // folder of those of connections by ssh
	log      *slog.Logger
	programs provision.Programs
	// sshConfig stands in for the person's ssh configuration, and ssh for the
	// system's client; empty: those.
	sshConfig, ssh string
	// through has every dialer go through something; nil: nothing.
	through func(tunnel.Dialer) tunnel.Dialer
	// clock is what people are told the times of connections by.
	clock *pace.Clock

	// mu guards everything below.
	mu      sync.Mutex
	device  *secure.Identity          // this computer's own key; nil: not read yet
	remotes map[string]*remote        // by the ids of their entries
	fresh   map[string]*sshConnection // logins of agents just added, by the ids of their entries
}

var _ hub.Reacher = (*reacher)(nil)

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

// newReacher needs the lock of home, since it removes what an earlier run left.
func newReacher(home place.Home, log *slog.Logger) *reacher {
	sockets := socketsOf(home)
	if err := sshstdio.Sweep(sockets); err != nil {
		log.Warn("what an earlier run left of its connections cannot be removed", "error", err)
	}
	r := &reacher{home: home, sockets: sockets, log: log, sshConfig: os.Getenv(sshConfigVariable),
		remotes: map[string]*remote{}, fresh: map[string]*sshConnection{}}
	self, err := os.Executable()
	if err != nil {
		log.Warn("this program does not know where it is, so it cannot bring itself to other machines", "error", err)
	}
	r.programs = provision.Beside{Dir: filepath.Dir(self), Self: self}
	return r
}

// tidy removes the directory of sockets where that is not in the home, and what
// holds it, as far as they are empty.
func (r *reacher) tidy() {
	if dir := filepath.Dir(r.sockets); dir != r.home.Dir {
		_ = os.Remove(r.sockets) // it may never have been made
		_ = os.Remove(dir)       // the agent of another program may have sockets there
	}
}

// Run looks after every line when the network changes or the machine wakes,
// until ctx ends.
func (r *reacher) Run(ctx context.Context) {
	err := netwatch.Run(ctx, func(netwatch.Change) {
		for _, one := range r.all() {
			one.line.Nudge()
		}
	})
	if ctx.Err() == nil && err != nil {
		r.log.Warn("changes of the network are not told, so that lost connections are found out later", "error", err)
	}
}

func (r *reacher) all() []*remote {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*remote, 0, len(r.remotes))
	for _, one := range r.remotes {
		all = append(all, one)
	}
	return all
}

// identity is this computer's own key, which is made when it is needed first.
func (r *reacher) identity() (*secure.Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.device != nil {
		return r.device, nil
	}
	path := r.home.Join(deviceKey)
	identity, err := secure.OpenIdentity(path)
	if err != nil {
		return nil, &session.Error{Code: "agent_connect_no-key", Message: "This computer's key cannot be read.",
			Hint: "Mend or remove " + path + "; without it this computer must be paired anew.", Err: err}
	}
	r.device = identity
	return identity, nil
}

func (r *reacher) Open(entry hub.Entry, listed hub.Listed) (hub.Remote, error) {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return nil, err
	}
	one := newRemote(r, entry, listed)
	if address.Scheme == hub.SchemeSSH {
		err = one.bySSH(r.login(entry))
	} else {
		err = one.byTLS(address)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remotes[entry.ID] = one
	return one, nil
}

// login takes over the connection that an agent was just added by, or prepares
// another.
func (r *reacher) login(entry hub.Entry) (*sshConnection, error) {
	r.mu.Lock()
	fresh := r.fresh[entry.ID]
	delete(r.fresh, entry.ID)
	r.mu.Unlock()
	if fresh != nil {
		return fresh, nil
	}
	return r.openSSH(entry)
}

// forget ends what Open has made.
func (r *reacher) forget(one *remote) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.remotes[one.entry.ID] == one {
		delete(r.remotes, one.entry.ID)
	}
}

// of returns the way to an agent of the directory, nil where it has none.
func (r *reacher) of(entry hub.Entry) *remote {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.remotes[entry.ID]
}

func (r *reacher) Probe(ctx context.Context, work *hub.Work, entry hub.Entry) error {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return err
	}
	if address.Scheme != hub.SchemeSSH {
		return r.probeTLS(ctx, work, entry, address)
	}
	return r.withSSH(work, entry, func(connection *sshConnection) error {
		_, err := provision.Probe(ctx, connection, r.options(work, entry))
		return err
	})
}

func (r *reacher) Add(ctx context.Context, work *hub.Work, entry hub.Entry,
	admit func(string) error) (hub.Entry, error) {
	address, err := hub.ParseAddress(entry.Address)
	if err != nil {
		return entry, err
	}
	if address.Scheme != hub.SchemeSSH {
		return r.pair(ctx, work, entry, address)
	}
	connection, err := r.openSSH(entry)
	if err != nil {
		return entry, err
	}
	defer connection.asker.ask(work)()
	options := r.options(work, entry)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh[entry.ID] = connection
	return entry, nil
}

func (r *reacher) Upgrade(ctx context.Context, work *hub.Work, entry hub.Entry) error {
	return r.withSSH(work, entry, func(connection *sshConnection) error {
		options := r.options(work, entry)
		options.Anyway = true // it runs there: what a probe finds is no reason to keep it old
		_, err := provision.Install(ctx, connection, options)
		return err
	})
}

func (r *reacher) Remove(ctx context.Context, work *hub.Work, entry hub.Entry, uninstall bool) error {
	if !uninstall {
		return nil
	}
	return r.withSSH(work, entry, func(connection *sshConnection) error {
		_, err := provision.Remove(ctx, connection, r.options(work, entry), provision.RemoveOptions{EndSessions: true})
		return err
	})
}

// withSSH calls do with the connection to an agent's machine, with a person to
// ask. Whoever is reached as a paired device runs no commands there.
func (r *reacher) withSSH(work *hub.Work, entry hub.Entry, do func(*sshConnection) error) (err error) {
	if known := r.of(entry); known != nil {
		if known.ssh == nil {
			return &session.Error{Code: "agent_upgrade_unavailable",
				Message: "This agent is reached as a paired device, by which no program can be run on its machine.",
				Hint:    "Log in there and do it with slipway agent."}
		}
		defer known.ssh.asker.ask(work)()
		return do(known.ssh)
	}
	connection, err := r.openSSH(entry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	defer connection.asker.ask(work)()
	return do(connection)
}

func (r *reacher) options(work *hub.Work, entry hub.Entry) provision.Options {
	return provision.Options{Dir: entry.Dir, Programs: r.programs, Version: place.Version, Report: report{work}}
}

// report tells an operation how provisioning goes.
type report struct{ work *hub.Work }

var _ provision.Report = report{}

func (r report) Tell(step provision.Step) {
	r.work.Tell(hub.Step{Name: step.Name, Title: step.Title, State: hub.StepState(step.State), Detail: step.Detail,
		Remedy: step.Remedy})
}

func (r report) Progress(done, total int64) { r.work.Progress(done, total) }

// sshConnection is a machine behind ssh with whoever can be asked for it.
type sshConnection struct {
	*sshstdio.Remote
	asker *asker
}

func (r *reacher) openSSH(entry hub.Entry) (*sshConnection, error) {
	host, err := sshstdio.ParseHost(entry.Address)
	if err != nil {
		return nil, asFault(err)
	}
	connection := &sshConnection{asker: &asker{}}
	config := sshstdio.Config{Host: host, Asker: connection.asker, ConfigFile: r.sshConfig, Folder: r.sockets,
		SSH: r.ssh}
	if entry.Dir != "" {
		config.Command = provision.Bridge(entry.Dir)
	}
	connection.Remote, err = sshstdio.Open(config)
	if err != nil {
		return nil, asFault(err)
	}
	return connection, nil
}

// asker hands questions to the operation that a person is watching. Without one
// nobody can be asked.
type asker struct {
	mu   sync.Mutex // guards work
	work []*hub.Work
}

var _ sshstdio.Asker = (*asker)(nil)

// ask has questions go to an operation until the returned function is called.
func (a *asker) ask(work *hub.Work) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.work = append(a.work, work)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i, one := range a.work {
			if one == work {
				a.work = append(a.work[:i:i], a.work[i+1:]...)
				return
			}
		}
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
	kind := hub.PromptKind(q.Kind)
	if q.Kind == sshstdio.KindNotice {
		kind = hub.PromptNotice
	}
	return work.Ask(ctx, hub.Prompt{Kind: kind, Text: q.Text, Secret: q.Secret, Again: q.Again,
		Fingerprint: q.Fingerprint, Host: q.Host})
}
