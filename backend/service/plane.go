// Package service runs the two programs that last: the control plane, which is the agent of this machine, the hub above
// it and the server that carries both over loopback ([Run]), and the agent of a machine by itself ([RunAgent]).
package service

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"slipway/backend/agentserver"
	"slipway/backend/api"
	"slipway/backend/autostart"
	"slipway/backend/daemon"
	"slipway/backend/demo"
	"slipway/backend/environments"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/notify"
	"slipway/backend/place"
	"slipway/backend/remote"
	"slipway/backend/server"
	"slipway/backend/session"
	"slipway/backend/settings"
	"slipway/backend/sshclient"
	"slipway/backend/store"
	"slipway/tunnel"
)

// Config says how to run a control plane.
type Config struct {
	Home      place.Home
	Engine    string // docker, sim or auto
	Port      int    // 0: the one used last, else UsualPort, else any
	UsualPort int    // 0: 7421
	Assets    fs.FS  // the built user interface
	// Notebook is the page of notebooks in simulated sessions; nil: they have none.
	Notebook fs.FS
	// SSHDir is the folder of the person's own configuration for ssh; empty: theirs.
	SSHDir string
	// Log gets what happens; nil: the log file in Home.
	Log *slog.Logger
	// Ready is called once, when the control plane answers; nil: nothing.
	Ready func(Ready)

	// DemoStarter starts a demonstration beside this; nil: it cannot.
	DemoStarter server.DemoStarter
	Demo        Demo          // that is served; nil: what is served is real
	Machine     *demo.Machine // to simulate; nil: the machine is real
	// Dialer replaces the dialers of agents on other machines; nil: they stay.
	Dialer func(hub.Entry, tunnel.Dialer) tunnel.Dialer
}

// Ready says where a control plane answers.
type Ready struct {
	URL      string // http://127.0.0.1:PORT
	LoginURL string // logs a browser in, once
	Engine   string // docker or sim
	Note     string // why this engine, if there is something to say
}

// firstWord is how long a start waits for the agent to tell what there is.
const firstWord = 3 * time.Second

// Run runs the control plane until ctx ends or somebody asks it to shut down. Sessions keep running. It fails with
// server_start_conflict while another one uses the folder, and with server_listen_conflict when the port asked for is
// taken.
func Run(ctx context.Context, config Config) error {
	if config.Demo == nil {
		if err := notADemo(config.Home); err != nil {
			return err
		}
		config.Demo = noDemo{}
	}
	return inFolder(ctx, config.Home, config.Home.LogFile(), config.Log, "the control plane",
		func(log *slog.Logger) error {
			config.Log = log
			return run(ctx, config)
		})
}

