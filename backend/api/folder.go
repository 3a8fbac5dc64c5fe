package api

import "time"

// Folder is a data folder, which outlives sessions. The first fields are a
// contract for scripts: id, name, agent, owner, permission and state keep their
// names and meanings.
type Folder struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Agent      string `json:"agent"` // on whose machine it is
	Owner      string `json:"owner"`
	Permission string `json:"permission"` // rw or ro
	Mode       string `json:"mode"`       // general or model
	// mounted into every session of its owner, because its name begins with a dot
	Auto      bool         `json:"auto"`
	State     string       `json:"state"` // ready, trashed or deleting
	Path      string       `json:"path,omitempty"`
	Missing   bool         `json:"missing,omitempty"` // its directory is not there
	Problem   string       `json:"problem,omitempty"` // why it is not deleted yet
	CreatedAt time.Time    `json:"createdAt"`
	TrashedAt *time.Time   `json:"trashedAt,omitempty"`
	Usage     *FolderUsage `json:"usage,omitempty"`    // absent: not counted yet
	Counting  bool         `json:"counting,omitempty"` // what it uses is being counted
	UsedBy    []FolderUser `json:"usedBy"`             // live sessions that have it mounted
	// Removed is what is deleted of it for ever; absent: nothing. In the trash it
	// says that deleting was cancelled, and that only the rest can be restored.
	Removed *FolderRemoval `json:"removed,omitempty"`
}

// FolderRemoval is how much of a folder is deleted, of what it held when it was
// counted last.
type FolderRemoval struct {
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	OfFiles int   `json:"ofFiles"` // 0: unknown
	OfBytes int64 `json:"ofBytes"` // 0: unknown
}

// FolderUsage is what a folder holds.
type FolderUsage struct {
	Bytes   int64     `json:"bytes"`
	Files   int       `json:"files"`
	At      time.Time `json:"at"`
	Partial bool      `json:"partial,omitempty"` // a part could not be read
}

// FolderUser is a live session that has a folder mounted.
type FolderUser struct {
	Session string `json:"session"`
	Name    string `json:"name"`
}

// FolderRequest asks for a folder on an agent's machine.
type FolderRequest struct {
	Name       string `json:"name"`                 // at most 64 letters, digits, -, _ and dots
	Agent      string `json:"agent,omitempty"`      // empty: this computer's
	Owner      string `json:"owner,omitempty"`      // empty: you; only who rules the agent may name another
	Permission string `json:"permission,omitempty"` // rw (default) or ro
	Mode       string `json:"mode,omitempty"`       // general (default) or model
	Path       string `json:"path,omitempty"`       // directory of the machine to link; empty: a fresh folder
}

// FolderUpdate changes a folder; an absent field is left as it is.
type FolderUpdate struct {
	Name       *string `json:"name,omitempty"`
	Permission *string `json:"permission,omitempty"`
	Mode       *string `json:"mode,omitempty"`
}

// FolderMount is a folder as it is mounted into a session.
type FolderMount struct {
	Folder   string `json:"folder"`         // id
	Name     string `json:"name"`           // when the session was launched
	Path     string `json:"path,omitempty"` // inside the folder
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	Auto     bool   `json:"auto,omitempty"` // by its name, unasked
}
