// Package service runs the control plane ([Run]), which consists of the agent of this machine, the hub and the server,
// and an agent without a control plane ([RunAgent]).
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
	"runtime/debug"
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
	"slipway/backend/updates"
	"slipway/backend/vault"
	"slipway/tunnel"
)

// Config configures a control plane.
type Config struct {
	Home      place.Home
	Engine    string       // docker, slurm, sim or auto
	Port      int          // 0: the one used last, else UsualPort, else any
	UsualPort int          // 0: 7421
	Assets    fs.FS        // the built user interface
	Notebook  fs.FS        // the page of notebooks in simulated sessions; nil: they have none
	SSHDir    string       // folder of the person's ssh configuration; empty: the usual one
	Log       *slog.Logger // nil: the log file in Home
	Ready     func(Ready)  // called once when the control plane responds; may be nil

	DemoStarter server.DemoStarter                           // starts a demo next to this control plane; may be nil
	Demo        Demo                                         // the demo that is served; nil: none
	Machine     *demo.Machine                                // to simulate; nil: the machine is real
	Dialer      func(hub.Entry, tunnel.Dialer) tunnel.Dialer // replaces the dialers of other agents; may be nil
}

// Ready says where a control plane is.
type Ready struct {
	URL      string // http://127.0.0.1:PORT
	LoginURL string // logs a browser in, once
	Engine   string // docker or sim
	Note     string // why this engine; may be empty
}

// firstWord is how long a start waits for the first state of the agent.
const firstWord = 3 * time.Second

// Run runs the control plane until ctx ends or it is shut down. Sessions keep running. It fails with
// server_start_conflict while another one uses the folder, and with server_listen_conflict if the requested port is in
// use.
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

