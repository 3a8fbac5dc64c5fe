package hubtest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"slipway/backend/session"
)

// folders are an agent's folders in memory, without files.
type folders struct {
	agent string

	mu   sync.Mutex // guards list
	list []session.Folder
}

func (f *folders) ListFolders(_ context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.list), func(one session.Folder) bool {
		return filter.Owner != "" && one.Owner != filter.Owner
	}), nil
}

func (f *folders) change(id session.FolderID, do func(*session.Folder)) (session.Folder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.list {
		if f.list[i].ID == id {
			do(&f.list[i])
			return f.list[i], nil
		}
	}
	return session.Folder{}, session.NoFolder(string(id))
}

func (f *folders) GetFolder(_ context.Context, id session.FolderID) (session.Folder, error) {
	return f.change(id, func(*session.Folder) {})
}

func (f *folders) CreateFolder(_ context.Context, req session.FolderRequest) (session.Folder, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := session.Folder{
		ID: session.FolderID(session.NewID()), Name: req.Name, Owner: req.Owner, Agent: f.agent,
		FolderOrigin: session.FolderOrigin{Path: req.Path}, State: session.FolderReady,
		Permission: cmp.Or(req.Permission, session.FolderReadWrite), Mode: cmp.Or(req.Mode, session.FolderGeneral),
	}
	f.list = append(f.list, one)
	return one, nil
}

// UpdateFolder changes nothing.
func (f *folders) UpdateFolder(ctx context.Context, id session.FolderID,
	_ session.FolderChange) (session.Folder, error) {
	return f.GetFolder(ctx, id)
}

func (f *folders) TrashFolder(_ context.Context, id session.FolderID) (session.Folder, error) {
	return f.change(id, func(one *session.Folder) { one.State = session.FolderTrashed })
}

func (f *folders) RestoreFolder(_ context.Context, id session.FolderID) (session.Folder, error) {
	return f.change(id, func(one *session.Folder) { one.State = session.FolderReady })
}

func (f *folders) DeleteFolder(_ context.Context, id session.FolderID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = slices.DeleteFunc(f.list, func(one session.Folder) bool { return one.ID == id })
	return nil
}

// StopDeleting does nothing: here folders are deleted at once.
func (f *folders) StopDeleting(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return f.GetFolder(ctx, id)
}
