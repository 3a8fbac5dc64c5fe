package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/gpu"
)

// Folders keeps data folders on a machine. They outlive sessions, belong to one person, and are mounted by name.
type Folders interface {
	// ListFolders returns folders in any state, sorted by name.
	//
	//rpc:method name=folders effect=read who=custom
	ListFolders(ctx context.Context, filter FolderFilter) ([]Folder, error)
	// GetFolder returns one folder; folder_read_not-found.
	//
	//rpc:method name=folder.get effect=read who=owner
	GetFolder(ctx context.Context, id FolderID) (Folder, error)
	// CreateFolder makes a folder, or links a directory of the machine. It fails with file_use_invalid and Fields,
	// folder_create_already-exists, and agent_call_forbidden for a directory that may not be linked.
	//
	//rpc:method name=folder.create effect=once who=custom
	CreateFolder(ctx context.Context, req FolderRequest) (Folder, error)
	// UpdateFolder changes a folder. file_use_invalid, folder_create_already-exists, folder_update_conflict in the
	// trash.
	//
	//rpc:method name=folder.update effect=again who=owner audit=id
	UpdateFolder(ctx context.Context, id FolderID, change FolderChange) (Folder, error)
}

// FolderTrash deletes folders in two steps: into the trash, and permanently. Failures are those of [Folders].
type FolderTrash interface {
	// TrashFolder puts a folder into the trash, where it cannot be mounted; folder_update_conflict while it is in use.
	//
	//rpc:method name=folder.trash effect=again who=owner audit=id
	TrashFolder(ctx context.Context, id FolderID) (Folder, error)
	// RestoreFolder takes a folder out of the trash. folder_create_already-exists if another has its name by now.
	//
	//rpc:method name=folder.restore effect=again who=owner audit=id
	RestoreFolder(ctx context.Context, id FolderID) (Folder, error)
	// DeleteFolder permanently deletes a folder in the trash, in the background. Of a linked directory only the link is
	// removed. folder_update_conflict outside of the trash.
	//
	//rpc:method name=folder.delete effect=once who=owner audit=id
	DeleteFolder(ctx context.Context, id FolderID) error
	// StopDeleting stops deleting a folder and puts the rest back into the trash. A folder that is not being deleted
	// stays as it is. folder_read_not-found if nothing is left.
	//
	//rpc:method name=folder.stop effect=again who=owner audit=id
	StopDeleting(ctx context.Context, id FolderID) (Folder, error)
}

// FolderID identifies a folder on all machines. It has the form of an [ID].
type FolderID string

// Folder is a data folder.
type Folder struct {
	ID         FolderID         `json:"id"`
	Name       string           `json:"name"`
	Owner      string           `json:"owner"`
	Agent      string           `json:"agent"` // name of the agent on whose machine it is
	Permission FolderPermission `json:"permission"`
	Mode       FolderMode       `json:"mode"`
	State      FolderState      `json:"state"`
	FolderOrigin
	Problem   string         `json:"problem,omitempty"` // why it is not deleted yet, in a sentence
	CreatedAt time.Time      `json:"createdAt"`
	TrashedAt *time.Time     `json:"trashedAt,omitempty"`
	Usage     *FolderUsage   `json:"usage,omitempty"`    // nil: not counted yet
	Counting  bool           `json:"counting,omitempty"` // what it uses is being counted again
	UsedBy    []FolderUser   `json:"usedBy"`             // live sessions that have it mounted
	Removed   *FolderRemoval `json:"removed,omitempty"`  // what is deleted of it permanently; nil: nothing
}

// FolderOrigin is where the content of a folder comes from: the agent's own data, or a directory that it links.
type FolderOrigin struct {
	Path    string `json:"path,omitempty"`    // empty: it lies in the agent's own data
	Inode   uint64 `json:"inode,omitempty"`   // 0: it was linked before this was kept
	Missing bool   `json:"missing,omitempty"` // it is not there
	// it is the home of a session, kept for a time; nil: it is not, or is kept for good
	Home *FolderHome `json:"home,omitempty"`
}

// FolderHome is what is special about a folder that is the kept home of a session ([Spec.KeepHome]).
type FolderHome struct {
	Session ID         `json:"session"`
	Name    string     `json:"name"`            // of the session, when the folder was made
	Keep    Duration   `json:"keep"`            // time without use after which it is deleted
	Until   *time.Time `json:"until,omitempty"` // when it is deleted; nil: a session uses it
}

// Auto reports whether the folder is mounted into every session of its owner.
func (f Folder) Auto() bool { return strings.HasPrefix(f.Name, ".") }

// Linked reports whether the folder is a directory of the machine that is not Slipway's own.
func (f Folder) Linked() bool { return f.Path != "" }

// FolderPermission is what may be done in a folder.
type FolderPermission string

// The permissions. Sessions see a folder that is only to be read so too.
const (
	FolderReadWrite FolderPermission = "rw"
	FolderReadOnly  FolderPermission = "ro"
)

// FolderMode is what a folder is for.
type FolderMode string

