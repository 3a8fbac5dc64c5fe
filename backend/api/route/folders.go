package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/session"
)

// Routes of data folders.
var (
	Folders = at[None, []api.Folder]("folders", "GET /folders", "List the data folders, also those in the trash.",
		agentQuery...)
	FolderCreate = at[api.FolderRequest, api.Folder]("folder-create", "POST /folders",
		"Create a folder, or link a directory of the machine as one.").answers(http.StatusCreated)
	Folder = at[None, api.Folder]("folder", "GET /folders/{folder}",
		"Show a folder, by its id or the name of one that is not in the trash.", agentQuery...)
	FolderUpdate = at[session.FolderChange, api.Folder]("folder-update", "PATCH /folders/{folder}",
		"Rename a folder, or change its permission or mode.", agentQuery...)
	FolderTrash = at[None, api.Folder]("folder-trash", "POST /folders/{folder}/trash",
		"Move a folder to the trash, unless a live session has mounted it.", agentQuery...)
	FolderRestore = at[None, api.Folder]("folder-restore", "POST /folders/{folder}/restore",
		"Restore a folder from the trash.", agentQuery...)
	FolderDelete = at[None, api.Operation]("folder-delete", "DELETE /folders/{folder}",
		"Permanently delete a folder in the trash, as an operation. A linked directory is kept.", agentQuery...)
	FolderDeleteStop = at[None, api.Folder]("folder-delete-stop", "POST /folders/{folder}/stop",
		"Stop deleting a folder. The rest of it stays in the trash.", agentQuery...)
)
