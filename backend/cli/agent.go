package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/daemon"
	"slipway/backend/place"
)

// AgentOptions configures the agent of this machine.
type AgentOptions struct {
	Home     place.Home
	Settings daemon.Settings     // merged into those that are stored
	Ready    func(daemon.Status) // called once, when it responds; may be nil
}

// agentFlags configure a daemon. Flags that are not set keep their last value.
type agentFlags struct {
	engine, listen, keeper string
	attached               bool
	env                    []string
}

func (f *agentFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.engine, "engine", "",
		"container engine: docker, slurm, sim or auto (default docker, or slurm if only that is there)")
	cmd.Flags().StringVar(&f.listen, "listen", "",
		"take paired computers at host:port, for example 0.0.0.0:7442; off: none")
	cmd.Flags().StringArrayVar(&f.env, "env", nil,
		"NAME=VALUE for the agent, for example DOCKER_HOST=unix:///run/user/1000/docker.sock")
}

// addKeeper adds the flags for a start in the background.
func (f *agentFlags) addKeeper(cmd *cobra.Command) {
	f.add(cmd)
	cmd.Flags().StringVar(&f.keeper, "keeper", "",
		"what keeps it running: systemd or none (default: systemd where it can)")
}

func (f *agentFlags) addAttached(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.attached, "attached", false, "run in this process, which ends if the connection is lost")
}

func (f *agentFlags) settings() (daemon.Settings, error) {
	s := daemon.Settings{Engine: f.engine, Listen: f.listen}
	for _, entry := range f.env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return s, usagef("invalid variable %q: use NAME=VALUE", entry)
		}
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[name] = value
	}
	return s, nil
}

func (p agentCommands) agentCommand() *cobra.Command {
	var flags agentFlags
	var stdio, version, quiet bool
	cmd := &cobra.Command{Use: "agent", Short: "Manage agents on other machines, or run the agent of this machine",
		Long: `Subcommands manage the agents that this computer uses. Without a subcommand, agent runs the agent of this
machine without a user interface until it is interrupted. Its sessions keep running. Other
computers connect by SSH, which starts the agent when needed, or with --listen as paired
computers. The flags are saved: the next start does not need them.`}
	flags.add(cmd)
	cmd.Flags().BoolVar(&stdio, "stdio", false,
		"carry a tunnel from standard input and output to the agent, starting one where none runs")
	cmd.Flags().BoolVar(&version, "version", false, "print the version as JSON")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "print nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if version {
			return json.NewEncoder(p.Stdout).Encode(p.Version)
		}
		ctx, cancel := interruptible(cmd.Context())
		defer cancel()
		home, err := place.FindHome(p.Env)
		if err != nil {
			return err
		}
		if stdio {
			return daemon.Bridge(ctx, home, p.Stdin, p.raw.out)
		}
		opts := AgentOptions{Home: home}
		if opts.Settings, err = flags.settings(); err != nil {
			return err
		}
		if !quiet {
			opts.Ready = func(status daemon.Status) {
				fmt.Fprintf(p.Stdout, "The agent of this machine runs (engine: %s, process %d).\nCtrl-C stops it; "+
					"sessions go on.\n", status.Engine, status.PID)
			}
		}
		return unlessStopped(ctx, p.Agent(ctx, opts))
	}
	cmd.AddGroup(&cobra.Group{ID: groupFar, Title: "Agents on other machines:"},
		&cobra.Group{ID: groupHere, Title: "The agent of this machine (or another with --on):"})
	addTo(cmd, groupFar, p.nearCommands()...)
	addTo(cmd, groupHere, p.agentStartCommand(), p.agentStopCommand(), p.agentStatusCommand(),
		p.agentPairCommand(), p.agentClientsCommand(), p.agentRevokeCommand(), p.agentAuditCommand(),
		p.agentLimitCommand(), p.agentRotateCommand(), p.agentSwitchCommand(), p.agentUninstallCommand())
	return cmd
}

// atDaemon connects to the agent of this machine and calls work.
func (p agentCommands) atDaemon(work func(context.Context, *daemon.Client) error) runE {
	return p.here(func(ctx context.Context, home place.Home) error {
		c, err := daemon.Connect(ctx, home)
		if err != nil {
			return err
		}
		return work(ctx, c)
	})
}

func (p agentCommands) agentStartCommand() *cobra.Command {
	var flags agentFlags
	cmd := &cobra.Command{Use: "start", Short: "Start the agent of this machine in the background",
		Long: `Start keeps the agent running after you log out: as a service of your own systemd if it
keeps running after logout, otherwise as a process of its own.`}
	flags.addKeeper(cmd)
	return runs(cmd, p.here(func(ctx context.Context, home place.Home) error {
		settings, err := flags.settings()
		if err != nil {
			return err
		}
		return answered(p, p.statusFields)(daemon.Start(ctx, home, daemon.StartOptions{Program: p.Executable,
			Settings: settings, Keeper: flags.keeper}))
	}))
}

