package server

import (
	"net/http"
	"slices"

	"slipway/backend/api"
	"slipway/backend/session"
)

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
func (s *Server) folderIn(r *http.Request) (session.Folders, session.Folder, error) {
	return s.hub.FindFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
}

func (s *Server) listFolders(r *http.Request) (any, error) {
	folders, err := s.hub.Folders(r.Context(), r.URL.Query().Get("agent"))
	if err != nil {
		return nil, err
	}
	return each(folders, folderOut), nil
}

func (s *Server) getFolder(r *http.Request) (any, error) {
	_, f, err := s.folderIn(r)
	return folderAnswer(f, err)
}

func (s *Server) createFolder(r *http.Request) (any, error) {
	body, err := decode[api.FolderRequest](r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(s.hub.CreateFolder(r.Context(), body.Agent, body.FolderRequest))
}

func (s *Server) updateFolder(r *http.Request) (any, error) {
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

func (s *Server) trashFolder(r *http.Request) (any, error) {
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(agent.TrashFolder(r.Context(), f.ID))
}

func (s *Server) restoreFolder(r *http.Request) (any, error) {
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(agent.RestoreFolder(r.Context(), f.ID))
}

func (s *Server) deleteFolder(r *http.Request) (any, error) {
	operation, err := s.hub.PurgeFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
	return s.starts(r, operation, err)
}

func (s *Server) stopDeletingFolder(r *http.Request) (any, error) {
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	return folderAnswer(agent.StopDeleting(r.Context(), f.ID))
}
