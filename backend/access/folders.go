package access

import (
	"context"

	"slipway/backend/session"
)

// ownFolder fails for a folder that is not shown to whoever asks, as it does
// for one that there is not.
func (v *view) ownFolder(ctx context.Context, id session.FolderID) error {
	if v.all {
		return nil
	}
	f, err := v.inner.GetFolder(ctx, id)
	if err == nil && f.Owner != v.who.Owner {
		err = session.NoFolder(string(id))
	}
	return err
}

// ownPlace fails for a place that is another's. One that names a folder and a
// session must be theirs in both.
func (v *view) ownPlace(ctx context.Context, place session.Place) error {
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
		return "folder " + string(place.Folder) + ": " + string(path)
	}
	return string(path)
}

// didIn is a call in a place of one's own that is written down.
func didIn[T any](ctx context.Context, v *view, method string, place session.Place, path session.FilePath,
	call func() (T, error)) (result T, err error) {
	if err = v.ownPlace(ctx, place); err == nil {
		result, err = call()
	}
	v.note(method, place.Session, inPlace(place, path), err)
	return result, err
}

// askedIn is a call in a place of one's own that is written down only where it
// was another's or none.
func askedIn[T any](ctx context.Context, v *view, method string, place session.Place,
	call func() (T, error)) (result T, err error) {
	if err = v.ownPlace(ctx, place); err != nil {
		v.note(method, place.Session, inPlace(place, ""), err)
		return result, err
	}
	return call()
}

// didTo is a call on a folder of one's own that is written down.
func didTo[T any](ctx context.Context, v *view, method string, id session.FolderID,
	call func() (T, error)) (result T, err error) {
	if err = v.ownFolder(ctx, id); err == nil {
		result, err = call()
	}
	v.note(method, "", "folder "+string(id), err)
	return result, err
}

// askedOf is a call on a folder of one's own that is written down only where it
// was another's or none.
func askedOf[T any](ctx context.Context, v *view, method string, id session.FolderID,
	call func() (T, error)) (result T, err error) {
	if err = v.ownFolder(ctx, id); err != nil {
		v.note(method, "", "folder "+string(id), err)
		return result, err
	}
	return call()
}

func (v *view) ListFolders(ctx context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	if !v.all {
		filter.Owner = v.who.Owner
	}
	return v.inner.ListFolders(ctx, filter)
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
		err = &session.Error{Code: "folder_create_forbidden", Message: "You may not link a directory of this machine.",
			Hint: "Create a folder, or ask whoever rules the agent."}
	} else {
		f, err = v.inner.CreateFolder(ctx, req)
	}
	v.note("CreateFolder", "", "folder "+string(f.ID), err)
	return f, err
}
