package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/pace"
	"slipway/backend/place"
	"slipway/backend/session"
)

// caller speaks the API to one control plane, over a new connection after [caller.reconnect]. Goroutines use copies of
// their own.
type caller struct {
	*client.Client
	program *program
}

// connect finds the control plane or starts one, and says so on stderr.
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
			p.Now = pace.New(s.Speed, s.Real, s.Shown).Now
		}
	}
	return &caller{c, p}, nil
}

// running is the control plane that runs; [client.ErrNotServing] where none does.
func (p *program) running(ctx context.Context) (*caller, error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(ctx, home)
	return &caller{c, p}, err
}

// reconnect finds the control plane again after a connection was lost. One that was killed is started again, on the
// engine it had; one that stopped in good order is waited for.
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

// notice tells a person what goes on, on stderr.
func (p *program) notice(format string, args ...any) {
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// worthTrying reports whether a control plane that could not be reached may be reached a moment later.
func worthTrying(err error) bool {
	return client.IsLost(err) || errors.Is(err, client.ErrNotServing)
}

// ended reports whether a session has a status that it never leaves.
func ended(s api.Session) bool { return s.Status.Terminal() }

// find returns the session that ref names: its id, the name of a live one, the name of the newest finished one, or a
// beginning of an id that only one has.
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

// inSession is a command about the session that its first argument names.
func (p *program) inSession(work func(ctx context.Context, c *caller, s api.Session,
	args []string) error) func(*cobra.Command, []string) error {
	return p.command(func(ctx context.Context, c *caller, args []string) error {
		s, err := c.find(ctx, args[0])
		if err != nil {
			return err
		}
		return work(ctx, c, s, args)
	})
}

// besideSession is a command about the session that its first argument names, which has other uses for Ctrl-C once the
// session is found.
func (p *program) besideSession(work func(ctx context.Context, c *caller, s api.Session,
	args []string) error) func(*cobra.Command, []string) error {
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

// match chooses among sessions, which are sorted newest first.
func match(all []api.Session, ref string) (session.ID, error) {
	for _, s := range all {
		if s.Name == ref {
			return s.ID, nil
		}
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
	return "", failAs(ExitUsage, session.CodeSessionAmbiguous, fmt.Sprintf("%q is the beginning of %d ids: %s.", ref,
		len(beginning), strings.Join(beginning[:min(len(beginning), 5)], ", ")), "Write more of the id, or the name.")
}

// offers completes arguments from the answer of a route: the shell is given names, with what is said of them after a
// tab. It never starts a control plane.
func offers[Out any](p *program, at route.Route[route.None, Out], names func(answer Out, args []string) []string,
) cobra.CompletionFunc {
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

// offersEach completes arguments from a list; say is a name with what is said of it.
func offersEach[T any](p *program, at route.Route[route.None, []T], say func(T) string) cobra.CompletionFunc {
	return offers(p, at, func(list []T, _ []string) []string {
		names := make([]string, len(list))
		for i, one := range list {
			names[i] = say(one)
		}
		return names
	})
}

// completeSessions offers the names of sessions that are live, or of all.
func (p *program) completeSessions(state string) cobra.CompletionFunc {
	at := route.Sessions.With("state", state)
	if state == allSessions {
		at = at.With("limit", "50")
	}
	return offersEach(p, at, func(s api.Session) string {
		return s.Name + "\t" + strings.ToLower(string(s.Status)) + ", " + s.Image
	})
}

// Which sessions are offered for completion.
const (
	liveSessions = "live"
	allSessions  = "all"
)

// onFlag gives a command the flag that names an agent.
func (p *program) onFlag(cmd *cobra.Command, agent *string, usage string) {
	cmd.Flags().StringVar(agent, "on", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("on", p.completeAgents) // fails only for a flag that is not there
}

// completeAgents offers the names of agents.
func (p *program) completeAgents(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return offersEach(p, route.Agents, func(a api.Agent) string {
		return a.Name + "\t" + cmp.Or(a.Address, "this computer") + ", " + string(a.Connection.State)
	})(cmd, args, word)
}
