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
		"Create a folder, or make a directory of the machine one.").answers(http.StatusCreated)
	Folder = at[None, api.Folder]("folder", "GET /folders/{folder}",
		"Show a folder, by its id or the name of one that is not in the trash.", agentQuery...)
	FolderUpdate = at[session.FolderChange, api.Folder]("folder-update", "PATCH /folders/{folder}",
		"Rename a folder, or change its permission or mode.", agentQuery...)
	FolderTrash = at[None, api.Folder]("folder-trash", "POST /folders/{folder}/trash",
		"Put a folder into the trash. One that a live session has mounted stays.", agentQuery...)
	FolderRestore = at[None, api.Folder]("folder-restore", "POST /folders/{folder}/restore",
		"Take a folder out of the trash.", agentQuery...)
	FolderDelete = at[None, api.Operation]("folder-delete", "DELETE /folders/{folder}",
		"Delete a folder in the trash for ever, as an operation. What is linked stays where it is.", agentQuery...)
	FolderDeleteStop = at[None, api.Folder]("folder-delete-stop", "POST /folders/{folder}/stop",
		"Stop deleting a folder. What is left of it is in the trash.", agentQuery...)
)
