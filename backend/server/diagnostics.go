package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/diagnose"
	"slipway/backend/hub"
)

// diagnosticRoutes are the routes of the log and the support report.
type diagnosticRoutes struct {
	hub      *hub.Hub
	logFile  string
	redactor diagnose.Redactor
}

func (s diagnosticRoutes) mount(m *mounts) {
	answer(m, route.Log, s.getLog)
	answer(m, route.Diagnostics, s.getDiagnostics)
}

// Numbers of log lines: shown by default, the maximum, and in a report.
const (
	logLines    = 500
	logMost     = 5000
	reportLines = 200
)

func (s diagnosticRoutes) getLog(r *http.Request) (api.LogTail, error) {
	lines, err := countIn(r, "tail")
	if err != nil {
		return api.LogTail{}, err
	}
	tail, err := s.redactor.Tail(s.logFile, min(cmp.Or(lines, logLines), logMost))
	return api.LogTail{Path: s.logFile, Lines: tail}, err
}

func (s diagnosticRoutes) getDiagnostics(r *http.Request) (api.Diagnostics, error) {
	var b strings.Builder
	v := s.hub.Version()
	fmt.Fprintf(&b, "Slipway %s (%s), %s, %s/%s\n", v.Version, v.Commit, v.Go, v.OS, v.Arch)
	for _, m := range s.hub.Machines() {
		fmt.Fprintf(&b, "Machine of %s: %s, engine %s %s, %d CPUs, %s\n", m.Agent, m.OS, m.Engine, m.EngineVersion,
			m.CPUs, m.Memory)
	}
	for _, a := range s.hub.Agents() {
		fmt.Fprintf(&b, "Agent %s: %s\n", a.Name, a.Connection.State)
	}
	b.WriteString("\nChecks\n")
	checks, err := s.hub.Doctor(r.Context(), "")
	if err != nil {
		fmt.Fprintf(&b, "  none: %v\n", err)
	}
	for _, c := range checks {
		fmt.Fprintf(&b, "  %s: %s: %s\n", c.Result, c.Title, c.Text)
	}
	b.WriteString("\nSettings that are not the default\n")
	if path, state, err := s.hub.SettingsState(); err == nil {
		for _, f := range settingsFileOut(path, state).Settings {
			if f.Set || f.Override != "" {
				fmt.Fprintf(&b, "  %s is %q\n", f.Name, f.Value)
			}
		}
		for _, p := range state.Problems {
			fmt.Fprintf(&b, "  line %d %s: %s\n", p.Line, p.Name, p.Message)
		}
	}
	tail, err := s.redactor.Tail(s.logFile, reportLines)
	if err != nil {
		return api.Diagnostics{}, err
	}
	fmt.Fprintf(&b, "\nLog\n%s\n", strings.Join(tail, "\n"))
	return api.Diagnostics{Text: s.redactor.Text(b.String())}, nil
}
