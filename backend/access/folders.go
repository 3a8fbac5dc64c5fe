package access

import (
	"context"

	"slipway/backend/session"
)

// ownFolder fails for a folder that is not shown to whoever asks, as it does
// for one that there is not.
func (v person) ownFolder(ctx context.Context, id session.FolderID) error {
	if v.all {
		return nil
	}
	f, err := v.agent.GetFolder(ctx, id)
	if err == nil && f.Owner != v.who.Owner {
		err = session.NoFolder(string(id))
	}
	return err
}

// ownPlace fails for a place that is another's. One that names a folder and a
// session must be theirs in both.
func (v person) ownPlace(ctx context.Context, place session.Place) error {
	if place.Folder != "" {
		if err := v.ownFolder(ctx, place.Folder); err != nil || place.Session == "" {
			return err
		}
	}
	return v.own(ctx, place.Session)
}

// inPlace names a path in a place for the log.
func inPlace(place session.Place, path session.FilePath) string {
	if place.Folder != "" {
		return inFolder(place.Folder) + ": " + string(path)
	}
	return string(path)
}

func inFolder(id session.FolderID) string { return "folder " + string(id) }

func (v *view) ListFolders(ctx context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	if !v.all {
		filter.Owner = v.who.Owner
	}
	return v.agent.ListFolders(ctx, filter)
}

// CreateFolder implements [session.Folders]. Only an admin may link a directory
// of the machine, or create a folder for another owner.
func (v *view) CreateFolder(ctx context.Context, req session.FolderRequest) (session.Folder, error) {
	if req.Owner == "" || !v.all {
		req.Owner = v.who.Owner
	}
	var f session.Folder
	var err error
	if req.Path != "" && !v.all {
		err = session.NewError(session.CodeAgentForbidden, "You may not link a directory of this machine.",
			"Create a folder, or ask an admin.")
	} else {
		f, err = v.agent.CreateFolder(ctx, req)
	}
	v.note("CreateFolder", "", inFolder(f.ID), err)
	return f, err
}
