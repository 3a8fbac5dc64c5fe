package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/notify"
	"slipway/backend/settings"
)

// settingRoutes are the routes of the person, the machines and the settings.
type settingRoutes struct {
	hub      *hub.Hub
	shutdown func()
}

func (s settingRoutes) answers() map[string]answer {
	return map[string]answer{
		"version":         s.getVersion,
		"doctor":          s.runDoctor,
		"machines":        s.listMachines,
		"directories":     s.listDirectories,
		"presets":         s.listPresets,
		"recents":         s.listRecents,
		"recent-update":   s.updateRecent,
		"recent-delete":   s.deleteRecent,
		"settings":        s.getSettings,
		"settings-update": s.updateSettings,
		"notifier":        s.getNotifier,
		"notifier-try":    s.tryNotice,
		"settings-file":   s.settingsFile,
		"setting-update":  s.updateSetting,
		"window-show":     s.showWindow,
		"shutdown":        s.stop,
	}
}

func (s settingRoutes) streams() map[string]streamed { return nil }

func (s settingRoutes) settingsFile(*http.Request) (any, error) {
	path, state, err := s.hub.SettingsState()
	if err != nil {
		return nil, err
	}
	return settingsFileOut(path, state), nil
}

func (s settingRoutes) updateSetting(r *http.Request) (any, error) {
	req, err := decode[api.SettingUpdate](r)
	if err != nil {
		return nil, err
	}
	var value any
	name := r.PathValue("name")
	if req.Value != nil {
		if value, err = settings.Parse(name, *req.Value); err != nil {
			return nil, err
		}
	}
	if _, err := s.hub.SaveSetting(map[string]any{name: value}); err != nil {
		return nil, err
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

func (s settingRoutes) getNotifier(r *http.Request) (any, error) {
	return api.Notifier{Desktop: s.hub.Notifies(r.Context())}, nil
}

func (s settingRoutes) tryNotice(r *http.Request) (any, error) {
	return nil, s.hub.TryNotice(r.Context())
}

func noticeOut(n notify.Notice) api.Notice {
	return api.Notice{Session: string(n.Session), Title: n.Title, Text: n.Text, Urgent: n.Urgent, At: n.At}
}
