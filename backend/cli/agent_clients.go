package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/daemon"
	"slipway/backend/session"
)

func (p daemonCommands) agentPairCommand() *cobra.Command {
	var on string
	var req api.PairRequest
	cmd := &cobra.Command{
		Use:   "pair [--on AGENT]",
		Short: "Create a code to pair a computer with the agent of this machine",
		Long: `The code pairs one computer and expires after ten minutes. On that computer, run
slipway agent add with the printed address and enter the code.`,
	}
	p.onFlag(cmd, &on, "the agent of another machine")
	cmd.Flags().StringVar(&req.Owner, "owner", "",
		"whose sessions that computer has (default those of the agent's person)")
	cmd.Flags().StringVar(&req.Role, "role", "", "admin or user (default: set by the agent)")
	cmd.RunE = p.hereOr(&on, p.pairNear(&req), func(ctx context.Context, c *daemon.Client) error {
		code, err := c.PairCode(ctx, session.PairRequest{Owner: req.Owner, Role: session.Role(req.Role)})
		if err != nil {
			return err
		}
		return p.print(code, func(w io.Writer) {
			fields(w, "Code", code.Code, "Address", "slipway://"+code.Address, "Key", code.Key,
				"Good for", code.Expires.Sub(p.Now()).Round(time.Minute).String())
		})
	})
	return cmd
}

func (p daemonCommands) agentClientsCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use: "clients [--on AGENT]", Aliases: []string{"devices"},
		Short: "List the computers that are paired with the agent of this machine",
	}
	p.onFlag(cmd, &on, "the agent of another machine")
	cmd.RunE = p.hereOr(&on, p.clientsNear, func(ctx context.Context, c *daemon.Client) error {
		clients, err := c.PairedClients(ctx)
		if err != nil {
			return err
		}
		return p.print(clients, func(w io.Writer) {
			table(w, "NAME,KEY,ROLE,PAIRED,SEEN", clients, func(d session.PairedClient) []string {
				seen := "never"
				switch {
				case d.Live > 0:
					seen = "connected"
				case !d.Seen.IsZero():
					seen = p.age(d.Seen)
				}
				return []string{d.Name, d.Key, string(d.Role), p.age(d.Added), seen}
			})
		})
	})
	return cmd
}

func (p daemonCommands) agentRevokeCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{
		Use:   "revoke CLIENT [--on AGENT]",
		Short: "Revoke the access of a paired computer",
	}
	p.onFlag(cmd, &on, "the agent of another machine")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.hereOr(&on, p.revokeNear(args[0]), func(ctx context.Context, c *daemon.Client) error {
			if err := c.RevokeClient(ctx, args[0]); err != nil {
				return err
			}
			p.notice("%s is revoked.", fmt.Sprintf("%q", args[0]))
			return nil
		})(cmd, args)
	}
	return cmd
}
