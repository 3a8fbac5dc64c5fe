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
	answer(m, route.Directories, s.listDirectories)
	answer(m, route.Presets, always(s.hub.Presets))
	answer(m, route.Recents, always(s.hub.Recents))
	take(m, route.RecentUpdate, s.updateRecent)
	answer(m, route.RecentDelete, s.deleteRecent)
	answer(m, route.Settings, always(s.hub.Settings))
	take(m, route.SettingsUpdate, s.updateSettings)
	answer(m, route.Notifier, s.getNotifier)
	answer(m, route.NotifierTry, s.tryNotice)
	answer(m, route.SettingsFile, s.settingsFile)
	take(m, route.SettingUpdate, s.updateSetting)
	take(m, route.WindowShow, s.showWindow)
	answer(m, route.Shutdown, s.stop)
}

// listDirectories lists the directories of an agent's machine that a person can mount.
func (s settingRoutes) listDirectories(r *http.Request) (session.DirectoryListing, error) {
	return s.hub.ListDirectories(r.Context(), r.PathValue("agent"), r.FormValue("path"))
}

func (s settingRoutes) updateRecent(r *http.Request, req api.RecentUpdate) (hub.Recent, error) {
	return s.hub.UpdateRecent(r.PathValue("id"), req)
}

func (s settingRoutes) deleteRecent(r *http.Request) (none, error) {
	return none{}, s.hub.DeleteRecent(r.PathValue("id"))
}

func (s settingRoutes) updateSettings(r *http.Request, req hub.Settings) (hub.Settings, error) {
	if err := s.hub.SaveSettings(req); err != nil {
		return hub.Settings{}, err
	}
	return s.hub.Settings(), nil
}

func (s settingRoutes) showWindow(r *http.Request, req api.WindowRequest) (api.Shown, error) {
	if req.Path != "" {
		req.Path = localPath(req.Path)
	}
	return api.Shown{Shown: s.hub.OpenWindow(hub.Window{Path: req.Path})}, nil
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
	if err != nil {
		return api.SettingsFile{}, err
	}
	return settingsFileOut(path, state), nil
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
			Name: f.Name, Kind: string(f.Kind), Choices: f.Choices, Text: f.Text, Restart: f.Restart, Variable: f.Env,
			Default: f.Print(f.Default), Value: f.Print(state.Values[f.Name]), Set: set,
			Override: state.Overrides[f.Name],
		})
	}
	return file
}

func (s settingRoutes) getNotifier(r *http.Request) (api.Notifier, error) {
	return api.Notifier{Desktop: s.hub.Notifies(r.Context())}, nil
}

func (s settingRoutes) tryNotice(r *http.Request) (none, error) {
	return none{}, s.hub.TryNotice(r.Context())
}
