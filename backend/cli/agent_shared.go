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

// shared gives a command the flag --on: it calls the agent of this machine, or that agent through the control plane.
func (p agentCommands) shared(cmd *cobra.Command, here func(ctx context.Context, c *daemon.Client, args []string) error,
	near func(ctx context.Context, c *caller, agent string, args []string) error) *cobra.Command {
	var on string
	p.onFlag(cmd, &on, "a remote agent that you administer")
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		run := p.atDaemon(func(ctx context.Context, c *daemon.Client) error { return here(ctx, c, args) })
		if on != "" {
			run = p.command(func(ctx context.Context, c *caller, _ []string) error { return near(ctx, c, on, args) })
		}
		return run(cmd, args)
	})
}

// answered prints an answer, unless there was an error.
func answered[T any](p agentCommands, table func(io.Writer, T)) func(T, error) error {
	return func(answer T, err error) error {
		if err != nil {
			return err
		}
		return p.print(answer, func(w io.Writer) { table(w, answer) })
	}
}

func (p agentCommands) agentPairCommand() *cobra.Command {
	var req api.PairRequest
	cmd := &cobra.Command{Use: "pair [--on AGENT]",
		Short: "Create a code to pair a computer with the agent of this machine",
		Long: `The code pairs one computer and expires after ten minutes. On that computer, run
slipway agent add with the printed address and enter the code.`}
	flags := cmd.Flags()
	flags.StringVar(&req.Owner, "owner", "", "whose sessions that computer has (default those of the agent's person)")
	flags.StringVar(&req.Role, "role", "", "admin or user (default: set by the agent)")
	tell := func(w io.Writer, code, address, key string, expires time.Time) {
		left := expires.Sub(p.Now()).Round(time.Minute)
		fields(w, "Code", code, "Address", address, "Key", key, "Good for", left.String())
	}
	return p.shared(cmd, func(ctx context.Context, c *daemon.Client, _ []string) error {
		return answered(p, func(w io.Writer, code session.PairCode) {
			tell(w, code.Code, "slipway://"+code.Address, code.Key, code.Expires)
		})(c.PairCode(ctx, session.PairRequest{Owner: req.Owner, Role: session.Role(req.Role)}))
	}, func(ctx context.Context, c *caller, agent string, _ []string) error {
		return show(ctx, c, route.PairCode.At(agent).Body(req), func(w io.Writer, code api.PairCode) {
			tell(w, code.Code, code.Address, "", code.ExpiresAt)
		})
	})
}

func (p agentCommands) agentClientsCommand() *cobra.Command {
	const header = "NAME,KEY,OWNER,ROLE,PAIRED,SEEN"
	seen := func(at *time.Time) string {
		if at == nil || at.IsZero() {
			return "never"
		}
		return p.age(*at)
	}
	cmd := &cobra.Command{Use: "clients [--on AGENT]", Aliases: []string{"devices"},
		Short: "List the computers that are paired with the agent of this machine"}
	return p.shared(cmd, func(ctx context.Context, c *daemon.Client, _ []string) error {
		return answered(p, func(w io.Writer, clients []session.PairedClient) {
			table(w, header, clients, func(d session.PairedClient) []string {
				last := seen(&d.Seen)
				if d.Live > 0 {
					last = "connected"
				}
				return []string{d.Name, d.Key, d.Owner, string(d.Role), p.age(d.Added), last}
			})
		})(c.PairedClients(ctx))
	}, func(ctx context.Context, c *caller, agent string, _ []string) error {
		return show(ctx, c, route.PairedClients.At(agent), func(w io.Writer, clients []api.PairedClient) {
			table(w, header, clients, func(d api.PairedClient) []string {
				if d.This {
					d.Name += " (this computer)"
				}
				return []string{d.Name, d.Fingerprint, d.Owner, d.Role, p.age(d.AddedAt), seen(d.LastSeen)}
			})
		})
	})
}