// run needs the lock.
func run(ctx context.Context, config Config) (err error) {
	log := config.Log
	if err := config.Home.RemoveServing(); err != nil { // of one that died
		return err
	}
	token, err := ownToken(config.Home)
	if err != nil {
		return err
	}
	stopDemo, err := config.Demo.Start(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopDemo()) }()
	machine, err := local.Open(ctx, local.Config{Home: config.Home, Engine: config.Engine,
		LogFile: config.Home.LogFile(), Demo: config.Machine, Notebook: config.Notebook, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machine.Close()) }()
	connector := remote.New(remote.Config{Home: config.Home, User: local.UserName(), Log: log.With("part", "remote"),
		Clock: machine.Clock, Dialer: config.Dialer})
	defer connector.Tidy()
	h, shelf, err := openHub(config.Home, machine, connector, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shelf.Close()) }()
	listener, port, err := listen(config.Port, config.UsualPort, shelf)
	if err != nil {
		return err
	}
	if err := shelf.Save(portKey, port); err != nil {
		log.Warn("the port is not remembered", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ssh, err := openSSH(config.Home, config.SSHDir)
	if err != nil {
		log.Warn("sessions are not reached by ssh", "error", err)
	}
	s := server.New(server.Config{Hub: h, Shelf: shelf, SSH: ssh, Token: token, Users: local.AllowedUsers(),
		Clock: machine.Clock, Assets: config.Assets, Demo: config.Demo.Shown(connector.Nudge),
		DemoStarter: config.DemoStarter, Shutdown: cancel, LogFile: config.Home.LogFile(),
		Log: log.With("part", "server")})
	log.Info("serving", "port", port, "engine", machine.Engine, "note", machine.Note, "version", place.Version, "pid",
		os.Getpid())
	p := plane{config: config, machine: machine, connector: connector, hub: h, server: s, listener: listener,
		port: port, agentServer: planeAgentServer(config, machine), ssh: ssh}
	err = p.run(ctx, cancel)
	log.Info("stopped")
	return err
}

// plane is a control plane that is put together and not yet running.
type plane struct {
	config      Config
	machine     *local.Machine
	connector   *remote.Connector
	hub         *hub.Hub
	server      *server.Server
	listener    net.Listener
	port        int
	agentServer *agentserver.Server // nil: it could not be opened
	ssh         *sshclient.Client   // nil: as agentServer
}

// planeAgentServer lets the person's other computers connect to this one by ssh as to any agent. A control plane does
// without it where it cannot be opened.
func planeAgentServer(config Config, machine *local.Machine) *agentserver.Server {
	settings, err := daemon.LoadSettings(config.Home)
	var s *agentserver.Server
	if err == nil {
		s, err = openAgentServer(config.Home, machine, agentserver.Config{Role: daemon.RolePlane,
			Listen: settings.Listen, Log: config.Log})
	}
	if err != nil {
		config.Log.Warn("other computers cannot connect to this agent", "error", err)
		return nil
	}
	return s
}

// run runs every part until ctx ends and waits for all of them: the server first, the agent last.
func (p *plane) run(ctx context.Context, cancel context.CancelFunc) error {
	agentCtx, stopAgent := context.WithCancel(context.WithoutCancel(ctx))
	hubCtx, stopHub := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAgent()
	defer stopHub()
	var agentDone, hubDone, agentServerDone sync.WaitGroup
	if p.agentServer != nil {
		agentServerDone.Go(func() {
			if err := p.agentServer.Run(ctx); err != nil && ctx.Err() == nil {
				p.config.Log.Warn("other computers can no longer connect to this agent", "error", err)
			}
		})
	}
	agentDone.Go(func() {
		if err := p.machine.Run(agentCtx); err != nil && agentCtx.Err() == nil {
			p.config.Log.Error("the agent ended", "error", err)
			cancel()
		}
	})
	hubDone.Go(func() { p.hub.Run(hubCtx) })
	hubDone.Go(func() { p.connector.Run(hubCtx) })
	if p.ssh != nil {
		hubDone.Go(func() { followSessions(hubCtx, p.hub, p.ssh, p.config.Log.With("part", "ssh")) })
	}
	err := p.answer(ctx)
	cancel()
	agentServerDone.Wait()
	stopHub()
	hubDone.Wait()
	stopAgent()
	agentDone.Wait()
	return err
}

// answer serves until ctx ends. Whoever looks for a control plane finds this one from the moment it answers to the
// moment it stops.
func (p *plane) answer(ctx context.Context) error {
	if err := p.config.Demo.Play(ctx, p.hub, p.machine); err != nil {
		return errors.Join(err, p.listener.Close())
	}
	var playing sync.WaitGroup
	story, over := context.WithCancel(ctx)
	playing.Go(func() { p.config.Demo.Continue(story, p.machine, p.config.Log) })
	defer playing.Wait()
	defer over()
	waiting, done := context.WithTimeout(ctx, firstWord)
	p.hub.WaitHeard(waiting)
	done()
	url := "http://127.0.0.1:" + strconv.Itoa(p.port)
	failed := make(chan error, 1)
	go func() { failed <- p.server.Run(ctx, p.listener) }()
	saved := p.config.Home.SaveServing(p.serving(url))
	if saved == nil && p.config.Ready != nil {
		login := url + "/login?code=" + p.server.LoginCode(server.FirstCodeLife)
		p.config.Ready(Ready{URL: url, LoginURL: login, Engine: p.machine.Engine, Note: p.machine.Note})
	}
	if saved != nil {
		return errors.Join(saved, p.listener.Close(), <-failed)
	}
	select {
	case err := <-failed:
		return errors.Join(err, p.config.Home.RemoveServing())
	case <-ctx.Done():
	}
	return errors.Join(p.config.Home.RemoveServing(), <-failed)
}

// serving is how others find the control plane.
func (p *plane) serving(url string) place.Serving {
	s := place.Serving{PID: os.Getpid(), Port: p.port, URL: url, Engine: p.machine.Engine, Version: place.Version}
	if m := p.config.Machine; m != nil {
		s.Demo, s.Speed, s.Real, s.Shown = true, float64(m.Time.Speed), m.Time.Real, m.Time.Shown
	}
	return s
}

// Demo is what a demonstration adds to a control plane.
type Demo interface {
	// Start starts what belongs to it outside the control plane, once the folder is locked.
	Start(ctx context.Context, log *slog.Logger) (stop func() error, err error)
	// Play plays the beginning of the story.
	Play(ctx context.Context, h *hub.Hub, machine *local.Machine) error
	// Continue plays the rest of it until ctx ends.
	Continue(ctx context.Context, machine *local.Machine, log *slog.Logger)
	// Shown is what the user interface shows of it. nudge has every connection looked at.
	Shown(nudge func()) server.Demo
}

// noDemo is the [Demo] of a control plane that is real.
type noDemo struct{}

func (noDemo) Start(context.Context, *slog.Logger) (func() error, error) {
	return func() error { return nil }, nil
}
func (noDemo) Play(context.Context, *hub.Hub, *local.Machine) error   { return nil }
func (noDemo) Continue(context.Context, *local.Machine, *slog.Logger) {}
func (noDemo) Shown(func()) server.Demo                               { return nil }

// openHub opens the hub over the agent of this machine and those that the connector connects to. The shelf that it
// returns holds what the hub keeps and is closed after it.
func openHub(home place.Home, machine *local.Machine, connector hub.Connector,
	log *slog.Logger) (*hub.Hub, *store.Shelf, error) {
	shelf, err := store.OpenShelf(filepath.Join(machine.Dir, "hub.db"))
	if err != nil {
		return nil, nil, err
	}
	h, err := hub.Open(hub.Config{
		Members:   []hub.Member{{Name: machine.Name, Local: true, Agent: machine.Agent.Agent()}},
		Connector: connector, Shelf: shelf, Catalogue: environments.In(home.Dir), Now: machine.Clock.Now,
		Settings: settings.New(home.Dir, nil), Notifier: notify.NewDesktop(nil),
		Autostart: autostartEntry(home, machine), Owner: machine.Owner, Version: BuildVersion(),
		Log: log.With("part", "hub"),
	})
	if err != nil {
		return nil, nil, errors.Join(err, shelf.Close())
	}
	return h, shelf, nil
}

// autostartEntry is what starts this program at login; nil for a demo, which is over when it ends, and where the
// program does not know its own file.
func autostartEntry(home place.Home, machine *local.Machine) hub.Autostarter {
	program, err := os.Executable()
	if err != nil || machine.Name != local.AgentName {
		return nil
	}
	return autostart.New(autostart.Config{System: runtime.GOOS, Program: program, Home: home})
}

// BuildVersion says what is running.
func BuildVersion() api.Version {
	return api.Version{Version: place.Version, Commit: place.Commit, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
}

// openSSH opens what ssh needs to connect to sessions, with the folder of the person's own configuration; empty:
// theirs.
func openSSH(home place.Home, person string) (*sshclient.Client, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if person == "" {
		person = personSSH(os.Getenv)
	}
	return sshclient.Open(sshclient.Config{Dir: home.Join("ssh"), Person: person, Program: program, Home: home.Dir})
}

// personSSH is the folder of the person's own configuration: SLIPWAY_SSH_DIR, or ~/.ssh as ssh itself finds it, which
// does not ask HOME.
func personSSH(env func(string) string) string {
	if dir := env("SLIPWAY_SSH_DIR"); dir != "" {
		return dir
	}
	if person, err := user.Current(); err == nil && person.HomeDir != "" {
		return filepath.Join(person.HomeDir, ".ssh")
	}
	return filepath.Join(env("HOME"), ".ssh")
}

// followSessions has the configuration for ssh follow the hub's sessions until ctx ends.
func followSessions(ctx context.Context, h *hub.Hub, client *sshclient.Client, log *slog.Logger) {
	watcher := h.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	live := map[session.ID]session.Session{}
	for {
		event, err := watcher.Next(ctx)
		if err != nil {
			return
		}
		switch {
		case event.Snapshot != nil:
			clear(live)
			for _, s := range event.Snapshot.Sessions {
				note(live, s.Session)
			}
		case event.Session != nil:
			note(live, event.Session.Session)
		case event.Removed != "":
			delete(live, session.ID(event.Removed))
		default:
			continue
		}
		if err := client.Keep(reachable(live)); err != nil {
			log.Warn("ssh does not know of the sessions", "error", err)
		}
	}
}

// note keeps a session that can be reached by ssh now or, once it is ready, will be.
func note(live map[session.ID]session.Session, s session.Session) {
	if !s.Status.Live() || s.Spec.NoSSH {
		delete(live, s.ID)
		return
	}
	live[s.ID] = s
}

// reachable are the sessions in the order of their creation.
func reachable(live map[session.ID]session.Session) []sshclient.Session {
	all := slices.SortedFunc(maps.Values(live), func(a, b session.Session) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	list := make([]sshclient.Session, len(all))
	for i, s := range all {
		list[i] = sshclient.Session{ID: s.ID, Name: s.Name, Agent: s.Agent}
		for _, k := range s.Kernels {
			if k.Name != session.MainKernel {
				list[i].Kernels = append(list[i].Kernels, k.Name)
			}
		}
	}
	return list
}
