package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/notify"
	"slipway/backend/settings"
)

// settingRoutes are the routes of the person, the machines and the settings.
type settingRoutes struct {
	hub      *hub.Hub
	shutdown func()
}

func (s settingRoutes) mount(m *mounts) {
	answer(m, route.Version, s.getVersion)
	answer(m, route.Doctor, s.runDoctor)
	answer(m, route.Machines, s.listMachines)
	answer(m, route.Directories, s.listDirectories)
	answer(m, route.Presets, s.listPresets)
	answer(m, route.Recents, s.listRecents)
	take(m, route.RecentUpdate, s.updateRecent)
	answer(m, route.RecentDelete, s.deleteRecent)
	answer(m, route.Settings, s.getSettings)
	take(m, route.SettingsUpdate, s.updateSettings)
	answer(m, route.Notifier, s.getNotifier)
	answer(m, route.NotifierTry, s.tryNotice)
	answer(m, route.SettingsFile, s.settingsFile)
	take(m, route.SettingUpdate, s.updateSetting)
	take(m, route.WindowShow, s.showWindow)
	answer(m, route.Shutdown, s.stop)
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

func noticeOut(n notify.Notice) api.Notice {
	return api.Notice{Session: string(n.Session), Title: n.Title, Text: n.Text, Urgent: n.Urgent, At: n.At}
}
