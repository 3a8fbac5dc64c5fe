package server

import (
	"context"
	"net/http"
	"slices"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

type folderRoutes struct{ hub *hub.Hub }

func (s folderRoutes) mount(m *mounts) {
	answer(m, route.Folders, func(r *http.Request) ([]api.Folder, error) {
		return eachAs(folderOut)(s.hub.Folders(r.Context(), r.URL.Query().Get("agent")))
	})
	answer(m, route.Folder, func(r *http.Request) (api.Folder, error) {
		_, f, err := s.folderIn(r)
		return as(folderOut)(f, err)
	})
	take(m, route.FolderCreate, func(r *http.Request, body api.FolderRequest) (api.Folder, error) {
		return as(folderOut)(s.hub.CreateFolder(r.Context(), body.Agent, body.FolderRequest))
	})
	take(m, route.FolderUpdate, func(r *http.Request, change session.FolderChange) (api.Folder, error) {
		agent, f, err := s.folderIn(r)
		if err != nil {
			return api.Folder{}, err
		}
		return as(folderOut)(agent.UpdateFolder(r.Context(), f.ID, change))
	})
	answer(m, route.FolderTrash, s.inFolder(session.FolderTrash.TrashFolder))
	answer(m, route.FolderRestore, s.inFolder(session.FolderTrash.RestoreFolder))
	answer(m, route.FolderDelete, func(r *http.Request) (api.Operation, error) {
		return s.hub.PurgeFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
	})
	answer(m, route.FolderDeleteStop, s.inFolder(session.FolderTrash.StopDeleting))
}

// folderOut removes the owners of the sessions that mount a folder.
func folderOut(f session.Folder) api.Folder {
	f.UsedBy, f.Inode = slices.Clone(f.UsedBy), 0
	for i := range f.UsedBy {
		f.UsedBy[i].Owner = ""
	}
	return api.Folder{Folder: f, Auto: f.Auto()}
}

func (s folderRoutes) folderIn(r *http.Request) (session.Agent, session.Folder, error) {
	return s.hub.FindFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
}

// inFolder returns a handler that calls do for the folder in the path.
func (s folderRoutes) inFolder(do func(session.FolderTrash, context.Context, session.FolderID) (session.Folder,
	error)) func(*http.Request) (api.Folder, error) {
	return func(r *http.Request) (api.Folder, error) {
		agent, f, err := s.folderIn(r)
		if err != nil {
			return api.Folder{}, err
		}
		return as(folderOut)(do(agent.FolderTrash, r.Context(), f.ID))
	}
}
