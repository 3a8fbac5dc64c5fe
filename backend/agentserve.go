package backend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"slipway/backend/daemon"
	"slipway/backend/demo"
	"slipway/backend/place"
	"slipway/backend/session"
)

// AgentConfig says how to run the agent of a machine by itself.
type AgentConfig struct {
	Home place.Home
	// Settings are merged into those that the folder keeps.
	Settings daemon.Settings
	// Log gets what happens; nil: the daemon's log file in Home.
	Log *slog.Logger
	// Ready is called once, when the agent answers; nil: nothing.
	Ready func(daemon.Status)
	// Notebook is the page of notebooks in simulated sessions; nil: they have none.
	Notebook fs.FS

	machine *demo.Machine // that it pretends to rule; nil: it is real
	acts    []demo.Act    // that are played on it
}

// ServeAgent runs the agent of this machine without a hub until ctx ends or
// somebody asks it to stop. Sessions go on. It fails with agent_start_conflict
// while another process rules the folder.
func ServeAgent(ctx context.Context, config AgentConfig) error {
	if config.machine == nil {
		if err := notADemo(config.Home); err != nil {
			return err
		}
	}
	lock, err := hold(ctx, config.Home)
	if err != nil {
		return asStart(err)
	}
	parts := closers{lock}
	if config.Log == nil {
		file, err := openLog(daemon.LogFile(config.Home), logMost)
		if err != nil {
			return errors.Join(err, parts.Close())
		}
		parts = append(parts, file)
		config.Log = slog.New(slog.NewTextHandler(file, nil))
	}
	err = serveAgent(ctx, config)
	if err != nil {
		config.Log.Error("the agent failed", "error", err)
	}
	return errors.Join(err, parts.Close())
}

// asStart tells of a folder that is held in the words of an agent's start.
func asStart(err error) error {
	if e := session.AsError(err, ""); e.Code == "server_start_conflict" {
		return &session.Error{Code: "agent_start_conflict", Message: e.Message, Hint: e.Hint, Err: err}
	}
	return err
}

// serveAgent needs the lock.
func serveAgent(ctx context.Context, config AgentConfig) (err error) {
	settings, err := daemon.LoadSettings(config.Home)
	if err != nil {
		return err
	}
	settings = settings.Merge(config.Settings)
	if err := settings.Save(config.Home); err != nil {
		return err
	}
	for name, value := range settings.Env {
		if err := os.Setenv(name, value); err != nil {
			return &session.Error{Code: "agent_start_invalid",
				Message: fmt.Sprintf("The variable %q of the agent's settings cannot be set.", name),
				Hint:    "Mend its settings: slipway agent start --env", Err: err}
		}
	}
	kind := settings.Engine
	if kind == "" {
		kind = EngineDocker
	}
	local, err := openLocal(ctx, localConfig{home: config.Home, kind: kind, logFile: daemon.LogFile(config.Home),
		machine: config.machine, notebook: config.Notebook, log: config.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d, err := openDoor(doorConfig{home: config.Home, local: local, role: daemon.RoleAgent, listen: settings.Listen,
		stop: stop, log: config.Log.With("part", "door")})
	if err != nil {
		return err
	}
	agentCtx, stopAgent := context.WithCancel(context.WithoutCancel(ctx))
	var agentDone sync.WaitGroup
	agentDone.Go(func() {
		if err := local.Run(agentCtx); err != nil && agentCtx.Err() == nil {
			config.Log.Error("the agent ended", "error", err)
			stop()
		}
	})
	if err := demo.Play(ctx, local.Agent, config.acts); err != nil {
		config.Log.Error("the story is not told to its end", "error", err)
	}
	if config.machine != nil {
		agentDone.Go(func() {
			if err := demo.KeepPlaying(agentCtx, local.Agent, *config.machine); err != nil {
				config.Log.Error("the story does not go on", "error", err)
			}
		})
	}
	config.Log.Info("serving an agent", "engine", local.Kind, "version", place.Version, "pid", os.Getpid(), "listen",
		settings.Listen)
	if config.Ready != nil {
		status, _ := d.Status(ctx)
		config.Ready(status)
	}
	err = d.run(ctx)
	stopAgent()
	agentDone.Wait()
	config.Log.Info("stopped")
	return err
}
