package api

// LaunchRequest asks for sessions. Key makes it safe to send twice: the answer
// to the second is the sessions of the first.
type LaunchRequest struct {
	Key  string `json:"key,omitempty"`
	Spec Spec   `json:"spec"`
	// Owner is the person for whom it is launched, where one rules the agent;
	// empty: oneself.
	Owner string `json:"owner,omitempty"`
}

// LaunchManyRequest asks for several sessions of one spec, named spec.name-1,
// -2 and so on, or at random where it has no name. Key makes it safe to send
// twice, as in a LaunchRequest.
type LaunchManyRequest struct {
	Key   string `json:"key,omitempty"`
	Spec  Spec   `json:"spec"`
	Count int    `json:"count,omitempty"` // 1 to 10; 0: 1
	Owner string `json:"owner,omitempty"` // as in a LaunchRequest
}

// Launched is one of several launches: a session, or why there is none.
type Launched struct {
	Session *Session `json:"session,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// SessionUpdate changes a session; an absent field is left as it is. A name is
// given to a live session, a priority to one that is PENDING, tags to any.
type SessionUpdate struct {
	Name     *string   `json:"name,omitempty"`
	Priority *int      `json:"priority,omitempty"` // 0 to 100, higher first
	Tags     *[]string `json:"tags,omitempty"`     // in place of those that it has
}

// KeepRequest protects a session from being reclaimed as idle.
type KeepRequest struct {
	For string `json:"for"` // a whole number with s, m, h, d or w, such as 4h; at most 1w
}

// PresetRequest saves a preset of one's own.
type PresetRequest struct {
	Name        string    `json:"name"`
	Resources   Resources `json:"resources"`
	Accelerator string    `json:"accelerator,omitempty"`
}

// PresetUpdate changes a preset of one's own; an absent field is left as it is.
type PresetUpdate struct {
	Name        *string    `json:"name,omitempty"`
	Resources   *Resources `json:"resources,omitempty"`
	Accelerator *string    `json:"accelerator,omitempty"`
}

// TerminateRequest asks for the end of a session.
type TerminateRequest struct {
	Forced bool `json:"forced,omitempty"`
}

// TerminalRequest asks for a shell in one kernel; empty: main1.
type TerminalRequest struct {
	Kernel  string   `json:"kernel,omitempty"`
	Command []string `json:"command,omitempty"`
	Title   string   `json:"title,omitempty"`
	Cols    int      `json:"cols"`
	Rows    int      `json:"rows"`
}

// ExecRequest asks for one command in one kernel of a session; empty: main1.
type ExecRequest struct {
	Kernel  string   `json:"kernel,omitempty"`
	Command []string `json:"command"`
	Env     []EnvVar `json:"env,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	Stdin   bool     `json:"stdin,omitempty"`
}

// OpenRequest asks to open an app.
type OpenRequest struct {
	Dir string `json:"dir,omitempty"` // directory that it shall show; empty: its usual one, or the one that it shows
	// Public opens the app to everybody who reaches this computer, without a login.
	Public bool `json:"public,omitempty"`
	Port   int  `json:"port,omitempty"`   // preferred port on this computer, 1024 to 65535; 0: none
	Window bool `json:"window,omitempty"` // in a window of the desktop shell, if one is connected
}

// RecentUpdate changes an entry of the launch history. A nil field is left as it is.
type RecentUpdate struct {
	Name   *string `json:"name,omitempty"`
	Pinned *bool   `json:"pinned,omitempty"`
}

// Shown says whether a desktop shell was there to show its window.
type Shown struct {
	Shown bool `json:"shown"`
}

// LoginLink is a one-time address that logs a browser in.
type LoginLink struct {
	URL string `json:"url"`
}

// PassRequest names the address that a browser is to open.
type PassRequest struct {
	URL string `json:"url"` // of this server or of an app, with its one-time code or ticket
}

// Pass leads to an address without telling it. It is valid for one minute.
type Pass struct {
	URL string `json:"url"`
}

// DirectoryListing is what a directory of the agent's machine holds, for
// choosing what to mount.
type DirectoryListing struct {
	Path    string           `json:"path"`
	Parent  string           `json:"parent"`
	Entries []DirectoryEntry `json:"entries"`
}

// DirectoryEntry is one directory.
type DirectoryEntry struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable"`
}

// Version says what is running.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Check is one probe of slipway doctor.
type Check struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Result string `json:"result"` // ok, warning or failed
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // one command or sentence
}

// WindowRequest asks for the main window, and for a page in it.
type WindowRequest struct {
	Path string `json:"path,omitempty"` // empty: it stays where it is
}
