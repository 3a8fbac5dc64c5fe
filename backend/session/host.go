package session

import "context"

// Host describes the machine of an agent.
type Host interface {
	// Machine reports the machine as it is now.
	//
	//rpc:method name=machine effect=read who=custom
	Machine(ctx context.Context) (Machine, error)
	// Doctor probes what sessions need of the machine. A probe that fails is a
	// [Check] with its cause and one remedy, never an error of the call.
	//
	//rpc:method name=doctor effect=read limit=long who=anyone
	Doctor(ctx context.Context) ([]Check, error)
	// ListDirectories lists the directories in a directory, for choosing what to
	// mount. path is absolute; empty: the person's home. Fails with
	// file_use_invalid, file_use_not-found or file_use_forbidden.
	//
	//rpc:method name=directories effect=read args=path? who=custom
	ListDirectories(ctx context.Context, path string) (DirectoryListing, error)
}

// CheckResult is how a probe ended.
type CheckResult string

// The results. A warning is something that sessions run without.
const (
	CheckOK      CheckResult = "ok"
	CheckWarning CheckResult = "warning"
	CheckFailed  CheckResult = "failed"
)

// Check is one probe of a machine. Remedy is one command or sentence; a failed
// check always has one.
type Check struct {
	ID     string      `json:"id"` // what was probed, for programs: "engine", "disk" …
	Title  string      `json:"title"`
	Result CheckResult `json:"result"`
	Text   string      `json:"text"`
	Remedy string      `json:"remedy,omitempty"`
}

// DirectoryListing is what a directory of a machine holds, at most 5,000
// entries, sorted by name without regard to case.
type DirectoryListing struct {
	Path    string           `json:"path"`   // absolute and clean
	Parent  string           `json:"parent"` // empty at the root
	Entries []DirectoryEntry `json:"entries"`
}

// DirectoryEntry is one directory in a listing.
type DirectoryEntry struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable"` // by the person whose agent it is
}
