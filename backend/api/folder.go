package api

import "slipway/backend/session"

// Folder is a data folder, which outlives sessions. These fields are a contract for scripts: id, name, agent, owner,
// permission and state keep their names and meanings.
type Folder struct {
	session.Folder
	// mounted into every session of its owner, because its name begins with a dot
	Auto bool `json:"auto"`
}

// FolderRequest creates a folder on an agent's machine.
type FolderRequest struct {
	session.FolderRequest
	Agent string `json:"agent,omitempty"` // empty: this computer's
}
