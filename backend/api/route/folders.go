package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/session"
)

// Routes of data folders.
var (
	Folders = Route[None, []api.Folder]{&Endpoint{Name: "folders", Pattern: "GET /folders",
		Summary: "List the data folders, also those in the trash.", Query: agentQuery}}
	FolderCreate = Route[api.FolderRequest, api.Folder]{&Endpoint{Name: "folder-create", Pattern: "POST /folders",
		Summary: "Create a folder, or make a directory of the machine one.", Status: http.StatusCreated}}
	Folder = Route[None, api.Folder]{&Endpoint{Name: "folder", Pattern: "GET /folders/{folder}",
		Summary: "Show a folder, by its id or the name of one that is not in the trash.", Query: agentQuery}}
	FolderUpdate = Route[session.FolderChange, api.Folder]{&Endpoint{Name: "folder-update",
		Pattern: "PATCH /folders/{folder}",
		Summary: "Rename a folder, or change its permission or mode.", Query: agentQuery}}
	FolderTrash = Route[None, api.Folder]{&Endpoint{Name: "folder-trash", Pattern: "POST /folders/{folder}/trash",
		Summary: "Put a folder into the trash. One that a live session has mounted stays.", Query: agentQuery}}
	FolderRestore = Route[None, api.Folder]{&Endpoint{Name: "folder-restore", Pattern: "POST /folders/{folder}/restore",
		Summary: "Take a folder out of the trash.", Query: agentQuery}}
	FolderDelete = Route[None, api.Operation]{&Endpoint{Name: "folder-delete", Pattern: "DELETE /folders/{folder}",
		Summary: "Delete a folder in the trash for ever, as an operation. What is linked stays where it is.",
		Query:   agentQuery, Status: http.StatusAccepted}}
	FolderDeleteStop = Route[None, api.Folder]{&Endpoint{Name: "folder-delete-stop",
		Pattern: "POST /folders/{folder}/stop",
		Summary: "Stop deleting a folder. What is left of it is in the trash.", Query: agentQuery}}
)
