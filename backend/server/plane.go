package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/diagnose"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/settings"
	"slipway/backend/updates"
)

// planeRoutes are the routes of the control plane: its settings, events, log and demo.
type planeRoutes struct {
	hub         *hub.Hub
	shutdown    func() // nil: unavailable
	log         *slog.Logger
	logFile     string
	redactor    diagnose.Redactor
	sockets     *sockets
	demo        Demo             // nil: none
	demoStarter DemoStarter      // nil: unavailable
	updates     *updates.Checker // nil: unavailable
}

func (s planeRoutes) mount(m *mounts) {
	answer(m, route.Version, always(s.hub.Version))
	answer(m, route.Presets, always(s.hub.Presets))
	answer(m, route.Recents, always(s.hub.Recents))
	take(m, route.RecentUpdate, sendNamed("id", s.hub.UpdateRecent))
	answer(m, route.RecentDelete, func(r *http.Request) (none, error) {
		return none{}, s.hub.DeleteRecent(r.PathValue("id"))
	})
	answer(m, route.Projects, always(s.hub.Projects))
	take(m, route.ProjectUpdate, sendNamed("id", s.hub.PinProject))
	answer(m, route.ProjectForget, func(r *http.Request) (none, error) {
		return none{}, s.hub.ForgetProject(r.PathValue("id"))
	})
	answer(m, route.Settings, always(s.hub.Settings))
	take(m, route.SettingsUpdate, func(_ *http.Request, req hub.Settings) (hub.Settings, error) {
		err := s.hub.SaveSettings(req)
		return s.hub.Settings(), err
	})
	answer(m, route.Notifier, func(r *http.Request) (api.Notifier, error) {
		return api.Notifier{Desktop: s.hub.Notifies(r.Context())}, nil
	})
	answer(m, route.NotifierTry, func(r *http.Request) (none, error) {
		return none{}, s.hub.TryNotice(r.Context())
	})
	answer(m, route.Updates, s.offer(func(_ context.Context, c *updates.Checker) updates.Offer { return c.Offer() }))
	answer(m, route.UpdatesCheck, s.offer(func(ctx context.Context, c *updates.Checker) updates.Offer {
		return c.Check(ctx)
	}))
	answer(m, route.SettingsFile, s.settingsFile)
	take(m, route.SettingUpdate, s.updateSetting)
	answer(m, route.Secrets, always(s.hub.Secrets))
	take(m, route.SecretSet, func(_ *http.Request, req hub.SecretContent) (hub.Secret, error) {
		return s.hub.SetSecret(req)
	})
	answer(m, route.SecretDelete, func(r *http.Request) (none, error) {
		return none{}, s.hub.DeleteSecret(hub.SecretKind(r.PathValue("kind")), r.PathValue("name"))
	})
	take(m, route.WindowShow, func(_ *http.Request, req api.WindowRequest) (api.Shown, error) {
		if req.Path != "" {
			req.Path = localPath(req.Path)
		}
		return api.Shown{Shown: s.hub.OpenWindow(hub.Window{Path: req.Path})}, nil
	})
	answer(m, route.Shutdown, s.stop)
	answer(m, route.Log, s.getLog)
	answer(m, route.Diagnostics, s.getDiagnostics)
	answer(m, route.Demo, s.getDemo)
	take(m, route.DemoLid, s.setLid)
	take(m, route.DemoStart, s.startDemo)
	m.stream(route.Events.Endpoint, s.events)
}

// stop shuts the control plane down. The answer is sent before it ends.
func (s planeRoutes) stop(*http.Request) (none, error) {
	if s.shutdown == nil {
		return none{}, session.NewError(session.CodeOriginForbidden,
			"Stop this server with the program that runs it.", "Quit that program.")
	}
	s.shutdown()
	return none{}, nil
}

// offer returns a handler that asks what checks for newer versions.
func (s planeRoutes) offer(ask func(context.Context, *updates.Checker) updates.Offer) func(*http.Request) (
	updates.Offer, error) {
	return func(r *http.Request) (updates.Offer, error) {
		if s.updates == nil {
			return updates.Offer{}, session.NewError(session.CodeServerUnavailable,
				"This Slipway does not check for newer versions.", "Use the slipway program.")
		}
		return ask(r.Context(), s.updates), nil
	}
}

func (s planeRoutes) settingsFile(*http.Request) (api.SettingsFile, error) {
	path, state, err := s.hub.SettingsState()
	return settingsFileOut(path, state), err
}

