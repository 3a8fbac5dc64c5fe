package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/session"
)

func folderOut(f session.Folder) api.Folder {
	out := api.Folder{
		ID: string(f.ID), Name: f.Name, Agent: f.Agent, Owner: f.Owner, Permission: string(f.Permission),
		Mode: string(f.Mode), Auto: f.Auto(),
		State: string(f.State), Path: f.Path, Missing: f.Missing, Problem: f.Problem, CreatedAt: f.CreatedAt,
		TrashedAt: f.TrashedAt, Counting: f.Counting,
		UsedBy: each(f.UsedBy, func(u session.FolderUser) api.FolderUser {
			return api.FolderUser{Session: string(u.Session), Name: u.Name}
		}),
	}
	if u := f.Usage; u != nil {
		out.Usage = &api.FolderUsage{Bytes: int64(u.Bytes), Files: u.Files, At: u.At, Partial: u.Partial}
	}
	if r := f.Removed; r != nil {
		out.Removed = &api.FolderRemoval{Files: r.Files, Bytes: int64(r.Bytes), OfFiles: r.OfFiles,
			OfBytes: int64(r.OfBytes)}
	}
	return out
}

func folderMountOut(m session.FolderMount) api.FolderMount {
	return api.FolderMount{Folder: string(m.Folder), Name: m.Name, Path: m.Path, Target: m.Target, ReadOnly: m.ReadOnly,
		Auto: m.Auto}
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
	return folderAnswer(s.hub.CreateFolder(r.Context(), body.Agent, session.FolderRequest{
		Name: body.Name, Owner: body.Owner, Permission: session.FolderPermission(body.Permission),
		Mode: session.FolderMode(body.Mode), Path: body.Path,
	}))
}

func (s *Server) updateFolder(r *http.Request) (any, error) {
	body, err := decode[api.FolderUpdate](r)
	if err != nil {
		return nil, err
	}
	agent, f, err := s.folderIn(r)
	if err != nil {
		return nil, err
	}
	change := session.FolderChange{Name: body.Name}
	if body.Permission != nil {
		permission := session.FolderPermission(*body.Permission)
		change.Permission = &permission
	}
	if body.Mode != nil {
		mode := session.FolderMode(*body.Mode)
		change.Mode = &mode
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
