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

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/daemon"
	"slipway/backend/session"
	"slipway/gpu"
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