func (s planeRoutes) updateSetting(r *http.Request, req api.SettingUpdate) (api.SettingsFile, error) {
	var value any
	var err error
	name := r.PathValue("name")
	if req.Value != nil {
		value, err = settings.Parse(name, *req.Value)
	}
	if err == nil {
		_, err = s.hub.SaveSetting(map[string]any{name: value})
	}
	if err != nil {
		return api.SettingsFile{}, err
	}
	return s.settingsFile(r)
}

func settingsFileOut(path string, state settings.State) api.SettingsFile {
	file := api.SettingsFile{Path: path, Problems: each(state.Problems, func(p settings.Problem) api.SettingProblem {
		return api.SettingProblem{Line: p.Line, Name: p.Name, Message: p.Message}
	})}
	for _, f := range settings.Fields() {
		_, set := state.File[f.Name]
		file.Settings = append(file.Settings, api.Setting{
			Name: f.Name, Kind: string(f.Kind), Choices: f.Choices, Text: f.Text, Restart: f.Restart(), Variable: f.Env,
			Default: f.Print(f.Default), Value: f.Print(state.Values[f.Name]), Set: set,
			Override: state.Overrides[f.Name],
		})
	}
	return file
}

// Numbers of log lines: shown by default, the maximum, and in a report.
const (
	logLines    = 500
	logMost     = 5000
	reportLines = 200
)

func (s planeRoutes) getLog(r *http.Request) (api.LogTail, error) {
	lines, err := countIn(r, "tail")
	if err != nil {
		return api.LogTail{}, err
	}
	tail, err := s.redactor.Tail(s.logFile, min(cmp.Or(lines, logLines), logMost))
	return api.LogTail{Path: s.logFile, Lines: tail}, err
}

func (s planeRoutes) getDiagnostics(r *http.Request) (api.Diagnostics, error) {
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

// Demo is a demo that is served.
type Demo interface {
	State() DemoState
	// SetLid closes or opens the lid of the simulated laptop. A closed lid cuts all connections to other machines.
	SetLid(closed bool)
}

// DemoState is the state of a demo.
type DemoState = api.Demo

func (s planeRoutes) getDemo(*http.Request) (api.Demo, error) {
	if s.demo == nil {
		return api.Demo{}, nil
	}
	state := s.demo.State()
	state.Active = true
	return state, nil
}

func (s planeRoutes) setLid(r *http.Request, req api.DemoLid) (api.Demo, error) {
	if s.demo == nil || s.demo.State().Lab == "" {
		return api.Demo{}, session.NewError(session.CodeServerUnavailable,
			"No demo with a tunnel is running.", "Start one: slipway demo")
	}
	s.demo.SetLid(req.Closed)
	return s.getDemo(r)
}

// DemoStarter starts a demo next to the real control plane.
type DemoStarter interface {
	// Start starts the demo unless it is running, and returns an address that logs a browser in to it once. It fails
	// with server_start_failed.
	Start(ctx context.Context) (string, error)
}

func (s planeRoutes) startDemo(r *http.Request, req api.DemoStart) (api.DemoStarted, error) {
	if s.demoStarter == nil {
		return api.DemoStarted{}, session.NewError(session.CodeServerUnavailable, "This is already a demo.",
			"Close it to return to the real Slipway.")
	}
	address, err := s.demoStarter.Start(r.Context())
	if err != nil {
		return api.DemoStarted{}, err
	}
	started := api.DemoStarted{URL: address}
	if req.Window {
		started.Windowed = s.hub.OpenWindow(hub.Window{URL: started.URL, Title: "Slipway · Demo"})
	}
	return started, nil
}

// events sends the events of the hub over a WebSocket. A client that does not take a message within writeMost is
// disconnected and reconnects with its cursor.
func (s planeRoutes) events(w http.ResponseWriter, r *http.Request) error {
	after, err := offsetIn(r, "after")
	if err != nil {
		return err
	}
	shell, err := flagIn(r, "shell")
	if err != nil {
		return err
	}
	conn, ctx, err := s.sockets.upgrade(w, r, false)
	if conn == nil {
		return err
	}
	defer conn.cancel()
	watcher := s.hub.Watch(hub.Cursor{Epoch: r.FormValue("epoch"), Seq: after}, shell)
	defer watcher.Close()
	go conn.discard()
	for {
		event, err := watcher.Next(ctx)
		if err != nil {
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""),
				time.Now().Add(time.Second))
			return nil
		}
		text, err := encode(event)
		if err != nil {
			s.log.Error("an event cannot be written", "error", err)
			return nil
		}
		if conn.hurry() != nil || conn.WriteMessage(websocket.TextMessage, text) != nil {
			return nil
		}
	}
}
