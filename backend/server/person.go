package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (s settingRoutes) getVersion(*http.Request) (any, error) {
	return versionOut(s.hub.Version()), nil
}

func (s settingRoutes) runDoctor(r *http.Request) (any, error) {
	checks, err := s.hub.Doctor(r.Context(), r.FormValue("agent"))
	if err != nil {
		return nil, err
	}
	return checks, nil
}

// listDirectories lists what a person can mount of an agent's machine.
func (s settingRoutes) listDirectories(r *http.Request) (any, error) {
	listing, err := s.hub.ListDirectories(r.Context(), r.PathValue("agent"), r.FormValue("path"))
	if err != nil {
		return nil, err
	}
	return listing, nil
}

func (s settingRoutes) listMachines(*http.Request) (any, error) {
	return each(s.hub.Machines(), machineOut), nil
}

func (s settingRoutes) listPresets(*http.Request) (any, error) {
	return s.hub.Presets(), nil
}

func (s settingRoutes) listRecents(*http.Request) (any, error) {
	return each(s.hub.Recents(), recentOut), nil
}

func (s settingRoutes) updateRecent(r *http.Request) (any, error) {
	req, err := decode[api.RecentUpdate](r)
	if err != nil {
		return nil, err
	}
	recent, err := s.hub.UpdateRecent(r.PathValue("id"), hub.RecentUpdate(req))
	if err != nil {
		return nil, err
	}
	return recentOut(recent), nil
}

func (s settingRoutes) deleteRecent(r *http.Request) (any, error) {
	return nil, s.hub.DeleteRecent(r.PathValue("id"))
}

func (s settingRoutes) getSettings(*http.Request) (any, error) {
	return s.hub.Settings(), nil
}

func (s settingRoutes) updateSettings(r *http.Request) (any, error) {
	req, err := decode[hub.Settings](r)
	if err != nil {
		return nil, err
	}
	if err := s.hub.SaveSettings(req); err != nil {
		return nil, err
	}
	return s.hub.Settings(), nil
}

func (s settingRoutes) showWindow(r *http.Request) (any, error) {
	req, err := decode[api.WindowRequest](r)
	if err != nil {
		return nil, err
	}
	if req.Path != "" {
		req.Path = localPath(req.Path)
	}
	return api.Shown{Shown: s.hub.OpenWindow(hub.Window{Path: req.Path})}, nil
}

// stop asks for the end of the control plane; the answer is sent before it comes.
func (s settingRoutes) stop(*http.Request) (any, error) {
	if s.shutdown == nil {
		return nil, &session.Error{Code: "server_shutdown_forbidden",
			Message: "This server is ended by the program that runs it.", Hint: "Quit that program."}
	}
	s.shutdown()
	return nil, nil
}
