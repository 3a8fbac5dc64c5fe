package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"slipway/backend/agentserver"
	"slipway/backend/daemon"
	"slipway/backend/demo"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/session"
)

// AgentConfig configures an agent without a control plane.
type AgentConfig struct {
	Home     place.Home
	Settings daemon.Settings         // merged into those of the folder
	Log      *slog.Logger            // nil: the daemon's log file in Home
	Ready    func(daemon.Status)     // called once when the agent responds; may be nil
	Notebook fs.FS                   // the page of notebooks in simulated sessions; nil: they have none
	Machine  *demo.Machine           // to simulate; nil: the machine is real
	Acts     []demo.Act              // to play on it
	Services []session.DeployRequest // to deploy on it after the acts
}

// RunAgent runs the agent of this machine without a hub until ctx ends or it is stopped. Sessions keep running. It
// fails with server_start_conflict while another process uses the folder.
func RunAgent(ctx context.Context, config AgentConfig) error {
	if config.Machine == nil {
		if err := notADemo(config.Home); err != nil {
			return err
		}
	}
	return inFolder(ctx, config.Home, daemon.LogFile(config.Home), config.Log, "the agent",
		func(log *slog.Logger) error {
			config.Log = log
			return runAgent(ctx, config)
		})
}

// runAgent needs the lock of the folder.
func runAgent(ctx context.Context, config AgentConfig) (err error) {
	settings, err := agentSettings(config)
	if err != nil {
		return err
	}
	machine, err := local.Open(ctx, local.Config{Home: config.Home, Engine: settings.Engine,
		LogFile: daemon.LogFile(config.Home), Demo: config.Machine, Notebook: config.Notebook, Log: config.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machine.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server, err := openAgentServer(config.Home, machine, agentserver.Config{Role: daemon.RoleAgent,
		Listen: settings.Listen, Stop: stop, Log: config.Log})
	if err != nil {
		return err
	}
	agentCtx, stopAgent := context.WithCancel(context.WithoutCancel(ctx))
	var agentDone sync.WaitGroup
	agentDone.Go(func() {
		if err := machine.Run(agentCtx); err != nil && agentCtx.Err() == nil {
			config.Log.Error("the agent ended", "error", err)
			stop()
		}
	})
	if config.Machine != nil {
		err := demo.Play(ctx, machine.Agent.Launch, config.Acts)
		if err == nil {
			err = demo.Deploy(ctx, machine.Agent, config.Services)
		}
		if err != nil {
			config.Log.Error("the story is not played to its end", "error", err)
		}
		agentDone.Go(func() {
			if err := demo.KeepPlaying(agentCtx, machine.Agent, *config.Machine); err != nil {
				config.Log.Error("the story stopped", "error", err)
			}
		})
		agentDone.Go(func() {
			err := demo.UseServices(agentCtx, machine.Agent, config.Services, *config.Machine)
			if err != nil && agentCtx.Err() == nil {
				config.Log.Error("services of the story are not used", "error", err)
			}
		})
	}
	config.Log.Info("serving an agent", "engine", machine.Engine, "version", place.Version, "pid", os.Getpid(),
		"listen", settings.Listen)
	if config.Ready != nil {
		status, _ := server.Status(ctx)
		config.Ready(status)
	}
	err = server.Run(ctx)
	stopAgent()
	agentDone.Wait()
	config.Log.Info("stopped")
	return err
}

// agentSettings merges and stores the settings, and sets their environment variables.
func agentSettings(config AgentConfig) (daemon.Settings, error) {
	settings, err := daemon.LoadSettings(config.Home)
	if err != nil {
		return settings, err
	}
	settings = settings.Merge(config.Settings)
	if err := settings.Save(config.Home); err != nil {
		return settings, err
	}
	for name, value := range settings.Env {
		if err := os.Setenv(name, value); err != nil {
			return settings, session.WrapError(err, session.CodeServerInvalid,
				fmt.Sprintf("The variable %q of the agent's settings cannot be set.", name),
				"Correct its settings: slipway agent start --env")
		}
	}
	return settings, nil
}

// openAgentServer serves the agent of this machine to other computers.
func openAgentServer(home place.Home, machine *local.Machine, config agentserver.Config) (*agentserver.Server, error) {
	config.Home, config.Agent, config.Inner = home, machine.Agent.Agent(), machine.Agent
	config.Engine, config.Instance = machine.Engine, machine.Instance
	config.User, config.UserIDs = local.UserName(), local.AllowedUsers()
	config.Log = config.Log.With("part", "agentserver")
	return agentserver.Open(config)
}
