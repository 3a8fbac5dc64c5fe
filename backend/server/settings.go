package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/settings"
)

// settingRoutes are the routes of the person, the machines and the settings.
type settingRoutes struct {
	hub      *hub.Hub
	shutdown func()
}

func (s settingRoutes) mount(m *mounts) {
	answer(m, route.Version, always(s.hub.Version))
	answer(m, route.Doctor, onAgent(s.hub.Doctor))
	answer(m, route.Machines, always(s.hub.Machines))
	answer(m, route.Directories, func(r *http.Request) (session.DirectoryListing, error) {
		return s.hub.ListDirectories(r.Context(), r.PathValue("agent"), r.FormValue("path"))
	})
	answer(m, route.Presets, always(s.hub.Presets))
	answer(m, route.Recents, always(s.hub.Recents))
	take(m, route.RecentUpdate, sendNamed("id", s.hub.UpdateRecent))
	answer(m, route.RecentDelete, func(r *http.Request) (none, error) {
		return none{}, s.hub.DeleteRecent(r.PathValue("id"))
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
	answer(m, route.SettingsFile, s.settingsFile)
	take(m, route.SettingUpdate, s.updateSetting)
	take(m, route.WindowShow, func(_ *http.Request, req api.WindowRequest) (api.Shown, error) {
		if req.Path != "" {
			req.Path = localPath(req.Path)
		}
		return api.Shown{Shown: s.hub.OpenWindow(hub.Window{Path: req.Path})}, nil
	})
	answer(m, route.Shutdown, s.stop)
}

// stop shuts the control plane down. The answer is sent before it ends.
func (s settingRoutes) stop(*http.Request) (none, error) {
	if s.shutdown == nil {
		return none{}, session.NewError(session.CodeOriginForbidden,
			"This server is ended by the program that runs it.", "Quit that program.")
	}
	s.shutdown()
	return none{}, nil
}

func (s settingRoutes) settingsFile(*http.Request) (api.SettingsFile, error) {
	path, state, err := s.hub.SettingsState()
	return settingsFileOut(path, state), err
}

func (s settingRoutes) updateSetting(r *http.Request, req api.SettingUpdate) (api.SettingsFile, error) {
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