// run needs the lock of the folder.
func run(ctx context.Context, config Config) (err error) {
	log := config.Log
	if err := config.Home.RemoveServing(); err != nil { // of one that crashed
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
	shelf, err := store.OpenShelf(filepath.Join(machine.Dir, "hub.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shelf.Close()) }()
	h, err := openHub(config.Home, machine, connector, shelf, log)
	if err != nil {
		return err
	}
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
	checker := updates.New(updates.Config{Address: releaseHost(h), Version: place.Version, Shelf: shelf,
		Log: log.With("part", "updates")})
	s := server.New(server.Config{Hub: h, Shelf: shelf, SSH: ssh, Token: token, Users: local.AllowedUsers(),
		Clock: machine.Clock, Assets: config.Assets, Demo: config.Demo.Shown(connector.Nudge),
		DemoStarter: config.DemoStarter, Updates: checker, Shutdown: cancel, LogFile: config.Home.LogFile(),
		Log: log.With("part", "server")})
	log.Info("serving", "port", port, "engine", machine.Engine, "note", machine.Note, "version", place.Version, "pid",
		os.Getpid())
	p := plane{config: config, machine: machine, connector: connector, hub: h, server: s, listener: listener,
		port: port, agentServer: planeAgentServer(config, machine), ssh: ssh, updates: checker}
	err = p.run(ctx, cancel)
	log.Info("stopped")
	return err
}

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
	updates     *updates.Checker
}

// planeAgentServer lets other computers connect to this agent. If that fails, the control plane runs without it.
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

// run runs all parts until ctx ends. It stops the server first and the agent last.
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
	hubDone.Go(func() { p.updates.Run(hubCtx) })
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

// answer serves until ctx ends. Clients can find the control plane as long as it responds.
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
	debug.FreeOSMemory() // starting needed twice the memory of being idle
	select {
	case err := <-failed:
		return errors.Join(err, p.config.Home.RemoveServing())
	case <-ctx.Done():
	}
	return errors.Join(p.config.Home.RemoveServing(), <-failed)
}

// serving returns what clients need to find the control plane.
func (p *plane) serving(url string) place.Serving {
	s := place.Serving{PID: os.Getpid(), Port: p.port, URL: url, Engine: p.machine.Engine, Version: place.Version}
	if m := p.config.Machine; m != nil {
		s.Demo, s.Speed, s.Real, s.Shown = true, float64(m.Time.Speed), m.Time.Real, m.Time.Shown
	}
	return s
}

// Demo is what a demonstration adds to a control plane.
type Demo interface {
	// Start starts its other parts, once the folder is locked.
	Start(ctx context.Context, log *slog.Logger) (stop func() error, err error)
	// Play plays the beginning of the story.
	Play(ctx context.Context, h *hub.Hub, machine *local.Machine) error
	// Continue plays the rest until ctx ends.
	Continue(ctx context.Context, machine *local.Machine, log *slog.Logger)
	// Shown returns what the user interface shows. nudge checks every connection now.
	Shown(nudge func()) server.Demo
}

// noDemo is the [Demo] of a real control plane.
type noDemo struct{}

func (noDemo) Start(context.Context, *slog.Logger) (func() error, error) {
	return func() error { return nil }, nil
}
func (noDemo) Play(context.Context, *hub.Hub, *local.Machine) error   { return nil }
func (noDemo) Continue(context.Context, *local.Machine, *slog.Logger) {}
func (noDemo) Shown(func()) server.Demo                               { return nil }

// openHub opens the hub over the agent of this machine and those that the connector connects to.
func openHub(home place.Home, machine *local.Machine, connector *remote.Connector, shelf *store.Shelf,
	log *slog.Logger) (*hub.Hub, error) {
	var cloner hub.Cloner
	if machine.Engine != local.EngineSim {
		cloner = connector
	}
	var author func(context.Context) session.GitAuthor
	if machine.Name == local.AgentName { // not of a demo
		author = connector.Author
	}
	return hub.Open(hub.Config{
		Members:   []hub.Member{{Name: machine.Name, Local: true, Agent: machine.Agent.Agent()}},
		Connector: connector, Cloner: cloner, Author: author, Shelf: shelf, Catalogue: environments.In(home.Dir),
		Now:      machine.Clock.Now,
		Settings: settings.New(home.Dir, nil), Notifier: notify.NewDesktop(nil),
		Vault:     vault.New(keyringFor(home, machine), home.Join("secrets.json")),
		Autostart: autostartEntry(home, machine), Owner: machine.Owner, Version: BuildVersion(),
		Log: log.With("part", "hub"),
	})
}

// releaseHost returns the setting that is in force when it is called.
func releaseHost(h *hub.Hub) func() string {
	return func() string {
		_, state, _ := h.SettingsState() // without a file that can be read there is no host
		address, _ := state.Values["updates"].(string)
		return address
	}
}

// keyringFor returns the name under which the keyring of this computer lists secrets. It is empty without a keyring,
// for a demo, and with SLIPWAY_KEYRING=off.
func keyringFor(home place.Home, machine *local.Machine) string {
	if machine.Name != local.AgentName || os.Getenv("SLIPWAY_KEYRING") == "off" || !notify.HasBus(nil) {
		return ""
	}
	return "slipway " + home.Dir
}

// autostartEntry starts this program at login. It is nil for a demo, and if the path of the program is unknown.
func autostartEntry(home place.Home, machine *local.Machine) hub.Autostarter {
	program, err := os.Executable()
	if err != nil || machine.Name != local.AgentName {
		return nil
	}
	return autostart.New(autostart.Config{System: runtime.GOOS, Program: program, Home: home})
}

// BuildVersion returns the version of this program.
func BuildVersion() api.Version {
	return api.Version{Version: place.Version, Commit: place.Commit, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
}

// openSSH opens the ssh configuration of sessions. person is the folder of the person's own; empty: the usual one.
func openSSH(home place.Home, person string) (*sshclient.Client, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if person == "" {
		person = personSSH()
	}
	return sshclient.Open(sshclient.Config{Dir: home.Join("ssh"), Person: person, Program: program, Home: home.Dir})
}

// personSSH returns the folder of the person's own configuration: SLIPWAY_SSH_DIR, or ~/.ssh as ssh finds it, which
// ignores HOME.
func personSSH() string {
	if dir := os.Getenv("SLIPWAY_SSH_DIR"); dir != "" {
		return dir
	}
	if person, err := user.Current(); err == nil && person.HomeDir != "" {
		return filepath.Join(person.HomeDir, ".ssh")
	}
	return filepath.Join(os.Getenv("HOME"), ".ssh")
}

// followSessions updates the ssh configuration with the hub's sessions until ctx ends.
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

// note adds a live session with SSH, and removes others.
func note(live map[session.ID]session.Session, s session.Session) {
	if !s.Status.Live() || s.Spec.NoSSH {
		delete(live, s.ID)
		return
	}
	live[s.ID] = s
}

// reachable returns the sessions in the order of their creation.
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
