package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

func (p daemonCommands) agentAuditCommand() *cobra.Command {
	var asked session.AuditQuery
	var on, before string
	cmd := &cobra.Command{
		Use:   "audit [--on AGENT]",
		Short: "Show the audit log: who did what, when and from where",
		Long: `The audit log records what other computers and people do through the agent. It is in the
agent's directory: security events in audit.jsonl (up to 40 MiB), everything else in audit.d
(up to 8 MiB per person). Security events are pairing codes that were created, used or wrong,
computers that were refused or revoked, changed keys, and limits. Repeated entries within a
minute are counted as one. Commands and typed text are not recorded.`,
	}
	cmd.Flags().IntVar(&asked.Limit, "tail", 100, fmt.Sprintf("number of newest entries, at most %d",
		session.MostAudit))
	cmd.Flags().StringVar(&before, "before", "", "only entries older than this time, as --json prints it")
	cmd.Flags().StringVar(&asked.Owner, "by", "", "only entries of this person")
	cmd.Flags().StringVar(&asked.Text, "grep", "", "only entries that contain all of these words")
	cmd.Flags().BoolVar(&asked.Failed, "failed", false, "only refused or failed entries")
	cmd.Flags().BoolVar(&asked.Security, "security", false, "only security events")
	p.onFlag(cmd, &on, "the agent of another machine, which you rule")
	near := func(ctx context.Context, c *caller, agent string) error {
		return show(ctx, c, route.AgentAudit.At(agent).With("before", before).Flag("failed", asked.Failed).
			With("limit", strconv.Itoa(asked.Limit)).With("owner", asked.Owner).
			Flag("security", asked.Security).With("text", asked.Text), auditTable)
	}
	cmd.RunE = p.hereOr(&on, near, func(ctx context.Context, c *daemon.Client) error {
		if before != "" {
			var err error
			if asked.Before, err = time.Parse(time.RFC3339Nano, before); err != nil {
				return usagef("invalid time --before %s: use a time as --json prints it", before)
			}
		}
		entries, err := c.Audit(ctx, asked)
		if err != nil {
			return err
		}
		return p.print(entries, func(w io.Writer) { auditTable(w, entries) })
	})
	return cmd
}

func auditTable(w io.Writer, entries []session.AuditEntry) {
	table(w, "AT,OWNER,ROLE,FROM,WHAT,SESSION,OF,OUTCOME", entries, func(e session.AuditEntry) []string {
		outcome := e.Outcome
		if e.Count > 1 {
			outcome += fmt.Sprintf(" ×%d", e.Count)
		}
		return []string{e.At.Local().Format(time.DateTime), e.Owner, e.Role, e.From, e.Method, string(e.Session),
			e.Target, outcome}
	})
}

func (p daemonCommands) agentLimitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limit",
		Short: "Limit what each person can use on this machine",
	}
	cmd.AddCommand(p.agentLimitListCommand(), p.agentLimitSetCommand(), p.agentLimitUnsetCommand())
	return cmd
}

func (p daemonCommands) agentLimitListCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{Use: "list [--on AGENT]", Short: "List the limits"}
	p.onFlag(cmd, &on, "the agent of another machine, which you rule")
	tell := func(limits map[string]session.Allowance) error {
		return p.print(limits, func(w io.Writer) {
			table(w, "OWNER,SESSIONS,CPUS,MEMORY,GPUS,PROCESSES,LOGINS,FOLDERS", slices.Sorted(maps.Keys(limits)),
				func(owner string) []string {
					l, logins := limits[owner], "-"
					if l.Logins {
						logins = "yes"
					}
					return []string{owner, limitCell(l.Sessions), limitCell(l.CPU), limitCell(l.Memory),
						limitCell(l.GPU), limitCell(l.Processes), logins, strings.Join(l.Folders, " ")}
				})
		})
	}
	near := func(ctx context.Context, c *caller, agent string) error {
		told, err := route.AgentLimits.At(agent).Ask(ctx, c)
		if err != nil {
			return err
		}
		return tell(told.Limits)
	}
	cmd.RunE = p.hereOr(&on, near, func(ctx context.Context, c *daemon.Client) error {
		limits, err := c.Limits(ctx)
		if err != nil {
			return err
		}
		return tell(limits)
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

func (p daemonCommands) agentLimitSetCommand() *cobra.Command {
	var limit session.Allowance
	var memory, share, on string
	cmd := &cobra.Command{
		Use:   "set OWNER [--on AGENT]",
		Short: "Set the limits of a person, or of default: everyone without limits of their own",
		Long: `Set replaces the limits of a person. Flags that you omit mean no limit. The limits of
default do not apply to the owner of the agent. With --folder, a person who is not an admin
can mount that directory, but not those inside it. Without it, they mount no directory of
this machine.

Admins pull images with the registry logins that docker login saved on this machine. With
--registry-logins this person does so, too, and can see and launch the pulled images.`,
	}
	p.onFlag(cmd, &on, "the agent of another machine, which you rule")
	cmd.Flags().IntVar(&limit.Sessions, "sessions", 0, "sessions at the same time")
	cmd.Flags().IntVar(&limit.CPU, "cpu", 0, "CPUs")
	cmd.Flags().StringVar(&memory, "mem", "", "memory, for example 16g")
	cmd.Flags().StringVar(&share, "gpu", "", "devices, for example 1.5")
	cmd.Flags().IntVar(&limit.Processes, "processes", 0,
		"processes and threads in each container, in place of the machine's setting session.processes")
	cmd.Flags().StringArrayVar(&limit.Folders, "folder", nil, "absolute path that the person can mount")
	cmd.Flags().BoolVar(&limit.Logins, "registry-logins", false, "allow the registry logins of this machine")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if memory != "" {
			if limit.Memory, err = gpu.ParseBytes(memory); err != nil {
				return usagef("invalid amount of memory %q: use, for example, 16g", memory)
			}
		}
		if share != "" {
			if limit.GPU, err = gpu.ParseShare(share); err != nil {
				return usagef("invalid number of devices %q: use, for example, 1.5", share)
			}
		}
		near := func(ctx context.Context, c *caller, agent string) error {
			_, err := route.AgentLimitSet.At(agent, args[0]).Body(limit).Ask(ctx, c)
			return err
		}
		return p.hereOr(&on, near, func(ctx context.Context, c *daemon.Client) error {
			return c.SetLimit(ctx, args[0], &limit)
		})(cmd, args)
	}
	return cmd
}

func (p daemonCommands) agentLimitUnsetCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{Use: "unset OWNER [--on AGENT]", Short: "Remove the limits of one person"}
	p.onFlag(cmd, &on, "the agent of another machine, which you rule")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		near := func(ctx context.Context, c *caller, agent string) error {
			_, err := route.AgentLimitUnset.At(agent, args[0]).Ask(ctx, c)
			return err
		}
		return p.hereOr(&on, near, func(ctx context.Context, c *daemon.Client) error {
			return c.SetLimit(ctx, args[0], nil)
		})(cmd, args)
	}
	return cmd
}
