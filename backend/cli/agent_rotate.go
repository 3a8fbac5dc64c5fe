package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/daemon"
	"slipway/backend/place"
)

func (p *program) agentRotateCommand() *cobra.Command {
	var on string
	var device bool
	cmd := &cobra.Command{
		Use:   "rotate [--on AGENT | --device]",
		Short: "Change the key of the agent of this machine, or of this computer",
		Long: `Rotate makes a new key that the old one signs. Computers that are paired with the agent
follow it by that signature without a question, at once where they are connected and
otherwise when they return. Nobody needs to be paired anew, and whoever has a copy of the
old key can no longer pass for the agent.

With --device it is the key by which agents know this computer.`,
		Args: exactly(0, "no argument"),
	}
	p.onFlag(cmd, &on, "the agent of another machine")
	cmd.Flags().BoolVar(&device, "device", false, "change the key by which agents know this computer")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case device && on != "":
			return usagef("--device is about this computer, --on about another; choose one")
		case device:
			return p.command(func(ctx context.Context, c *client, _ []string) error {
				return p.rotateNear(ctx, c, "/api/v1/key/rotate")
			})(cmd, args)
		}
		near := func(ctx context.Context, c *client, agent string) error {
			return p.rotateNear(ctx, c, agentPath(agent, "rotate"))
		}
		return p.hereOr(&on, near, p.rotateHere)(cmd, args)
	}
	return cmd
}

// rotateHere changes the key of the agent of this machine.
func (p *program) rotateHere(ctx context.Context, home place.Home) error {
	c, err := daemon.Connect(ctx, home)
	if err != nil {
		return err
	}
	rotated, err := c.Rotate(ctx)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(rotated)
	if err != nil {
		return err
	}
	return p.print(raw, func(w io.Writer) {
		fields(w, [][2]string{{"Old key", rotated.Before}, {"New key", rotated.Key},
			{"Told at once", fmt.Sprintf("%d devices", rotated.Devices)}})
	})
}

// rotateNear has the control plane change a key.
func (p *program) rotateNear(ctx context.Context, c *client, path string) error {
	var rotated api.KeyRotation
	raw, err := c.call(ctx, http.MethodPost, path, nil, &rotated)
	if err != nil {
		return err
	}
	return p.print(raw, func(w io.Writer) {
		fields(w, [][2]string{{"Old key", rotated.Before}, {"New key", rotated.Fingerprint},
			{"Told at once", strings.Join(rotated.Told, ", ")}, {"Told later", strings.Join(rotated.Later, ", ")}})
	})
}
