package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/daemon"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/gpu"
)

// daemonCall wraps the work of a command that asks what rules the agent of
// this machine.
func (p *program) daemonCall(work func(context.Context, *daemon.Client) error) func(*cobra.Command, []string) error {
	return p.here(func(ctx context.Context, home place.Home) error {
		c, err := daemon.Connect(ctx, home)
		if err != nil {
			return err
		}
		return work(ctx, c)
	})
}

func (p *program) agentAuditCommand() *cobra.Command {
	var lines int
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Print who did what with the agent of this machine, when and from where",
		Long: `What was done through the agent by other computers and people is kept in audit.jsonl in
its folder, up to 40 MiB. Commands that were run and what was typed are not in it.`,
		Args: exactly(0, "no argument"),
	}
	cmd.Flags().IntVar(&lines, "tail", 100, fmt.Sprintf("how many of the newest entries, at most %d", daemon.MostAudit))
	cmd.RunE = p.daemonCall(func(ctx context.Context, c *daemon.Client) error {
		entries, err := c.Audit(ctx, lines)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(entries)
		if err != nil {
			return err
		}
		return p.print(raw, func(w io.Writer) {
			rows := [][]string{{"AT", "OWNER", "ROLE", "FROM", "WHAT", "SESSION", "OF", "OUTCOME"}}
			for _, e := range entries {
				rows = append(rows, []string{e.At.Local().Format(time.DateTime), e.Owner, e.Role, e.From, e.Method, string(e.Session), e.Target, e.Outcome})
			}
			columns(w, rows)
		})
	})
	return cmd
}

func (p *program) agentLimitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limit",
		Short: "Limit what each person may hold on the agent of this machine",
	}
	cmd.AddCommand(p.agentLimitListCommand(), p.agentLimitSetCommand(), p.agentLimitUnsetCommand())
	return cmd
}

func (p *program) agentLimitListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the limits", Args: exactly(0, "no argument")}
	cmd.RunE = p.daemonCall(func(ctx context.Context, c *daemon.Client) error {
		limits, err := c.Limits(ctx)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(limits)
		if err != nil {
			return err
		}
		return p.print(raw, func(w io.Writer) {
			rows := [][]string{{"OWNER", "SESSIONS", "CPUS", "MEMORY", "GPUS", "FOLDERS"}}
			for _, owner := range slices.Sorted(maps.Keys(limits)) {
				l := limits[owner]
				rows = append(rows, []string{owner, limitCell(l.Sessions), limitCell(l.CPU), limitCell(l.Memory), limitCell(l.GPU), strings.Join(l.Folders, " ")})
			}
			columns(w, rows)
		})
	})
	return cmd
}

// limitCell is an amount, or a dash where it is not limited.
func limitCell[T int | gpu.Bytes | gpu.Share](amount T) string {
	if amount == 0 {
		return "-"
	}
	return fmt.Sprint(amount)
}

func (p *program) agentLimitSetCommand() *cobra.Command {
	var limit session.Allowance
	var memory, share string
	cmd := &cobra.Command{
		Use:   "set OWNER",
		Short: "Set what one person may hold at a time; default: everybody without a limit of their own",
		Long: `Set replaces the limits of a person. What is not given is not limited. The default is not
for the agent's own person. A folder is one that a person who is not an admin may mount:
the folder itself, not those in it; without one they mount nothing of this machine.`,
		Args: exactly(1, "the name of one person, or default"),
	}
	cmd.Flags().IntVar(&limit.Sessions, "sessions", 0, "sessions that run at a time")
	cmd.Flags().IntVar(&limit.CPU, "cpu", 0, "CPUs")
	cmd.Flags().StringVar(&memory, "mem", "", "memory, for example 16g")
	cmd.Flags().StringVar(&share, "gpu", "", "devices, for example 1.5")
	cmd.Flags().StringArrayVar(&limit.Folders, "folder", nil, "an absolute path that may be mounted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if memory != "" {
			if limit.Memory, err = gpu.ParseBytes(memory); err != nil {
				return usagef("%q is no amount of memory; write 16g", memory)
			}
		}
		if share != "" {
			if limit.GPU, err = gpu.ParseShare(share); err != nil {
				return usagef("%q is no number of devices; write 1.5", share)
			}
		}
		return p.daemonCall(func(ctx context.Context, c *daemon.Client) error { return c.SetLimit(ctx, args[0], &limit) })(cmd, args)
	}
	return cmd
}

func (p *program) agentLimitUnsetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "unset OWNER", Short: "Remove the limits of one person", Args: exactly(1, "the name of one person, or default")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.daemonCall(func(ctx context.Context, c *daemon.Client) error { return c.SetLimit(ctx, args[0], nil) })(cmd, args)
	}
	return cmd
}
