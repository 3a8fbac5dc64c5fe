package cli

import (
	"cmp"
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

// The groups in the help of agent.
const groupFar, groupHere = "far", "here"

// nearCommands are the commands for agents of other machines that this computer uses.
func (p agentCommands) nearCommands() []*cobra.Command {
	moved := func(w io.Writer, a api.Agent) { fmt.Fprintf(w, "%s is in the resource group %s.\n", a.Name, a.Group) }
	return []*cobra.Command{
		p.agentAddCommand(), p.agentShowCommand(), p.agentTrustCommand(), p.agentRemoveCommand(),
		asks(p.program, &cobra.Command{Use: "list", Aliases: []string{"ls"},
			Short: "List agents and their connections"}, "", route.Agents, p.agentTable),
		changes(p.program, &cobra.Command{Use: "rename AGENT NAME", Short: "Rename an agent"}, route.AgentUpdate,
			func(name string) api.AgentUpdate { return api.AgentUpdate{Name: &name} }, moved),
		changes(p.program, &cobra.Command{Use: "group AGENT GROUP", Short: "Move an agent to a resource group"},
			route.AgentUpdate, func(group string) api.AgentUpdate { return api.AgentUpdate{Group: &group} }, moved),
		p.agentOperation("probe", "Check an agent's machine and show what is missing", "%s is checked.",
			route.AgentProbe),
		p.agentUpgradeCommand(),
		p.agentOperation("reconnect", "Reconnect to an agent now; it may ask for a password", "%s is connected.",
			route.AgentReconnect),
	}
}

func (p agentCommands) agentAddCommand() *cobra.Command {
	var req api.AgentRequest
	cmd := &cobra.Command{Use: "add ADDRESS [--name NAME] [--group GROUP] [--dir PATH]",
		Short: "Add an agent on another machine",
		Long: `Add installs Slipway on a machine that you can log in to by SSH, starts an agent there and
connects to it. It needs no root access and no installed software, and uses your own SSH
configuration. To add an agent that listens for paired computers, use its address and a
code that slipway agent pair prints on its machine.

ADDRESS is ssh://user@host:port, an SSH host name, slurm://user@host:port for a login node of a
Slurm cluster, slipway://host:port, or wss://host:port/path if only HTTPS gets through.`,
		Example: `  slipway agent add lab
  slipway agent add ssh://ada@gpu1.example.org:2222 --name gpu1 --group gpus
  slipway agent add slurm://ada@login.example.org --name cluster
  slipway agent add slipway://gpu2.example.org --name gpu2
  slipway agent add lab --probe`}
	cmd.Flags().StringVar(&req.Name, "name", "", "name (default: the host name)")
	cmd.Flags().StringVar(&req.Group, "group", "", "resource group (default: default)")
	cmd.Flags().StringVar(&req.Dir, "dir", "",
		"folder for Slipway's files on that machine, over SSH (default: the usual one of the account)")
	cmd.Flags().BoolVar(&req.Probe, "probe", false, "only check the machine, change nothing")
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.Address = args[0]
		return begin(ctx, c, route.AgentAdd.Body(req))
	}, func(w io.Writer, o api.Operation) {
		if o.Agent != "" {
			fmt.Fprintf(w, "%s is added. slipway run --on %s launches there.\n", o.Agent, o.Agent)
		}
	}))
}

func (p agentCommands) agentTable(w io.Writer, agents []api.Agent) {
	table(w, "NAME,GROUP,STATE, RTT, LIVE,VERSION,ADDRESS,DETAIL", agents, func(a api.Agent) []string {
		return []string{a.Name, a.Group, string(a.Connection.State), rttText(a.Connection), strconv.Itoa(a.Live),
			cmp.Or(a.Version, "-"), cmp.Or(a.Address, "this computer"), p.connectionDetail(a)}
	})
}

func rttText(c api.Connection) string {
	return known(c.RTTMs, func(ms float64) string { return strconv.FormatFloat(ms, 'f', 1, 64) + " ms" })
}