func (p agentCommands) agentStatusCommand() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "Show the status of this machine's agent",
		Long: "Exits with 5 if no agent is running.",
		RunE: p.atDaemon(func(ctx context.Context, c *daemon.Client) error {
			return answered(p, p.statusFields)(c.Status(ctx))
		})}
}

func (p agentCommands) statusFields(w io.Writer, status daemon.Status) {
	rows := []string{"Version", fmt.Sprintf("%s (%s)", status.Version, status.Commit),
		"Process", fmt.Sprint(status.PID), "Engine", status.Engine, "Sessions", fmt.Sprintf("%d live", status.Live),
		"Running for", span(p.Now().Sub(status.Started)), "Files", status.Home}
	if status.Role == daemon.RolePlane {
		rows = append(rows, "Ruled by", "a control plane")
	} else if status.Keeper == daemon.KeeperSystemd {
		rows = append(rows, "Kept by", "systemd")
	}
	if status.Listen != "" {
		rows = append(rows, "Listens on", status.Listen, "Key", status.Key)
	}
	fields(w, rows...)
}

func (p agentCommands) agentStopCommand() *cobra.Command {
	return &cobra.Command{Use: "stop", Short: "Stop the agent of this machine; sessions keep running",
		RunE: p.here(func(ctx context.Context, home place.Home) error {
			switch c, err := daemon.Connect(ctx, home); {
			case err == nil:
				return c.StopAndWait(ctx)
			case !errors.Is(err, daemon.ErrNotRunning):
				return err
			}
			p.notice("No agent is running.")
			return nil
		})}
}

// switchTime is how long a replacement may take.
const switchTime = 2 * time.Minute

func (p agentCommands) agentSwitchCommand() *cobra.Command {
	var flags agentFlags
	var to string
	cmd := &cobra.Command{Use: "switch [--to PROGRAM]",
		Short:  "Replace the agent of this machine with this program; sessions keep running",
		Hidden: true} // for remote upgrades
	flags.addKeeper(cmd)
	flags.addAttached(cmd)
	cmd.Flags().StringVar(&to, "to", "", "path of the program (default: this one)")
	return runs(cmd, p.here(func(ctx context.Context, home place.Home) error {
		ctx, cancel := context.WithTimeout(ctx, switchTime)
		defer cancel()
		if !flags.attached {
			return p.finishDetached(ctx, home)
		}
		settings, err := flags.settings()
		if err != nil {
			return err
		}
		opts := daemon.StartOptions{Program: to, Settings: settings, Keeper: flags.keeper}
		done, err := daemon.Switch(ctx, home, opts)
		if err != nil {
			return err
		}
		return json.NewEncoder(p.Stdout).Encode(done)
	}))
}

// finishDetached runs the same command in a detached process, which survives this one, and passes on its output.
func (p agentCommands) finishDetached(ctx context.Context, home place.Home) error {
	code, err := daemon.Detached(ctx, home, p.Executable, append(p.Args, "--attached"), p.Stdout, p.Stderr)
	if err == nil && code != 0 {
		err = &exitError{code: code}
	}
	return err
}

func (p agentCommands) agentUninstallCommand() *cobra.Command {
	var flags agentFlags
	var opts daemon.UninstallOptions
	cmd := &cobra.Command{Use: "uninstall", Short: "Stop the agent of this machine and remove Slipway's files",
		Long: `Uninstall stops the agent and removes its programs. If sessions are live, or with
--keep-data, its data stays, so that a reinstalled agent finds everything again.`}
	cmd.Flags().BoolVar(&opts.EndSessions, "end-sessions", false,
		"end running sessions; this deletes their home directories")
	cmd.Flags().BoolVar(&opts.KeepData, "keep-data", false, "keep history, usage and logs")
	flags.addAttached(cmd)
	_ = cmd.Flags().MarkHidden("attached") // it was just defined
	return runs(cmd, p.here(func(ctx context.Context, home place.Home) error {
		if !flags.attached {
			return p.finishDetached(ctx, home)
		}
		return answered(p, func(w io.Writer, left daemon.Uninstalled) {
			fmt.Fprintf(w, "The agent is removed; %s running.\n",
				plural(left.Live, "session keeps", "sessions keep"))
			for _, path := range left.Kept {
				fmt.Fprintln(w, "  left:", path)
			}
		})(daemon.Uninstall(ctx, home, opts))
	}))
}
