package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/daemon"
)

func (p daemonCommands) agentRotateCommand() *cobra.Command {
	var on string
	var client bool
	cmd := &cobra.Command{
		Use:   "rotate [--on AGENT | --client]",
		Short: "Change the key of the agent of this machine, or of this computer",
		Long: `Rotate creates a new key, signed by the old one. Computers that are paired with the agent
accept it automatically: at once if they are connected, otherwise when they reconnect.
Nothing needs to be paired again, and copies of the old key no longer work.

With --client, rotate changes the key of this computer.`,
	}
	p.onFlag(cmd, &on, "the agent of another machine")
	cmd.Flags().BoolVar(&client, "client", false, "change the key of this computer")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case client && on != "":
			return usagef("use either --client (this computer) or --on (another machine)")
		case client:
			return p.command(func(ctx context.Context, c *caller, _ []string) error {
				return p.rotateNear(ctx, c, route.KeyRotate)
			})(cmd, args)
		}
		near := func(ctx context.Context, c *caller, agent string) error {
			return p.rotateNear(ctx, c, route.AgentRotate.At(agent))
		}
		return p.hereOr(&on, near, p.rotateHere)(cmd, args)
	}
	return cmd
}

// rotateHere changes the key of the agent of this machine.
func (p daemonCommands) rotateHere(ctx context.Context, c *daemon.Client) error {
	rotated, err := c.RotateKey(ctx)
	if err != nil {
		return err
	}
	return p.print(rotated, func(w io.Writer) {
		fields(w, "Old key", rotated.Before, "New key", rotated.Key,
			"Told at once", fmt.Sprintf("%d clients", rotated.Clients))
	})
}

// rotateNear has the control plane change a key.
func (p daemonCommands) rotateNear(ctx context.Context, c *caller,
	at route.Route[route.None, api.KeyRotation]) error {
	return show(ctx, c, at, func(w io.Writer, rotated api.KeyRotation) {
		fields(w, "Old key", rotated.Before, "New key", rotated.Fingerprint,
			"Told at once", strings.Join(rotated.Told, ", "), "Told later", strings.Join(rotated.Later, ", "))
	})
}
