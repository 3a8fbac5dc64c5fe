package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/place"
	"slipway/backend/session"
)

// ended reports whether a session has a status that it never leaves.
func ended(s api.Session) bool { return s.Status.Terminal() }

// detailStatus gives the last part of a code the status of HTTP it is told with.
var detailStatus = map[string]int{
	"not-found":   http.StatusNotFound,
	"invalid":     http.StatusUnprocessableEntity,
	"unavailable": http.StatusServiceUnavailable,
}

func hasDetail(code session.Code, detail string) bool {
	return strings.HasSuffix(string(code), "_"+detail)
}

// find returns the session that ref names: its id, the name of a live one, the
// name of the newest finished one, or a beginning of an id that only one has.
func (c *client) find(ctx context.Context, ref string) (api.Session, json.RawMessage, error) {
	var found api.Session
	raw, err := c.get(ctx, sessionPath(ref), &found)
	var problem *problemError
	if err == nil || !errors.As(err, &problem) || problem.status != http.StatusNotFound {
		return found, raw, err
	}
	var all []api.Session
	if _, err := c.get(ctx, "/api/v1/sessions?state=all", &all); err != nil {
		return found, nil, err
	}
	id, err := match(all, ref)
	if err != nil {
		return found, nil, err
	}
	raw, err = c.get(ctx, sessionPath(id), &found)
	return found, raw, err
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
		return "", &failure{code: "session_read_not-found", exit: ExitNotFound,
			message: fmt.Sprintf("There is no session %q.", ref), hint: "slipway ps -a lists all of them."}
	case 1:
		return session.ID(beginning[0]), nil
	}
	return "", &failure{code: "session_read_ambiguous", exit: ExitUsage,
		message: fmt.Sprintf("%q is the beginning of %d ids: %s.", ref, len(beginning),
			strings.Join(beginning[:min(len(beginning), 5)], ", ")),
		hint: "Write more of the id, or the name."}
}

// completeSessions offers the names of sessions to the shell. It never starts a
// control plane.
func (p *program) completeSessions(query string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var sessions []api.Session
		if !p.offer(cmd, "/api/v1/sessions?"+query, &sessions) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, s := range sessions {
			names = append(names, s.Name+"\t"+strings.ToLower(string(s.Status))+", "+s.Image)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// offer reads what is to be offered to the shell, if a control plane runs.
func (p *program) offer(cmd *cobra.Command, path string, into any) bool {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return false
	}
	connection, err := home.Connect(cmd.Context())
	if err != nil {
		return false
	}
	_, err = newClient(connection).get(cmd.Context(), path, into)
	return err == nil
}

// Which sessions are offered for completion.
const (
	liveSessions = "state=live"
	allSessions  = "state=all&limit=50"
)

// onFlag gives a command the flag that names an agent.
func (p *program) onFlag(cmd *cobra.Command, agent *string, usage string) {
	cmd.Flags().StringVar(agent, "on", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("on", p.completeAgents) // fails only for a flag that is not there
}

// completeAgents offers the names of agents to the shell. It never starts a
// control plane.
func (p *program) completeAgents(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var agents []api.Agent
	if !p.offer(cmd, "/api/v1/agents", &agents) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = a.Name + "\t" + cmp.Or(a.Address, "this computer") + ", " + a.Connection.State
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
