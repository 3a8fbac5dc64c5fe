// Package backend puts the control plane together. It is the only place where
// concrete parts meet: an engine, its store and the agent that rules this
// machine ([OpenAgent]), the hub above it ([OpenHub]), and the server that
// carries both over loopback ([Serve]). [Main] is the program without a window.
package backend

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"slipway/backend/agent"
	"slipway/backend/agent/doctor"
	"slipway/backend/api"
	"slipway/backend/autostart"
	"slipway/backend/demo"
	"slipway/backend/engine"
	"slipway/backend/environments"
	"slipway/backend/guest/payload"
	"slipway/backend/hostlock"
	"slipway/backend/hub"
	"slipway/backend/notify"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/place"
	"slipway/backend/settings"
	"slipway/backend/store"
	"slipway/gpu"
	"slipway/gpu/clock"
)

// LocalAgent is the name of the agent on this machine, unless it is a demo's.
const LocalAgent = "local"

// Local is this machine's agent with everything that it stands on.
type Local struct {
	Agent  *agent.Agent
	Name   string // of the agent
	Owner  string // whose sessions are those of nobody else
	Engine engine.Engine
	Kind   string // docker or sim
	Note   string // why it is this kind, where that needs saying; empty: as asked for
	Dir    string // folder of its files; the simulated engine has its own
	// Instance is the random id of the agent's books.
	Instance string
	// Devices finds and measures the machine's devices.
	Devices gpu.Source
	// Clock and Moment are what the machine goes by.
	Clock    *pace.Clock
	Moment   func() gpu.Moment
	programs *programs // what simulated sessions do with simulated devices; nil on a real machine
	// endProcess asks a process on a device to end, as its number and start name it.
	endProcess func(pid int, start uint64) error
	parts      closers
}

// closers are closed in the reverse order of their opening.
type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for i := len(c) - 1; i >= 0; i-- {
		errs = append(errs, c[i].Close())
	}
	return errors.Join(errs...)
}

// Run runs the agent, and on a simulated machine what its sessions do with
// devices, until ctx ends.
func (l *Local) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	if l.programs != nil {
		group.Go(func() { l.programs.run(ctx) })
	}
	err := l.Agent.Run(ctx)
	cancel()
	group.Wait()
	return err
}

// Close gives everything up. It is called after Run has returned.
// Sessions go on.
func (l *Local) Close() error { return l.parts.Close() }

// OpenAgent opens the agent of this machine in the folder home, on the engine
// asked for: docker, sim, or auto for Docker where it answers.
func OpenAgent(ctx context.Context, home place.Home, kind string, log *slog.Logger) (*Local, error) {
	return openLocal(ctx, localConfig{home: home, kind: kind, logFile: home.LogFile(), log: log})
}

// localConfig says what agent to open.
type localConfig struct {
	home     place.Home
	kind     string
	logFile  string        // for people to be told
	machine  *demo.Machine // that is pretended to be; nil: none
	notebook fs.FS         // the page of simulated notebooks; nil: there are none
	log      *slog.Logger
}

func openLocal(ctx context.Context, config localConfig) (*Local, error) {
	home, log := config.home, config.log
	choice, err := chooseEngine(ctx, home, config.kind)
	if err != nil {
		return nil, err
	}
	l := &Local{Name: LocalAgent, Owner: personName(), Kind: choice.kind, Note: choice.note, Dir: choice.dir(home)}
	l.Moment = clock.Now
	if config.machine != nil {
		l.Name, l.Owner = config.machine.Name, demo.Person
		l.Clock, l.Moment = config.machine.Time.Clock(), config.machine.Time.Moment()
	}
	books, err := store.Open(store.Config{Path: filepath.Join(l.Dir, "agent.db")})
	if err != nil {
		return nil, err
	}
	l.parts, l.Instance = append(l.parts, books), books.Instance()
	if err := livedBefore(config.machine, l.Dir, books, log); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	pretended := newPrograms()
	l.Engine, err = choice.open(l.Dir, books.Instance(), config.machine, pretended, config.notebook, log)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.parts = append(l.parts, l.Engine)
	env, err := settings.New(home.Dir, nil).Env()
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	shares, err := giving(env)
	idle, guard, idleErr := reclaiming(env)
	processes, mps, boundsErr := bounds(env)
	quota, quotaErr := receiving(env)
	if err = errors.Join(err, idleErr, boundsErr, quotaErr); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := openDevices(l, config.machine, pretended, env(libraryVariable), log); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	uid, gid := person()
	agentConfig := agent.Config{
		Name: l.Name, Dir: l.Dir, Engine: l.Engine, Store: books, Owner: l.Owner,
		UID: uid, GID: gid, Version: place.Version, Log: log.With("part", "agent"), OffLimits: offLimits(home),
		GPU: l.Devices, Giving: shares, Clock: l.Clock, Moment: l.Moment, Idle: idle, Guard: guard,
		EndProcess: l.endProcess, Processes: processes, MPSForUsers: mps, Images: quota,
		Alone:  aloneOn(l.Kind),
		Doctor: doctor.Config{Note: l.Note, LogFile: config.logFile, Guest: payload.Binary},
	}
	if config.machine != nil {
		agentConfig.Hostname, agentConfig.Load = config.machine.Host, pretendedLoad(l.Engine, l.Clock)
		agentConfig.Boot, agentConfig.NewID = config.machine.Time.Boot, config.machine.NewID
	}
	if l.Agent, err = agent.Open(ctx, agentConfig); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.parts = append(l.parts, l.Agent)
	return l, nil
}

