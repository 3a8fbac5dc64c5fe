package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/place"
)

// hereOr is here, or the work near with the agent that the flag names, through
// the control plane.
func (p daemonCommands) hereOr(on *string, near func(context.Context, *client, string) error,
	work func(context.Context, place.Home) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if *on == "" {
			return p.here(work)(cmd, args)
		}
		return p.command(func(ctx context.Context, c *client, _ []string) error { return near(ctx, c, *on) })(cmd, args)
	}
}

// pairNear has another agent make a code.
func (p daemonCommands) pairNear(req *api.PairRequest) func(context.Context, *client, string) error {
	return func(ctx context.Context, c *client, agent string) error {
		var code api.PairCode
		raw, err := c.call(ctx, http.MethodPost, agentPath(agent, "pair"), req, &code)
		if err != nil {
			return err
		}
		return p.print(raw, func(w io.Writer) {
			fields(w, [][2]string{{"Code", code.Code}, {"Address", code.Address},
				{"Good for", code.ExpiresAt.Sub(p.Now()).Round(time.Minute).String()}})
		})
	}
}

// devicesNear lists the devices of another agent.
func (p daemonCommands) devicesNear(ctx context.Context, c *client, agent string) error {
	var devices []api.PairedDevice
	raw, err := c.get(ctx, agentPath(agent, "devices"), &devices)
	if err != nil {
		return err
	}
	return p.print(raw, func(w io.Writer) {
		rows := [][]string{{"NAME", "KEY", "OWNER", "ROLE", "PAIRED", "SEEN"}}
		for _, d := range devices {
			seen := "never"
			if d.LastSeen != nil {
				seen = span(p.Now().Sub(*d.LastSeen)) + " ago"
			}
			name := d.Name
			if d.This {
				name += " (this computer)"
			}
			rows = append(rows, []string{name, d.Fingerprint, d.Owner, d.Role, span(p.Now().Sub(d.AddedAt)) + " ago",
				seen})
		}
		columns(w, rows)
	})
}

// revokeNear has another agent let a device in no more.
func (p daemonCommands) revokeNear(device string) func(context.Context, *client, string) error {
	return func(ctx context.Context, c *client, agent string) error {
		if _, err := c.call(ctx, http.MethodDelete, agentPath(agent, "devices", device), nil, nil); err != nil {
			return err
		}
		p.notice("%s is revoked.", fmt.Sprintf("%q", device))
		return nil
	}
}
