package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
)

const upgraded = "%s runs this version."

func (p agentCommands) agentUpgradeCommand() *cobra.Command {
	var all bool
	one := p.agentOperation("upgrade", "", upgraded, route.AgentUpgrade).RunE
	cmd := &cobra.Command{Use: "upgrade [AGENT] [--all]",
		Short: "Upgrade an agent, or all of them, to this version; their sessions keep running",
		Long: `With --all, upgrade goes through the agents of all other machines, one after the other. It
continues after one fails, and exits with 1 at the end if any did.`}
	cmd.Flags().BoolVar(&all, "all", false, "upgrade the agents of all other machines")
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		switch {
		case all && len(args) > 0:
			return usagef("give either an agent or --all")
		case all:
			return p.command(p.upgradeAll)(cmd, args)
		case len(args) == 0:
			return usagef("missing argument: an agent or --all")
		}
		return one(cmd, args)
	})
}

// upgradeAll upgrades every agent of another machine that has another version than the control plane.
func (p agentCommands) upgradeAll(ctx context.Context, c *caller, _ []string) error {
	version, err := route.Version.Ask(ctx, c)
	if err != nil {
		return err
	}
	agents, err := route.Agents.Ask(ctx, c)
	if err != nil {
		return err
	}
	ended, done, failed := []api.Operation{}, 0, 0
	for _, a := range agents {
		if a.Local {
			continue
		}
		if a.Connection.State == hub.LinkConnected && a.Version == version.Version {
			p.notice("%s runs %s already.", a.Name, version.Version)
			continue
		}
		p.notice("%s:", a.Name)
		o, err := c.operate(ctx, func() (api.Operation, error) {
			return begin(ctx, c, route.AgentUpgrade.At(a.Name))
		})
		if o.ID != "" {
			ended = append(ended, o)
		}
		switch {
		case err == nil:
			done++
			p.notice(upgraded, a.Name)
		case ctx.Err() != nil:
			return err
		default:
			failed++
			p.finish(err) // shows it; the exit code follows from all of them
		}
	}
	err = p.print(ended, func(w io.Writer) {
		fmt.Fprintf(w, "%d upgraded, %d failed.\n", done, failed)
	})
	return failedIf(failed > 0, err)
}
