package server

import (
	"net/http"
	"slices"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// folderRoutes are the routes of folders.
type folderRoutes struct {
	hub *hub.Hub
}

func (s folderRoutes) answers() map[string]answer {
	return map[string]answer{
		"folders":            s.listFolders,
		"folder":             s.getFolder,
		"folder-create":      s.createFolder,
		"folder-update":      s.updateFolder,
		"folder-trash":       s.trashFolder,
		"folder-restore":     s.restoreFolder,
		"folder-delete":      s.deleteFolder,
		"folder-delete-stop": s.stopDeletingFolder,
	}
}

func (s folderRoutes) streams() map[string]streamed { return nil }

// folderOut is a folder as it leaves the server, without whose the sessions are
// that have it mounted.
func folderOut(f session.Folder) api.Folder {
	f.UsedBy, f.Inode = slices.Clone(f.UsedBy), 0
	for i := range f.UsedBy {
		f.UsedBy[i].Owner = ""
	}
	return api.Folder{Folder: f, Auto: f.Auto()}
}

// folderAnswer answers with a folder, or says why there is none.
func folderAnswer(f session.Folder, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return folderOut(f), nil
}

// folderIn returns the folder that a request is about, and its agent.
func (s folderRoutes) folderIn(r *http.Request) (session.Folders, session.Folder, error) {
	return s.hub.FindFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
}

func (s folderRoutes) listFolders(r *http.Request) (any, error) {
	folders, err := s.hub.Folders(r.Context(), r.URL.Query().Get("agent"))
	if err != nil {
		return nil, err
	}
	return each(folders, folderOut), nil
}

func (s folderRoutes) getFolder(r *http.Request) (any, error) {
	_, f, err := s.folderIn(r)
	return folderAnswer(f, err)
}

func (s folderRoutes) createFolder(r *http.Request) (any, error) {
	body, err := decode[api.FolderRequest](r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(s.hub.CreateFolder(r.Context(), body.Agent, body.FolderRequest))
}

func (s folderRoutes) updateFolder(r *http.Request) (any, error) {
	change, err := decode[session.FolderChange](r)
	if err != nil {
		return nil, err
	}
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(agent.UpdateFolder(r.Context(), f.ID, change))
}

func (s folderRoutes) trashFolder(r *http.Request) (any, error) {
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(agent.TrashFolder(r.Context(), f.ID))
}

func (s folderRoutes) restoreFolder(r *http.Request) (any, error) {
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(agent.RestoreFolder(r.Context(), f.ID))
}

func (s folderRoutes) deleteFolder(r *http.Request) (any, error) {
	operation, err := s.hub.PurgeFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
	return starts(s.hub, r, operation, err)
}

func (s folderRoutes) stopDeletingFolder(r *http.Request) (any, error) {
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(agent.StopDeleting(r.Context(), f.ID))
}
