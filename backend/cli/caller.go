package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/pace"
	"slipway/backend/place"
	"slipway/backend/session"
)

// caller calls the API of one control plane. [caller.reconnect] changes it, so each goroutine uses its own copy.
type caller struct {
	*client.Client
	program *program
}

// connect finds the control plane, or starts one and prints that to stderr.
func (p *program) connect(ctx context.Context) (*caller, error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return nil, err
	}
	return p.connectOrStart(ctx, home, p.Env("SLIPWAY_ENGINE"),
		func() { p.notice("No control plane is running; starting one in the background.") })
}

func (p *program) connectOrStart(ctx context.Context, home place.Home, engine string,
	starting func()) (*caller, error) {
	c, err := client.ConnectOrStart(ctx, home, client.StartOptions{Executable: p.Executable, Engine: engine,
		Starting: starting})
	if err != nil {
		return nil, err
	}
	if c.Serving.Demo {
		p.notice("DEMO: nothing of this is real.")
		if s := c.Serving; s.Speed > 0 {
			p.Now = pace.New(s.Speed, s.Real, s.Shown.Local()).Now
		}
	}
	return &caller{c, p}, nil
}

// running connects to the control plane. It fails with [client.ErrNotServing] if none is running.
func (p *program) running(ctx context.Context) (*caller, error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(ctx, home)
	return &caller{c, p}, err
}

// reconnect connects again after a connection was lost. A control plane that was killed is started with the same
// engine; one that was stopped is not.
func (c *caller) reconnect(ctx context.Context) error {
	home, err := place.FindHome(c.program.Env)
	if err != nil {
		return err
	}
	var found *caller
	if serving, readErr := home.Serving(); readErr == nil {
		found, err = c.program.connectOrStart(ctx, home, serving.Engine, nil)
	} else {
		found, err = c.program.running(ctx)
	}
	if err == nil {
		c.Client = found.Client
	}
	return err
}

// notice prints a line to stderr.
func (p *program) notice(format string, args ...any) {
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// worthTrying reports whether a control plane that could not be reached may be reached a moment later.
func worthTrying(err error) bool {
	return client.IsLost(err) || errors.Is(err, client.ErrNotServing)
}

// ended reports whether a session has its final status.
func ended(s api.Session) bool { return s.Status.Terminal() }

// find returns the session that ref names: an id, the name of a live one or of the newest finished one, or a unique
// prefix of an id.
func (c *caller) find(ctx context.Context, ref string) (api.Session, error) {
	found, err := route.Session.At(ref).Ask(ctx, c)
	if err == nil || !isNotFound(err) {
		return found, err
	}
	all, err := route.Sessions.With("state", "all").Ask(ctx, c)
	if err != nil {
		return found, err
	}
	id, err := match(all, ref)
	if err != nil {
		return found, err
	}
	return route.Session.At(string(id)).Ask(ctx, c)
}

// sessionWork is what a command does with the session that its first argument names, and with its other arguments.
type sessionWork = func(ctx context.Context, c *caller, s api.Session, args []string) error

// inSession calls work, which Ctrl-C cancels.
func (p *program) inSession(work sessionWork) runE {
	return p.command(func(ctx context.Context, c *caller, args []string) error {
		s, err := c.find(ctx, args[0])
		if err != nil {
			return err
		}
		return work(ctx, c, s, args[1:])
	})
}

// besideSession does the same, but Ctrl-C cancels only the search for the session: work handles it itself.
func (p *program) besideSession(work sessionWork) runE {
	return func(cmd *cobra.Command, args []string) error {
		finding, cancel := interruptible(cmd.Context())
		defer cancel()
		c, err := p.connect(finding)
		if err != nil {
			return err
		}
		s, err := c.find(finding, args[0])
		if err != nil {
			return err
		}
		cancel()
		return work(cmd.Context(), c, s, args[1:])
	}
}

// match finds a session by its name or the prefix of its id. The newest must be first.
func match(all []api.Session, ref string) (session.ID, error) {
	if i := slices.IndexFunc(all, func(s api.Session) bool { return s.Name == ref }); i >= 0 {
		return all[i].ID, nil
	}
	var beginning []string
	for _, s := range all {
		if strings.HasPrefix(string(s.ID), ref) {
			beginning = append(beginning, string(s.ID))
		}
	}
	switch len(beginning) {
	case 0:
		return "", fail(session.CodeSessionNotFound, fmt.Sprintf("There is no session %q.", ref),
			"slipway ps -a lists all of them.")
	case 1:
		return session.ID(beginning[0]), nil
	}
	return "", failAs(ExitUsage, session.CodeSessionAmbiguous, fmt.Sprintf("%q matches %d IDs: %s.", ref,
		len(beginning), strings.Join(beginning[:min(len(beginning), 5)], ", ")), "Use more of the ID, or the name.")
}

// completeArgument completes an argument by its name in the usage line.
func (p *program) completeArgument(cmd *cobra.Command, args []string, word string,
) ([]string, cobra.ShellCompDirective) {
	names := argumentsOf(cmd)
	if len(names) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	name := names[min(len(args), len(names)-1)]
	complete := map[string]cobra.CompletionFunc{
		"SESSION": p.completeSessions(liveSessions),
		"AGENT":   p.completeAgents,
		"IMAGE": offers(p, route.Images, func(images []hub.Image, _ []string) (refs []string) {
			for _, image := range images {
				refs = append(refs, image.Refs...)
			}
			return refs
		}),
		"SERVICE": offersEach(p, route.Services, func(s api.Service) string {
			return s.Name + "\t" + strings.ToLower(string(s.State)) + ", on " + s.Agent
		}),
		"FOLDER": offersEach(p, route.Folders, func(f api.Folder) string { return f.Name + "\t" + string(f.State) }),
	}[strings.Trim(name, "[…]")]
	if complete == nil || len(args) >= len(names) && !strings.Contains(name, "…") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return complete(cmd, args, word)
}

// offers completes arguments from the answer of a route, as names with a description after a tab. It never starts a
// control plane.
func offers[Out any](p *program, at route.Route[route.None, Out],
	names func(answer Out, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var answer Out
		c, err := p.running(cmd.Context())
		if err == nil {
			answer, err = at.Ask(cmd.Context(), c)
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(answer, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// offersEach completes arguments with a line for each item of a list.
func offersEach[T any](p *program, at route.Route[route.None, []T], line func(T) string) cobra.CompletionFunc {
	return offers(p, at, func(list []T, _ []string) []string { return each(list, line) })
}

// completeSessions completes the names of live or of all sessions.
func (p *program) completeSessions(state string) cobra.CompletionFunc {
	at := route.Sessions.With("state", state)
	if state == allSessions {
		at = at.With("limit", "50")
	}
	return offersEach(p, at, func(s api.Session) string {
		return s.Name + "\t" + strings.ToLower(string(s.Status)) + ", " + s.Image
	})
}

// The states of sessions that the API selects by.
const liveSessions, allSessions = "live", "all"

// onFlag adds the flag --on, which names an agent.
func (p *program) onFlag(cmd *cobra.Command, agent *string, usage string) {
	cmd.Flags().StringVar(agent, "on", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("on", p.completeAgents) // fails only for a flag that is not there
}

// completeAgents completes the names of agents.
func (p *program) completeAgents(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return offersEach(p, route.Agents, func(a api.Agent) string {
		return a.Name + "\t" + cmp.Or(a.Address, "this computer") + ", " + string(a.Connection.State)
	})(cmd, args, word)
}