func (p agentCommands) agentRevokeCommand() *cobra.Command {
	done := func(client string, err error) error {
		if err == nil {
			p.notice("%s is revoked.", strconv.Quote(client))
		}
		return err
	}
	return p.shared(&cobra.Command{Use: "revoke CLIENT [--on AGENT]", Short: "Revoke the access of a paired computer"},
		func(ctx context.Context, c *daemon.Client, args []string) error {
			return done(args[0], c.RevokeClient(ctx, args[0]))
		}, func(ctx context.Context, c *caller, agent string, args []string) error {
			_, err := route.ClientRevoke.At(agent, args[0]).Ask(ctx, c)
			return done(args[0], err)
		})
}

func (p agentCommands) agentRotateCommand() *cobra.Command {
	var client bool
	cmd := &cobra.Command{Use: "rotate [--on AGENT | --client]",
		Short: "Change the key of the agent of this machine, or of this computer",
		Long: `Rotate creates a new key, signed by the old one. Computers that are paired with the agent
accept it automatically: at once if they are connected, otherwise when they reconnect.
Nothing needs to be paired again, and copies of the old key no longer work.

With --client, rotate changes the key of this computer.`}
	cmd.Flags().BoolVar(&client, "client", false, "change the key of this computer")
	rotated := func(w io.Writer, r api.KeyRotation) {
		fields(w, "Old key", r.Before, "New key", r.Fingerprint,
			"Told at once", strings.Join(r.Told, ", "), "Told later", strings.Join(r.Later, ", "))
	}
	p.shared(cmd, func(ctx context.Context, c *daemon.Client, _ []string) error {
		return answered(p, func(w io.Writer, r session.KeyRotation) {
			fields(w, "Old key", r.Before, "New key", r.Key, "Told at once", fmt.Sprintf("%d clients", r.Clients))
		})(c.RotateKey(ctx))
	}, func(ctx context.Context, c *caller, agent string, _ []string) error {
		return show(ctx, c, route.AgentRotate.At(agent), rotated)
	})
	ofAgent := cmd.RunE
	ofClient := asks(p.program, cmd, "", route.KeyRotate, rotated).RunE
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		switch {
		case client && cmd.Flags().Changed("on"):
			return usagef("use either --client (this computer) or --on (another machine)")
		case client:
			return ofClient(cmd, args)
		}
		return ofAgent(cmd, args)
	})
}

func (p agentCommands) agentAuditCommand() *cobra.Command {
	var asked session.AuditQuery
	var before string
	cmd := &cobra.Command{Use: "audit [--on AGENT]", Short: "Show the audit log: who did what, when and from where",
		Long: `The audit log records what other computers and people do through the agent. It is in the
agent's directory: security events in audit.jsonl (up to 40 MiB), everything else in audit.d
(up to 8 MiB per person). Security events are pairing codes that were created, used or wrong,
computers that were refused or revoked, changed keys, and limits. Repeated entries within a
minute are counted as one. Commands and typed text are not recorded.`}
	flags := cmd.Flags()
	flags.IntVar(&asked.Limit, "tail", 100, fmt.Sprintf("number of newest entries, at most %d", session.MostAudit))
	flags.StringVar(&before, "before", "", "only entries older than this time, as --json prints it")
	flags.StringVar(&asked.Owner, "by", "", "only entries of this person")
	flags.StringVar(&asked.Text, "grep", "", "only entries that contain all of these words")
	flags.BoolVar(&asked.Failed, "failed", false, "only refused or failed entries")
	flags.BoolVar(&asked.Security, "security", false, "only security events")
	return p.shared(cmd, func(ctx context.Context, c *daemon.Client, _ []string) (err error) {
		if before != "" {
			if asked.Before, err = time.Parse(time.RFC3339Nano, before); err != nil {
				return usagef("invalid time --before %s: use a time as --json prints it", before)
			}
		}
		return answered(p, auditTable)(c.Audit(ctx, asked))
	}, func(ctx context.Context, c *caller, agent string, _ []string) error {
		return show(ctx, c, route.AgentAudit.At(agent).With("before", before).Flag("failed", asked.Failed).
			With("limit", strconv.Itoa(asked.Limit)).With("owner", asked.Owner).
			Flag("security", asked.Security).With("text", asked.Text), auditTable)
	})
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

func (p agentCommands) agentLimitCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "limit", Short: "Limit what each person can use on this machine"}
	list := p.shared(&cobra.Command{Use: "list [--on AGENT]", Short: "List the limits"},
		func(ctx context.Context, c *daemon.Client, _ []string) error {
			return answered(p, limitTable)(c.Limits(ctx))
		},
		func(ctx context.Context, c *caller, agent string, _ []string) error {
			answer, err := route.AgentLimits.At(agent).Ask(ctx, c)
			return answered(p, limitTable)(answer.Limits, err)
		})
	unset := p.shared(&cobra.Command{Use: "unset OWNER [--on AGENT]", Short: "Remove the limits of one person"},
		func(ctx context.Context, c *daemon.Client, args []string) error { return c.SetLimit(ctx, args[0], nil) },
		func(ctx context.Context, c *caller, agent string, args []string) error {
			_, err := route.AgentLimitUnset.At(agent, args[0]).Ask(ctx, c)
			return err
		})
	cmd.AddCommand(list, p.agentLimitSetCommand(), unset)
	return cmd
}

