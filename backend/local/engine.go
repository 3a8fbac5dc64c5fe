package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"slipway/backend/agent/queue"
	"slipway/backend/demo"
	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/sim"
	"slipway/backend/engine/slurm"
	"slipway/backend/guest/payload"
	"slipway/backend/place"
	"slipway/backend/session"
	commands "slipway/backend/slurm"
	"slipway/backend/store"
)

// The engines.
const (
	EngineAuto   = "auto"
	EngineDocker = "docker"
	EngineSim    = "sim"
	EngineSlurm  = "slurm"

	probeTime = 5 * time.Second // how long auto waits for Docker
)

// choice is a kind of engine with the reason for it, if any.
type choice struct{ kind, note string }

// dir returns the folder of the files of sessions. Those of two engines never share one.
func (c choice) dir(home place.Home) string {
	if c.kind == EngineDocker {
		return home.Dir
	}
	return home.Join(c.kind)
}

// chooseEngine chooses the kind of engine. auto is Docker if it responds or has live sessions of ours, else Slurm where
// its commands are, else the simulated one. On Linux it is Docker instead of the simulated one without a kind.
func chooseEngine(ctx context.Context, home place.Home, kind string) (choice, error) {
	switch kind {
	case EngineDocker, EngineSim, EngineSlurm:
		return choice{kind: kind}, nil
	case EngineAuto, "":
	default:
		return choice{}, session.NewError(session.CodeServerInvalid, fmt.Sprintf("%q is not an engine.", kind),
			"Choose docker, slurm, sim or auto.")
	}
	reason := probeDocker(ctx, home)
	if reason == "" {
		return choice{kind: EngineDocker}, nil
	}
	if live := liveSessions(home); live > 0 {
		return choice{EngineDocker,
			"Docker cannot be used now, but sessions live in it, so Slipway waits for it: " + reason}, nil
	}
	if _, err := exec.LookPath("sbatch"); err == nil {
		return choice{kind: EngineSlurm}, nil // also where its controller does not answer: sessions wait for it
	}
	if kind == "" && runtime.GOOS == "linux" {
		return choice{kind: EngineDocker}, nil // sessions wait for it
	}
	return choice{EngineSim, "Docker cannot be used on this machine, so nothing really runs: " + reason}, nil
}

// probeDocker returns why Docker cannot run sessions, or "".
func probeDocker(ctx context.Context, home place.Home) string {
	e, err := docker.Open(docker.Config{Dir: home.Dir, Guest: payload.Binary})
	if err != nil {
		return session.AsError(err, session.CodeServerInvalid).Message
	}
	defer e.Close() //nolint:errcheck // it was only asked for information
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	info, err := e.Info(ctx)
	if err != nil {
		return session.AsError(err, session.CodeEngineUnavailable).Message
	}
	for _, warning := range info.Warnings {
		switch warning.Code {
		case session.CodeTooOld, session.CodeNotLinux:
			return warning.Title + "."
		}
	}
	if _, err := payload.Binary(info.Arch); err != nil {
		return "this program holds no guest for linux/" + info.Arch + "; make guest builds it."
	}
	return ""
}

// liveSessions counts the live sessions in the store of the agent that uses Docker.
func liveSessions(home place.Home) int {
	path := filepath.Join(home.Dir, "agent.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	books, err := store.Open(store.Config{Path: path})
	if err != nil {
		return 0
	}
	defer books.Close() //nolint:errcheck // it was only read
	live, _, _ := books.Live()
	return len(live)
}

// open opens the engine with its files in dir. A simulated one has the CPUs and memory of machine, if that is not nil.
func (c choice) open(dir, instance string, machine *demo.Machine, devices sim.Devices, notebook fs.FS,
	log *slog.Logger) (engine.Engine, error) {
	log = log.With("part", "engine")
	if c.kind == EngineSim {
		config := sim.Config{Dir: dir, Instance: instance, Devices: devices, Notebook: notebook, Log: log}
		if machine != nil {
			config.Clock = machine.Time.Clock()
			config.CPUs, config.Memory = machine.CPUs, machine.Memory
		}
		e, err := sim.Open(config)
		if err != nil {
			return engine.Engine{}, err
		}
		simulated := engine.Of(e)
		if c.note != "" {
			simulated.Host = &noted{Host: e, warning: session.Warning{Code: session.CodeSimulated,
				Title: "Sessions are simulated", Text: c.note, At: time.Now()}}
		}
		return simulated, nil
	}
	e, err := docker.Open(docker.Config{Dir: dir, Instance: instance, Guest: payload.Binary, Log: log})
	if err != nil {
		return engine.Engine{}, err
	}
	return engine.Of(e), nil
}

// openSlurm opens the cluster of this login node, with its files in dir, and what decides there when sessions start.
func openSlurm(dir, instance string, log *slog.Logger) (engine.Engine, queue.Planner, error) {
	uid, _ := User()
	log = log.With("part", "engine")
	e, err := slurm.Open(slurm.Config{Dir: dir, Instance: instance, Guest: payload.Binary, Log: log, Explore: true,
		Commands: commands.New(commands.Config{User: strconv.Itoa(uid), Log: log})})
	if err != nil {
		return engine.Engine{}, nil, err
	}
	return engine.Of(e), slurm.NewPlanner(e), nil
}

type noted struct {
	engine.Host
	warning session.Warning
}

func (n *noted) Info(ctx context.Context) (engine.Info, error) {
	info, err := n.Host.Info(ctx)
	if err == nil {
		info.Warnings = append(info.Warnings, n.warning)
	}
	return info, err
}
