package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// AgentRequest adds an agent, or only probes it. Over ssh nothing has to be installed there: Slipway installs itself.
type AgentRequest struct {
	hub.AgentRequest
	Probe bool `json:"probe,omitempty"` // only check it; change nothing there and store nothing here
}

// AgentRemoval removes an agent here. Its sessions keep running unless it is uninstalled.
type AgentRemoval struct {
	Uninstall bool `json:"uninstall,omitempty"` // end its sessions, and remove Slipway and its files from the machine
}

// AgentAnswer answers the question of an agent. Found must be that of the question, so that nobody accepts a key that
// they did not see.
type AgentAnswer struct {
	Accept bool   `json:"accept"` // pin the key that was found; otherwise stay disconnected
	Found  string `json:"found"`
}

// PairedClient is a computer that is paired with an agent.
type PairedClient struct {
	Name        string     `json:"name"`
	Fingerprint string     `json:"fingerprint"`
	Owner       string     `json:"owner"` // owner of its sessions
	Role        string     `json:"role"`  // admin or user
	This        bool       `json:"this"`  // it is the computer that asks
	AddedAt     time.Time  `json:"addedAt"`
	LastSeen    *time.Time `json:"lastSeen,omitempty"`
}

// PersonLimits are the limits of an agent by owner; "default" applies to those who have none of their own.
type PersonLimits struct {
	Limits map[string]session.Allowance `json:"limits"`
}

// PairRequest requests a code that pairs one client.
type PairRequest struct {
	Owner string `json:"owner,omitempty"` // owner of its sessions; empty: the agent's user
	Role  string `json:"role,omitempty"`  // admin or user; empty: as that agent decides
}

// PairCode is entered on the computer to pair. It is valid once, for a few attempts and a short time.
type PairCode struct {
	Code      string    `json:"code"`
	Address   string    `json:"address"` // to add there
	ExpiresAt time.Time `json:"expiresAt"`
}

// These types of the hub are the wire as they are.
//
//nolint:revive // each has its comment where it is declared
type (
	Agent           = hub.Agent
	AgentUpdate     = hub.AgentUpdate
	Connection      = hub.Connection
	DeviceBoard     = hub.Board
	DeviceState     = hub.DeviceState
	Event           = hub.Event
	FileCopying     = hub.FileCopying
	FileEnd         = hub.FileEnd
	FileSyncing     = hub.FileSyncing
	ImageSending    = hub.ImageSending
	Relocating      = hub.Relocating
	KeyRotation     = hub.Rotation
	Machine         = hub.Machine
	Operation       = hub.Operation
	OpStep          = hub.Step
	Progress        = hub.Progress
	Prompt          = hub.Prompt
	Question        = hub.Question
	RecentUpdate    = hub.RecentUpdate
	ResourceSummary = hub.Resources
	Session         = hub.Session
	ServiceReport   = hub.ServiceReport
	ServiceUsage    = hub.ServiceUsage
	Snapshot        = hub.Snapshot
	UsageReport     = hub.Report
	Version         = hub.Version
	Window          = hub.Window
)

// PromptAnswer answers the prompt of an operation. A host-key or a confirm is answered with yes or no.
type PromptAnswer struct {
	Prompt string `json:"prompt"` // its id
	Text   string `json:"text"`
}

// ImageDisk is the disk use of a machine's images. They share layers, so the sum of their sizes is more than they use
// together.
type ImageDisk struct {
	session.ImageDisk
	Agent string `json:"agent"`
}

// ImagePull pulls an image from a registry.
type ImagePull struct {
	Image string `json:"image"`           // as for docker pull
	Agent string `json:"agent,omitempty"` // whose machine; empty: this computer's
}

// ImageRemoval removes images.
type ImageRemoval struct {
	Images []string `json:"images"`          // names or ids
	Agent  string   `json:"agent,omitempty"` // whose machine; empty: this computer's
}

// Commit creates an image from a running interactive session.
type Commit struct {
	Name string `json:"name"` // 4 to 32 letters, digits, _ and -
}

// EnvironmentFile is the user's own catalogue of environments.
type EnvironmentFile struct {
	Path string `json:"path"` // on this computer; the file need not exist
	// why it cannot be used; until it is fixed, Slipway's own environments are offered
	Problem *session.Error `json:"problem,omitempty"`
}

// Folder is a data folder, which outlives sessions. These fields are a contract for scripts: id, name, agent, owner,
// permission and state keep their names and meanings.
type Folder struct {
	session.Folder
	Auto bool `json:"auto"` // mounted into every session of its owner, because its name begins with a dot
}

// FolderRequest creates a folder on an agent's machine.
type FolderRequest struct {
	session.FolderRequest
	Agent string `json:"agent,omitempty"` // empty: this computer's
}

// FileInfo describes a file of a session, or the target of a link.
type FileInfo struct {
	session.FileInfo
	Name    string `json:"name"`
	Encoded string `json:"encoded,omitempty"` // the name's bytes, percent-encoded, if they are not text
	Target  string `json:"target,omitempty"`  // where a link points
	Mode    string `json:"mode"`              // permissions in octal, such as 644
}

// FileListing is a part of a directory, sorted by name, ignoring case.
type FileListing struct {
	session.FileListing
	Path    string     `json:"path"` // absolute
	Entries []FileInfo `json:"entries"`
}

// Checksum is the checksum of a file's content.
type Checksum struct {
	SHA256 string `json:"sha256"` // hexadecimal
}

// UploadState is the progress of an upload.
type UploadState struct {
	Offset int64 `json:"offset"` // bytes received
}

// FinishRequest says what an uploaded file must be.
type FinishRequest struct {
	session.Finish
	Mode string `json:"mode,omitempty"` // permissions in octal; empty: 644
}

// Demo is the state of a demo. If this is none, Active is false and nothing else is set.
type Demo struct {
	Active    bool   `json:"active"`
	Seed      uint64 `json:"seed"`
	Story     string `json:"story"`
	Lab       string `json:"lab"`       // agent behind the tunnel; empty: none
	LidClosed bool   `json:"lidClosed"` // the tunnel is cut
	// Speed is how many times faster than real its time passes. Its clock showed Shown at the moment Real.
	Speed int       `json:"speed"`
	Real  time.Time `json:"real"`
	Shown time.Time `json:"shown"`
}

// DemoLid closes or opens the lid of the simulated laptop.
type DemoLid struct {
	Closed bool `json:"closed"`
}

// DemoStart starts a demo next to this control plane.
type DemoStart struct {
	Window bool `json:"window,omitempty"` // open it in a window, if a desktop shell is connected
}

// DemoStarted says where a demo is.
type DemoStarted struct {
	URL      string `json:"url"`      // logs a browser in, once, within one minute
	Windowed bool   `json:"windowed"` // a desktop shell opens it
}