// connectionDetail returns what matters about an agent besides its state.
func (p agentCommands) connectionDetail(a api.Agent) string {
	var parts []string
	if a.Connection.State != "connected" && a.Connection.LastHeard != nil {
		parts = append(parts, "last heard "+p.age(*a.Connection.LastHeard))
	}
	if a.Untrusted != nil {
		parts = append(parts, "not trustworthy: sends invalid data. "+a.Untrusted.Error.Message)
	}
	switch {
	case a.Question != nil:
		parts = append(parts, "slipway agent trust "+a.Name+" --found "+a.Question.Found)
	case a.Connection.Error != nil:
		parts = append(parts, a.Connection.Error.Message)
	}
	if a.Upgrade != "" {
		parts = append(parts, "slipway agent upgrade brings "+a.Upgrade)
	}
	return strings.Join(parts, "; ")
}

func (p agentCommands) agentShowCommand() *cobra.Command {
	return &cobra.Command{Use: "show AGENT", Short: "Show one agent: connection, machine and devices",
		RunE: p.command(func(ctx context.Context, c *caller, args []string) error {
			machines, err := route.Machines.Ask(ctx, c)
			if err != nil {
				return err
			}
			return show(ctx, c, route.Agent.At(args[0]),
				func(w io.Writer, a api.Agent) { p.agentFields(w, a, machines) })
		})}
}

func (p agentCommands) agentFields(w io.Writer, a api.Agent, machines []api.Machine) {
	c := a.Connection
	pairs := []string{"Name", a.Name, "Address", cmp.Or(a.Address, "this computer"), "Group", a.Group,
		"State", string(c.State), "Since", p.moment(&c.Since), "Last heard", p.moment(c.LastHeard),
		"Transport", c.Transport}
	if c.RTTMs != nil {
		pairs = append(pairs, "Round trip", rttText(c), "Connections", strconv.Itoa(c.Carriers))
	}
	pairs = append(pairs, "Next try", p.moment(c.NextTry), "Waits", c.Waits)
	if c.Error != nil {
		pairs = append(pairs, "Error", strings.TrimSpace(c.Error.Message+" "+c.Error.Hint))
	}
	if u := a.Untrusted; u != nil {
		pairs = append(pairs, "Not trustworthy", fmt.Sprintf("%s sends invalid data (%s, %s since %s)\n%s\n%s",
			a.Name, u.Error.Code, plural(u.Count, "time", "times"), p.moment(&u.Since), u.Error.Message, u.Error.Hint))
	}
	if q := a.Question; q != nil {
		pairs = append(pairs, "Question", q.Text+"\nexpected "+q.Pinned+"\nfound    "+q.Found)
	}
	pairs = append(pairs, "Role", a.Role, "Owner", a.Owner, "Key", a.Fingerprint,
		"Version", a.Version, "Upgrade", a.Upgrade, "Live sessions", strconv.Itoa(a.Live))
	for _, m := range machines {
		if m.Agent == a.Name && m.CPUs > 0 {
			pairs = append(pairs,
				"Machine", fmt.Sprintf("%s, %s/%s, %s %s", m.Hostname, m.OS, m.Arch, m.Engine, m.EngineVersion),
				"CPUs", fmt.Sprintf("%d, %d promised", m.CPUs, m.UsedCPUs),
				"Memory", size(m.Memory)+", "+size(m.UsedMemory)+" promised",
				"Warm", warmText(m.Warm),
				"Disk", size(m.DiskFree)+" free of "+size(m.DiskTotal),
				"Not available", missingText(m.Lacks), "Slurm", slurmText(m.Slurm))
		}
	}
	fields(w, pairs...)
}

// warmText says how many containers wait for launches; empty: none.
func warmText(count int) string {
	if count == 0 {
		return ""
	}
	return plural(count, "container waits", "containers wait") + " for a launch"
}

// missingText says what a machine cannot do, and why.
func missingText(lacks []session.Feature) string {
	lines := make([]string, len(lacks))
	for i, feature := range lacks {
		lines[i] = cmp.Or(feature.Missing().English(), string(feature))
	}
	return strings.Join(lines, "\n")
}

