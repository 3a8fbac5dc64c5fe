package agentrpc

import (
	"context"

	"slipway/backend/session"
	"slipway/tunnel"
)

// The arguments of the methods.
type (
	byFolder struct {
		ID session.FolderID `json:"id"`
	}
	folderChangeArgs struct {
		ID     session.FolderID     `json:"id"`
		Change session.FolderChange `json:"change"`
	}
)

// The methods of [session.Folders].
var (
	methodListFolders = plain[session.FolderFilter, []session.Folder]{spec{"folders", "read", tunnel.Control, read,
		short},
		func(ctx context.Context, a session.Agent, r session.FolderFilter) ([]session.Folder, error) {
			return a.ListFolders(ctx, r)
		}}
	methodGetFolder = plain[byFolder, session.Folder]{spec{"folder.get", "read", tunnel.Control, read, short},
		func(ctx context.Context, a session.Agent, r byFolder) (session.Folder, error) {
			return a.GetFolder(ctx, r.ID)
		}}
	methodCreateFolder = plain[session.FolderRequest, session.Folder]{spec{"folder.create", "create", tunnel.Control,
		once, short},
		func(ctx context.Context, a session.Agent, r session.FolderRequest) (session.Folder, error) {
			return a.CreateFolder(ctx, r)
		}}
	methodUpdateFolder = plain[folderChangeArgs, session.Folder]{spec{"folder.update", "update", tunnel.Control, again,
		short},
		func(ctx context.Context, a session.Agent, r folderChangeArgs) (session.Folder, error) {
			return a.UpdateFolder(ctx, r.ID, r.Change)
		}}
	methodTrashFolder = plain[byFolder, session.Folder]{spec{"folder.trash", "trash", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r byFolder) (session.Folder, error) {
			return a.TrashFolder(ctx, r.ID)
		}}
	methodRestoreFolder = plain[byFolder, session.Folder]{spec{"folder.restore", "restore", tunnel.Control, again,
		short},
		func(ctx context.Context, a session.Agent, r byFolder) (session.Folder, error) {
			return a.RestoreFolder(ctx, r.ID)
		}}
	methodDeleteFolder = plain[byFolder, none]{spec{"folder.delete", "delete", tunnel.Control, once, short},
		func(ctx context.Context, a session.Agent, r byFolder) (none, error) {
			return none{}, a.DeleteFolder(ctx, r.ID)
		}}
	methodStopDeleting = plain[byFolder, session.Folder]{spec{"folder.stop", "stop", tunnel.Control, again, short},
		func(ctx context.Context, a session.Agent, r byFolder) (session.Folder, error) {
			return a.StopDeleting(ctx, r.ID)
		}}
)

func (c *Client) ListFolders(ctx context.Context, filter session.FolderFilter) ([]session.Folder, error) {
	return methodListFolders.call(ctx, c, filter)
}

func (c *Client) GetFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return methodGetFolder.call(ctx, c, byFolder{id}, ofFolder(id))
}

func (c *Client) CreateFolder(ctx context.Context, req session.FolderRequest) (session.Folder, error) {
	return methodCreateFolder.call(ctx, c, req)
}

func (c *Client) UpdateFolder(ctx context.Context, id session.FolderID,
	change session.FolderChange) (session.Folder, error) {
	return methodUpdateFolder.call(ctx, c, folderChangeArgs{id, change}, ofFolder(id))
}

func (c *Client) TrashFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return methodTrashFolder.call(ctx, c, byFolder{id}, ofFolder(id))
}

func (c *Client) RestoreFolder(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return methodRestoreFolder.call(ctx, c, byFolder{id}, ofFolder(id))
}

func (c *Client) DeleteFolder(ctx context.Context, id session.FolderID) error {
	_, err := methodDeleteFolder.call(ctx, c, byFolder{id})
	return err
}

func (c *Client) StopDeleting(ctx context.Context, id session.FolderID) (session.Folder, error) {
	return methodStopDeleting.call(ctx, c, byFolder{id}, ofFolder(id))
}
