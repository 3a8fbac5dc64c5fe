// Package local opens the agent of this machine with its engine, store and devices.
package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/doctor"
	"slipway/backend/agent/host"
	"slipway/backend/agent/queue"
	"slipway/backend/config"
	"slipway/backend/demo"
	"slipway/backend/engine"
	enginesim "slipway/backend/engine/sim"
	"slipway/backend/guest/payload"
	"slipway/backend/hostfs"
	"slipway/backend/hostlock"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/settings"
	"slipway/backend/store"
	"slipway/gpu"
	"slipway/gpu/clock"
	"slipway/gpu/devices"
	"slipway/gpu/procs"
	"slipway/gpu/sim"
)

// AgentName is the name of the agent on this machine, except in a demo.
const AgentName = "local"

// Machine is this machine with its agent.
type Machine struct {
	Agent    *agent.Agent
	Name     string // of the agent
	Owner    string // of the sessions that are launched here
	Engine   string // docker or sim
	Note     string // why this engine; may be empty
	Dir      string // folder of its files; the simulated engine has its own
	Instance string // random id of the agent's store
	Clock    *pace.Clock

	programs *programs   // nil on a real machine
	parts    []io.Closer // in the order of their opening
}

// Run runs the agent and, on a simulated machine, the programs of its sessions, until ctx ends.
func (m *Machine) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	if m.programs != nil {
		group.Go(func() { m.programs.run(ctx) })
	}
	err := m.Agent.Run(ctx)
	cancel()
	group.Wait()
	return err
}

// Close releases everything. Call it after Run has returned. Sessions keep running.
func (m *Machine) Close() (err error) {
	for _, part := range slices.Backward(m.parts) {
		err = errors.Join(err, part.Close())
	}
	return err
}

// Config configures the agent of this machine.
type Config struct {
	Home    place.Home
	Engine  string        // docker, slurm, sim, or auto for the first of them that is there
	LogFile string        // for hints
	Demo    *demo.Machine // to simulate; nil: none
	// Listen opens the ports of services; nil: [net.Listen] does.
	Listen   func(network, address string) (net.Listener, error)
	Notebook fs.FS // the page of notebooks in simulated sessions; nil: they have none
	Log      *slog.Logger
}

// Open opens the agent of this machine.
func Open(ctx context.Context, c Config) (m *Machine, err error) {
	choice, err := chooseEngine(ctx, c.Home, c.Engine)
	if err != nil {
		return nil, err
	}
	env, err := settings.New(c.Home.Dir, nil).Env()
	if err != nil {
		return nil, err
	}
	set, err := config.ReadAgent(env)
	if err != nil {
		return nil, err
	}
	m = &Machine{Name: AgentName, Owner: UserName(), Engine: choice.kind, Note: choice.note, Dir: choice.dir(c.Home)}
	if c.Demo != nil {
		m.Name, m.Owner, m.Clock = c.Demo.Name, demo.Person, c.Demo.Time.Clock()
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
			m = nil
		}
	}()
	books, err := store.Open(store.Config{Path: filepath.Join(m.Dir, "agent.db")})
	if err != nil {
		return m, err
	}
	m.parts, m.Instance = append(m.parts, books), books.Instance()
	if c.Demo != nil {
		if err := demo.AddPast(*c.Demo, m.Dir, books); err != nil {
			return m, err
		}
	}
	hardware, err := m.openHardware(c, choice, set.Library)
	if err != nil {
		return m, err
	}
	places := offLimits(c.Home)
	var files hostfs.FS
	if choice.kind == EngineSim {
		if files, err = m.makeDisk(c.Demo); err != nil {
			return m, err
		}
		places = offlimits.Places{Home: files.Home}
	}
	uid, gid := User()
	agentConfig := agent.Config{
		Name: m.Name, Dir: m.Dir, Engine: hardware.engine, Store: books, Owner: m.Owner,
		UID: uid, GID: gid, Version: place.Version, Log: c.Log.With("part", "agent"), OffLimits: places,
		Clock: m.Clock,
		Sessions: agent.SessionConfig{Idle: set.Idle, Processes: set.Processes, Warm: set.Warm, Admins: set.Admins,
			Arriving: set.Images, Planner: hardware.planner},
		Devices: agent.DeviceConfig{Source: hardware.devices, Giving: set.Shares, Guard: set.Guard,
			EndProcess: hardware.endProcess, MPSForUsers: set.MPSForUsers, Alone: hardware.alone},
		Host:   agent.HostConfig{Moment: clock.Now, Files: files, Services: set.Services},
		Doctor: doctor.Config{Note: m.Note, LogFile: c.LogFile, Guest: payload.Binary},
	}
	if hardware.planner != nil { // images are unpacked on the nodes when sessions start
		agentConfig.Sessions.Limits = host.Limits{Start: unpacking, Guest: unpacking}
	}
	if choice.kind != EngineDocker {
		agentConfig.Sessions.Warm = 0 // its containers start at once, or in jobs
	}
	if c.Demo != nil {
		agentConfig.Sessions.NewID = c.Demo.NewID
		agentConfig.Host = agent.HostConfig{Hostname: c.Demo.Host, Moment: c.Demo.Time.Moment(), Boot: c.Demo.Time.Boot,
			Files: files, Load: demo.Load(hardware.engine, m.Clock), Listen: c.Listen}
	}
	if m.Agent, err = agent.Open(agentConfig); err != nil {
		return m, err
	}
	m.parts = append(m.parts, m.Agent)
	return m, nil
}