// The modes.
const (
	FolderGeneral FolderMode = "general"
	FolderModel   FolderMode = "model" // what inference sessions serve
)

// FolderState is the state of a folder.
type FolderState string

// The states.
const (
	FolderReady    FolderState = "ready"
	FolderTrashed  FolderState = "trashed"
	FolderDeleting FolderState = "deleting"
)

// FolderUsage is what a folder holds. Links, and files with two names, count once and in full.
type FolderUsage struct {
	Bytes   gpu.Bytes `json:"bytes"`
	Files   int       `json:"files"`             // directories are none
	At      time.Time `json:"at"`                // when it was counted
	Partial bool      `json:"partial,omitempty"` // a part could not be read and is not counted
}

// FolderRemoval is how much of a folder is deleted, of what it held at the last count.
type FolderRemoval struct {
	Files   int       `json:"files"` // directories are none
	Bytes   gpu.Bytes `json:"bytes"`
	OfFiles int       `json:"ofFiles"` // 0: unknown
	OfBytes gpu.Bytes `json:"ofBytes"`
}

// FolderUser is a live session that has a folder mounted.
type FolderUser struct {
	Session ID     `json:"session"`
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
	Home    bool   `json:"home,omitempty"` // it is the home of the session
}

// FolderFilter selects folders. The zero filter selects all of them.
type FolderFilter struct {
	Owner string `json:"owner,omitempty"` // empty: of all
}

// FolderRequest asks for a folder. Zero fields have defaults.
type FolderRequest struct {
	Owner      string           `json:"owner,omitempty"` // empty: the agent's own person
	Name       string           `json:"name"`
	Permission FolderPermission `json:"permission,omitempty"` // empty: rw
	Mode       FolderMode       `json:"mode,omitempty"`       // empty: general
	Path       string           `json:"path,omitempty"`       // absolute, of a directory to link; empty: a fresh folder
}

// FolderChange changes a folder; a nil field stays as it is.
type FolderChange struct {
	Name       *string           `json:"name,omitempty"`
	Permission *FolderPermission `json:"permission,omitempty"`
	Mode       *FolderMode       `json:"mode,omitempty"`
	Keep       bool              `json:"keep,omitempty"` // keep the home of a session for good
}

// FolderMount is a folder as it is mounted into one session.
type FolderMount struct {
	Folder   FolderID `json:"folder"`
	Name     string   `json:"name"`           // of the folder, when the session was launched
	Path     string   `json:"path,omitempty"` // inside the folder; empty: all of it
	Target   string   `json:"target"`         // absolute
	ReadOnly bool     `json:"readOnly,omitempty"`
	Auto     bool     `json:"auto,omitempty"` // by its name, unasked
}

// MaxFolders is how many folders one agent keeps.
const MaxFolders = 10_000

// Validate returns everything that is wrong with a request.
func (r FolderRequest) Validate() []FieldError {
	chosen := FolderChange{Name: &r.Name}
	if r.Permission != "" {
		chosen.Permission = &r.Permission
	}
	if r.Mode != "" {
		chosen.Mode = &r.Mode
	}
	f := findings(chosen.Validate())
	f.refuse(r.Path != "" && (!absolute(r.Path) || !printable(r.Path)), "path", KindInvalid,
		fmt.Sprintf("%q is not an absolute path.", Clip(r.Path)),
		"Write the path of a directory from its root, for example /data/images.")
	return f
}

// Validate returns everything that is wrong with a change.
func (c FolderChange) Validate() []FieldError {
	var f findings
	if c.Name != nil {
		f.append(FolderNames.Check(*c.Name))
	}
	if p := c.Permission; p != nil && *p != FolderReadOnly && *p != FolderReadWrite {
		f.add("permission", KindInvalid, fmt.Sprintf("%q is not a permission.", Clip(string(*p))), "Choose rw or ro.")
	}
	if m := c.Mode; m != nil && *m != FolderGeneral && *m != FolderModel {
		f.add("mode", KindInvalid, fmt.Sprintf("%q is not what a folder can be for.", Clip(string(*m))),
			"Choose general or model.")
	}
	return f
}

// NoFolder is the error for a folder that does not exist or is not shown to the caller: the two cannot be told apart.
func NoFolder(ref string) *Error {
	return NewError(CodeFolderNotFound, fmt.Sprintf("There is no folder %s.", Clip(ref)),
		"List the folders to find it.")
}

// CheckSubPath returns what is wrong with a path inside a folder; nothing if it is fine, or empty for the whole folder.
func CheckSubPath(sub string) string {
	switch {
	case sub == "":
		return ""
	case strings.HasPrefix(sub, "/"):
		return fmt.Sprintf("The path %q in the folder must not begin with a slash.", Clip(sub))
	case !printable(sub) || strings.Contains(sub, `\`):
		return fmt.Sprintf("%q cannot be a path in a folder.", Clip(sub))
	case slices.ContainsFunc(strings.Split(strings.TrimSuffix(sub, "/"), "/"),
		func(part string) bool { return part == "" || part == "." || part == ".." }):
		return fmt.Sprintf("The path %q leaves the folder.", Clip(sub))
	}
	return ""
}