func limitTable(w io.Writer, limits map[string]session.Allowance) {
	table(w, "OWNER,SESSIONS,CPUS,MEMORY,GPUS,PROCESSES,LOGINS,FOLDERS", slices.Sorted(maps.Keys(limits)),
		func(owner string) []string {
			l, logins := limits[owner], "-"
			if l.Logins {
				logins = "yes"
			}
			return []string{owner, limitCell(l.Sessions), limitCell(l.CPU), limitCell(l.Memory), limitCell(l.GPU),
				limitCell(l.Processes), logins, strings.Join(l.Folders, " ")}
		})
}

// limitCell formats an amount, or a dash if there is no limit.
func limitCell[T int | gpu.Bytes | gpu.Share](amount T) string {
	if amount == 0 {
		return "-"
	}
	return fmt.Sprint(amount)
}

func (p agentCommands) agentLimitSetCommand() *cobra.Command {
	var limit session.Allowance
	var memory, share string
	cmd := &cobra.Command{Use: "set OWNER [--on AGENT]",
		Short: "Set the limits of a person, or of default: everyone without limits of their own",
		Long: `Set replaces the limits of a person. Flags that you omit mean no limit. The limits of
default do not apply to the owner of the agent. With --folder, a person who is not an admin
can mount that directory, but not those inside it. Without it, they mount no directory of
this machine.

Admins pull images with the registry logins that docker login saved on this machine. With
--registry-logins this person does so, too, and can see and launch the pulled images.`}
	flags := cmd.Flags()
	flags.IntVar(&limit.Sessions, "sessions", 0, "sessions at the same time")
	flags.IntVar(&limit.CPU, "cpu", 0, "CPUs")
	flags.StringVar(&memory, "mem", "", "memory, for example 16g")
	flags.StringVar(&share, "gpu", "", "devices, for example 1.5")
	flags.IntVar(&limit.Processes, "processes", 0,
		"processes and threads in each container, in place of the machine's setting session.processes")
	flags.StringArrayVar(&limit.Folders, "folder", nil, "absolute path that the person can mount")
	flags.BoolVar(&limit.Logins, "registry-logins", false, "allow the registry logins of this machine")
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
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
		return nil
	}
	return p.shared(cmd, func(ctx context.Context, c *daemon.Client, args []string) error {
		return c.SetLimit(ctx, args[0], &limit)
	}, func(ctx context.Context, c *caller, agent string, args []string) error {
		_, err := route.AgentLimitSet.At(agent, args[0]).Body(limit).Ask(ctx, c)
		return err
	})
}