// makeDisk makes the disk of a simulated machine in its data folder, unless it has one.
func (m *Machine) makeDisk(d *demo.Machine) (hostfs.FS, error) {
	seed := uint64(1)
	if d != nil {
		seed = d.Seed
	}
	disk := hostfs.FS{Root: filepath.Join(m.Dir, "disk"), Home: path.Join("/home", m.Owner)}
	if err := enginesim.MakeDisk(disk.Root, m.Owner, seed); err != nil {
		return disk, session.WrapError(err, session.CodeDiskFull,
			"The disk of the simulated machine cannot be created in "+m.Dir+".",
			"Make room there, or set SLIPWAY_HOME to another folder.")
	}
	return disk, nil
}

// unpacking is how long the start of a session on a node may take.
const unpacking = 20 * time.Minute

type hardware struct {
	engine     engine.Engine
	planner    queue.Planner // decides when sessions start; nil: the agent does
	devices    gpu.Source
	endProcess func(pid int, start uint64) error // asks a process to end; start identifies it if its number is reused
	// alone takes the lock under which agents of this machine allocate real devices; nil: the devices are simulated.
	alone func(context.Context) (func(), error)
}

// openHardware opens the engine and the devices. With the simulated engine these are the devices of the demo, or two.
// library is the path of NVIDIA's library; empty: a standard location.
func (m *Machine) openHardware(c Config, choice choice, library string) (h hardware, err error) {
	if choice.kind == EngineSlurm { // which gives the devices of its nodes itself
		if h.engine, h.planner, err = openSlurm(m.Dir, m.Instance, c.Log); err == nil {
			m.parts = append(m.parts, h.engine)
		}
		return h, err
	}
	simulated := newPrograms()
	if h.engine, err = choice.open(m.Dir, m.Instance, c.Demo, simulated, c.Notebook, c.Log); err != nil {
		return h, err
	}
	m.parts = append(m.parts, h.engine)
	if choice.kind != EngineSim {
		machine, err := devices.Open(devices.Config{Dir: m.Dir, Library: library, Log: c.Log.With("part", "devices")})
		if err != nil {
			return h, session.WrapError(err, session.CodeDiskFull,
				"The reader of devices cannot be put into "+m.Dir+".",
				"Make room there, or set SLIPWAY_HOME to another folder.")
		}
		m.parts = append(m.parts, machine)
		h.devices, h.endProcess = machine, procs.NewTable(procs.Config{}).End
		h.alone = hostlock.Of("slipway-devices.lock").Acquire
		return h, nil
	}
	simConfig := sim.Config{Seed: 1, Cards: []sim.Card{sim.Workstation, sim.Workstation}, Clock: clock.Now,
		Desktop: true}
	if d := c.Demo; d != nil {
		simConfig = sim.Config{Seed: d.Seed, Cards: d.Cards, Clock: d.Time.Moment(), Desktop: d.Desktop,
			Foreign: d.Foreign}
	}
	machine := sim.Open(simConfig)
	m.parts = append(m.parts, machine)
	simulated.begin(h.engine, machine, m.Clock)
	m.programs = simulated
	h.devices = machine
	h.endProcess = func(pid int, _ uint64) error {
		machine.End(pid)
		return nil
	}
	return h, nil
}

func offLimits(home place.Home) offlimits.Places {
	person, _ := os.UserHomeDir() // "" if there is none
	return offlimits.Places{Own: append(home.RuntimeDirs(), home.Dir), Home: person}
}

// User returns the ids of the owner of the sessions: the user of this process, or who became root with sudo.
func User() (uid, gid int) {
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

// AllowedUsers returns the ids of the users of this computer who may connect: the user of this process, that of [User],
// and root. It is empty if the operating system has no such ids.
func AllowedUsers() []int {
	if os.Getuid() < 0 {
		return nil
	}
	uid, _ := User()
	return []int{0, os.Getuid(), uid}
}

// UserName returns the name of the user of [User].
func UserName() string {
	uid, _ := User()
	if found, err := user.LookupId(strconv.Itoa(uid)); err == nil && found.Username != "" {
		return filepath.Base(found.Username)
	}
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	return "uid-" + strconv.Itoa(uid)
}