// slurmText says what a machine has of Slurm; empty: nothing.
func slurmText(site *session.SlurmSite) string {
	if site == nil {
		return ""
	}
	lines := []string{plural(site.Calls, "call", "calls") + " in the last hour"}
	for _, p := range site.Partitions {
		lines = append(lines, partitionText(p))
	}
	return strings.Join(lines, "\n")
}

// partitionText describes a partition in one line.
func partitionText(p session.SlurmPartition) string {
	parts := []string{plural(p.Nodes, "node", "nodes"), session.CPUs(p.CPUs), size(p.Memory)}
	for _, g := range p.GPUs {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d × %s", g.Count, cmp.Or(g.Type, "GPU"))))
	}
	if p.MaxTime > 0 {
		parts = append(parts, "at most "+p.MaxTime.String())
	}
	if !p.Up {
		parts = append(parts, "starts nothing now")
	}
	return p.Name + ": " + strings.Join(parts, ", ")
}

// agentOperation returns a command that starts an operation on one agent.
func (p agentCommands) agentOperation(use, short, done string,
	at route.Route[route.None, api.Operation]) *cobra.Command {
	return &cobra.Command{Use: use + " AGENT", Short: short,
		RunE: p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
			return begin(ctx, c, at.At(args[0]))
		}, func(w io.Writer, o api.Operation) { fmt.Fprintf(w, done+"\n", o.Subject) })}
}

func (p agentCommands) agentRemoveCommand() *cobra.Command {
	var removal api.AgentRemoval
	cmd := &cobra.Command{Use: "rm AGENT [--uninstall]", Aliases: []string{"remove"},
		Short: "Remove an agent from this computer; its sessions keep running unless you uninstall it"}
	cmd.Flags().BoolVar(&removal.Uninstall, "uninstall", false,
		"end its sessions and remove Slipway and its files from its machine")
	p.yesFlag(cmd)
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		if removal.Uninstall {
			if err := p.confirm(ctx, "Terminate all sessions of "+args[0]+" and remove its files?"); err != nil {
				return api.Operation{}, err
			}
		}
		return begin(ctx, c, route.AgentRemove.At(args[0]).Body(removal))
	}, func(w io.Writer, o api.Operation) { fmt.Fprintf(w, "%s is removed.\n", o.Subject) }))
}

func (p agentCommands) agentTrustCommand() *cobra.Command {
	var answer api.AgentAnswer
	var refuse bool
	cmd := &cobra.Command{Use: "trust AGENT --found KEY [--refuse]", Short: "Accept the new key of a reinstalled agent",
		Long: `An agent whose key has changed stays disconnected until you answer. Compare the key with
the output of slipway agent status on its machine.`}
	cmd.Flags().StringVar(&answer.Found, "found", "", "the new key, as slipway agent show prints it")
	cmd.Flags().BoolVar(&refuse, "refuse", false, "reject the new key")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		if answer.Found == "" {
			return usagef("missing --found: slipway agent show %s prints the key", args[0])
		}
		answer.Accept = !refuse
		return show(ctx, c, route.AgentAnswer.At(args[0]).Body(answer),
			func(w io.Writer, a api.Agent) { fmt.Fprintf(w, "%s: %s\n", a.Name, a.Connection.State) })
	}))
}

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
	flags.StringVar(&req.Owner, "owner", "", "owner of that computer's sessions (default: the owner of the agent)")
	flags.StringVar(&req.Role, "role", "", "admin or user (default: set by the agent)")
	tell := func(w io.Writer, code, address, key string, expires time.Time) {
		left := expires.Sub(p.Now()).Round(time.Minute)
		fields(w, "Code", code, "Address", address, "Key", key, "Good for", session.Duration(left).String())
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
			return done(args[0], route.ClientRevoke.At(agent, args[0]).Call(ctx, c, nil))
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
			fields(w, "Old key", r.Before, "New key", r.Key, "Told at once", plural(r.Clients, "client", "clients"))
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
			return route.AgentLimitUnset.At(agent, args[0]).Call(ctx, c, nil)
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
		return route.AgentLimitSet.At(agent, args[0]).Body(limit).Call(ctx, c, nil)
	})
}
