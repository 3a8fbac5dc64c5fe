package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (s settingRoutes) getVersion(*http.Request) (api.Version, error) {
	return versionOut(s.hub.Version()), nil
}

func (s settingRoutes) runDoctor(r *http.Request) ([]session.Check, error) {
	return s.hub.Doctor(r.Context(), r.FormValue("agent"))
}

// listDirectories lists what a person can mount of an agent's machine.
func (s settingRoutes) listDirectories(r *http.Request) (session.DirectoryListing, error) {
	return s.hub.ListDirectories(r.Context(), r.PathValue("agent"), r.FormValue("path"))
}

func (s settingRoutes) listMachines(*http.Request) ([]api.Machine, error) {
	return each(s.hub.Machines(), machineOut), nil
}

func (s settingRoutes) listPresets(*http.Request) ([]hub.Preset, error) {
	return s.hub.Presets(), nil
}

func (s settingRoutes) listRecents(*http.Request) ([]hub.Recent, error) {
	return each(s.hub.Recents(), recentOut), nil
}

func (s settingRoutes) updateRecent(r *http.Request, req api.RecentUpdate) (hub.Recent, error) {
	return as(recentOut)(s.hub.UpdateRecent(r.PathValue("id"), hub.RecentUpdate(req)))
}

func (s settingRoutes) deleteRecent(r *http.Request) (none, error) {
	return none{}, s.hub.DeleteRecent(r.PathValue("id"))
}

func (s settingRoutes) getSettings(*http.Request) (hub.Settings, error) {
	return s.hub.Settings(), nil
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

// stop asks for the end of the control plane; the answer is sent before it comes.
func (s settingRoutes) stop(*http.Request) (none, error) {
	if s.shutdown == nil {
		return none{}, &session.Error{Code: session.CodeOriginForbidden,
			Message: "This server is ended by the program that runs it.", Hint: "Quit that program."}
	}
	s.shutdown()
	return none{}, nil
}