// offLimits are the places of this person's that no session may see.
func offLimits(home place.Home) offlimits.Places {
	person, _ := os.UserHomeDir() // without one there is none to keep from others
	return offlimits.Places{Own: append(home.RuntimeDirs(), home.Dir), Home: person}
}

// aloneOn is the lock that agents of this machine take while they hand out real
// devices. Nobody else uses those of a simulated machine.
func aloneOn(kind string) func(context.Context) (func(), error) {
	if kind == EngineSim {
		return nil
	}
	return hostlock.Of("slipway-devices.lock").Acquire
}

// OpenHub opens the hub over the local agent and those that reach leads to; nil:
// there are no others. The shelf that it returns holds what the hub keeps and is
// closed after it.
func OpenHub(home place.Home, local *Local, reach hub.Reacher, log *slog.Logger) (*hub.Hub, *store.Shelf, error) {
	shelf, err := store.OpenShelf(filepath.Join(local.Dir, "hub.db"))
	if err != nil {
		return nil, nil, err
	}
	h, err := hub.Open(hub.Config{
		Members: []hub.Member{{Name: local.Name, Local: true, Agent: local.Agent}},
		Reacher: reach, Shelf: shelf, Catalogue: environments.In(home.Dir), Now: local.Clock.Now,
		Settings: settings.New(home.Dir, nil), Notifier: notify.NewDesktop(nil), Autostart: autostartEntry(home, local),
		Owner: local.Owner, Version: hub.Version(BuildVersion()), Log: log.With("part", "hub"),
	})
	if err != nil {
		return nil, nil, errors.Join(err, shelf.Close())
	}
	return h, shelf, nil
}

// autostartEntry is what starts this program at login; nil for a demo, which is
// over when it ends, and where the program does not know its own place.
func autostartEntry(home place.Home, local *Local) hub.Autostarter {
	program, err := os.Executable()
	if err != nil || local.Name != LocalAgent {
		return nil
	}
	return autostart.New(autostart.Config{System: runtime.GOOS, Program: program, Home: home})
}

// BuildVersion says what is running.
func BuildVersion() api.Version {
	return api.Version{Version: place.Version, Commit: place.Commit, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH}
}

// person returns the ids of whoever the sessions belong to: the user of this
// process, or the one who became root through sudo.
func person() (uid, gid int) {
	uid, gid = max(os.Getuid(), 0), max(os.Getgid(), 0)
	if uid != 0 {
		return uid, gid
	}
	sudoUID, uidErr := strconv.Atoi(os.Getenv("SUDO_UID"))
	sudoGID, gidErr := strconv.Atoi(os.Getenv("SUDO_GID"))
	if uidErr != nil || gidErr != nil || sudoUID <= 0 {
		return uid, gid
	}
	return sudoUID, sudoGID
}

// users are the ids of the users of this computer who may connect: whoever this
// process runs as, the person behind sudo, and root, from whom nothing is hidden.
// It is empty where the operating system has no such ids.
func users() []int {
	if os.Getuid() < 0 {
		return nil
	}
	uid, _ := person()
	return []int{0, os.Getuid(), uid}
}

// personName is the name that sessions are owned under.
func personName() string {
	uid, _ := person()
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil && found.Username != "" {
		return filepath.Base(found.Username)
	}
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "uid-" + strconv.Itoa(uid)
}
