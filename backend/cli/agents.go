package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

// agentCommands are the commands for the agent of this machine and for remote agents.
type agentCommands struct{ *program }

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
		p.agentOperation("upgrade", "Upgrade an agent to this version; its sessions keep running",
			"%s runs this version.", route.AgentUpgrade),
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

ADDRESS is ssh://user@host:port, an SSH host name, slipway://host:port, or
wss://host:port/path if only HTTPS gets through.`,
		Example: `  slipway agent add lab
  slipway agent add ssh://ada@gpu1.example.org:2222 --name gpu1 --group gpus
  slipway agent add slipway://gpu2.example.org --name gpu2
  slipway agent add lab --probe`}
	cmd.Flags().StringVar(&req.Name, "name", "", "name (default: the host name)")
	cmd.Flags().StringVar(&req.Group, "group", "", "resource group (default: default)")
	cmd.Flags().StringVar(&req.Dir, "dir", "",
		"folder for Slipway's files there, by ssh (default the usual one of the account)")
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
		pairs = append(pairs, "Not trustworthy", fmt.Sprintf("%s sends invalid data (%s, %d times since %s)\n%s\n%s",
			a.Name, u.Error.Code, u.Count, p.moment(&u.Since), u.Error.Message, u.Error.Hint))
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
				"Disk", size(m.DiskFree)+" free of "+size(m.DiskTotal))
		}
	}
	fields(w, pairs...)
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
