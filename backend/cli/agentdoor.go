package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/daemon"
)

// hereOr asks the agent of this machine, or does the work near with the agent
// that the flag names, through the control plane.
func (p daemonCommands) hereOr(on *string, near func(context.Context, *caller, string) error,
	work func(context.Context, *daemon.Client) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if *on == "" {
			return p.atDaemon(work)(cmd, args)
		}
		return p.command(func(ctx context.Context, c *caller, _ []string) error { return near(ctx, c, *on) })(cmd, args)
	}
}

// pairNear has another agent make a code.
func (p daemonCommands) pairNear(req *api.PairRequest) func(context.Context, *caller, string) error {
	return func(ctx context.Context, c *caller, agent string) error {
		return show(ctx, c, route.PairCode.At(agent).Body(*req), func(w io.Writer, code api.PairCode) {
			fields(w, "Code", code.Code, "Address", code.Address,
				"Good for", code.ExpiresAt.Sub(p.Now()).Round(time.Minute).String())
		})
	}
}

// clientsNear lists the clients of another agent.
func (p daemonCommands) clientsNear(ctx context.Context, c *caller, agent string) error {
	return show(ctx, c, route.PairedClients.At(agent), func(w io.Writer, clients []api.PairedClient) {
		table(w, "NAME,KEY,OWNER,ROLE,PAIRED,SEEN", clients, func(d api.PairedClient) []string {
			seen := "never"
			if d.LastSeen != nil {
				seen = p.age(*d.LastSeen)
			}
			name := d.Name
			if d.This {
				name += " (this computer)"
			}
			return []string{name, d.Fingerprint, d.Owner, d.Role, p.age(d.AddedAt), seen}
		})
	})
}

// revokeNear ends a client's access to another agent.
func (p daemonCommands) revokeNear(client string) func(context.Context, *caller, string) error {
	return func(ctx context.Context, c *caller, agent string) error {
		if _, err := route.ClientRevoke.At(agent, client).Ask(ctx, c); err != nil {
			return err
		}
		p.notice("%s is revoked.", fmt.Sprintf("%q", client))
		return nil
	}
}
