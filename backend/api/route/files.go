package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// Files are the routes to the files of a session or of a folder.
type Files struct {
	List     Route[None, api.FileListing]
	Remove   Route[None, None]
	Stat     Route[None, api.FileInfo]
	Checksum Route[None, api.Checksum]
	Read     Route[None, None]
	Zip      Route[None, None]
	Move     Route[None, None]

	MakeDirectory Route[None, None]

	Upload       Route[None, api.UploadState]
	UploadWrite  Route[None, api.UploadState]
	UploadFinish Route[api.FinishRequest, api.FileInfo]
	UploadDrop   Route[None, None]
}

// SessionFiles are the routes to the files of a running session.
func SessionFiles() Files {
	return filesBelow("", "/sessions/{id}/files",
		Param{"path", "absolute, or relative to /home/work; any bytes, percent-encoded"},
		Param{"kernel", "main1 if empty"})
}

// FolderFiles are the routes to the files of a folder.
func FolderFiles() Files {
	return filesBelow("folder-", "/folders/{folder}/files",
		Param{"path", "relative to the folder's root; any bytes, percent-encoded"},
		Param{"agent", "the folder's agent; empty: any"})
}

// filesBelow returns the routes below a path, whose names begin with prefix.
func filesBelow(prefix, path string, place ...Param) Files {
	query := func(more ...Param) []Param { return append(place[:len(place):len(place)], more...) }
	key := Param{"key", "key of the upload"}
	return Files{
		List: at[None, api.FileListing](prefix+"files", "GET "+path,
			"List a directory, in a session as its user sees it.",
			query(Param{"after", "last name of the previous part"},
				Param{"limit", "at most this many, up to 10000"})...),
		Remove: at[None, None](prefix+"file-remove", "DELETE "+path, "Remove a file or an empty directory.",
			query(Param{"recursive", "1: with its contents"})...),
		Stat: at[None, api.FileInfo](prefix+"file-stat", "GET "+path+"/stat", "Describe a file.", place...),
		Checksum: at[None, api.Checksum](prefix+"file-checksum", "GET "+path+"/checksum",
			"Read the checksum of a file.", place...),
		Read: at[None, None](prefix+"file-read", "GET "+path+"/content",
			"Read a file. Range and If-Range with its ETag resume. Waits for a lost connection to the agent.",
			place...).streams(Bytes),
		Zip: at[None, None](prefix+"file-zip", "GET "+path+"/zip",
			"Read files and directories as one archive, created while it is sent. Links are left out.",
			query(Param{"name",
				"name of the archive without its extension; path may be repeated"})...).streams(Bytes),
		Move: at[None, None](prefix+"file-move", "POST "+path+"/move",
			"Rename a file or directory. Nothing is replaced.", query(Param{"to", "the new path"})...),
		MakeDirectory: at[None, None](prefix+"directory-make", "POST "+path+"/directory", "Make a directory.",
			query(Param{"parents", "1: create its parents, too; it may exist already"})...),
		Upload: at[None, api.UploadState](prefix+"upload", "GET "+path+"/upload",
			"Show the progress of an upload. The client chooses its key, 1 to 64 letters and digits.", query(key)...),
		UploadWrite: at[None, api.UploadState](prefix+"upload-write", "PUT "+path+"/upload",
			"Append the body to an upload, which stays hidden until it is finished. Waits for a lost connection to "+
				"the agent.",
			query(key, Param{"offset", "of the first byte, at most the number of bytes received"})...),
		UploadFinish: at[api.FinishRequest, api.FileInfo](prefix+"upload-finish", "POST "+path+"/upload",
			"Finish an upload: the file appears as a whole.", query(key)...),
		UploadDrop: at[None, None](prefix+"upload-drop", "DELETE "+path+"/upload", "Discard an upload.",
			query(key)...),
	}
}

func (f Files) all() []described {
	return []described{f.List, f.Remove, f.Stat, f.Checksum, f.Read, f.Move, f.MakeDirectory, f.Upload, f.UploadWrite,
		f.UploadFinish, f.UploadDrop, f.Zip}
}

// Routes of data folders.
var (
	FileCopy = at[api.FileCopying, api.Operation]("file-copy", "POST /files/copy",
		"Copy a file or a directory from one folder or running session to another, "+
			"also between machines, as an operation. Sent again, it continues.")
	FileSync = at[api.FileSyncing, api.Operation]("file-sync", "POST /files/sync",
		"Sync two folders both ways, also between machines, as an operation, which asks before it deletes and what to "+
			"keep of files that changed on both sides. Sent again, it continues.")
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
	FolderSFTP = at[None, api.Session]("folder-sftp", "POST /folders/{folder}/sftp",
		"Launch the system session that serves a folder by sftp, or return the one that does.", agentQuery...)
	Project = at[session.ProjectRequest, session.Project]("project", "POST /folders/{folder}/project",
		"Read what image the project in a folder asks for. Nothing is built.", agentQuery...)
	ProjectBuild = at[hub.ProjectBuilding, api.Operation]("project-build", "POST /folders/{folder}/project/build",
		"Build the image of the project in a folder, as an operation, which continues in the background. The build "+
			"reads the stored secrets that the request and the project name.",
		agentQuery...)
	ProjectBuildChoices = at[session.ProjectRequest, []hub.BuildChoice]("project-build-choices",
		"POST /folders/{folder}/project/build/choices", "Show where the image of the project in a folder can be built "+
			"for another machine, and what that costs. For this computer's agent there is no choice.", agentQuery...)
	ProjectOpen = at[hub.ProjectOpening, hub.RecentProject]("project-open", "POST /folders/{folder}/project/open",
		"Remember a project that is opened to be used, and the image that a session is launched with.", agentQuery...)
	Projects = at[None, []hub.RecentProject]("projects", "GET /projects",
		"List the remembered projects, the one that was opened last first.")
	ProjectUpdate = at[hub.ProjectPin, hub.RecentProject]("project-update", "PATCH /projects/{id}",
		"Pin or unpin a remembered project.")
	ProjectForget = at[None, None]("project-forget", "DELETE /projects/{id}", "Forget a project. Its folder stays.")
	ProjectClone  = at[hub.ProjectCloning, api.Operation]("project-clone", "POST /projects/clone",
		"Clone a git repository and make it a folder, as an operation, which may ask for a login.")
	FolderDelete = at[None, api.Operation]("folder-delete", "DELETE /folders/{folder}",
		"Permanently delete a folder in the trash, as an operation. A linked directory is kept.", agentQuery...)
	FolderDeleteStop = at[None, api.Folder]("folder-delete-stop", "POST /folders/{folder}/stop",
		"Stop deleting a folder. The rest of it stays in the trash.", agentQuery...)
)
