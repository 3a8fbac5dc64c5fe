package api

import "slipway/backend/session"

// SSHSetup says how ssh on this computer reaches sessions.
type SSHSetup struct {
	Installed  bool      `json:"installed"`  // the person's own configuration includes ours: ssh NAME works
	PersonFile string    `json:"personFile"` // their configuration
	ConfigFile string    `json:"configFile"` // ours, which ssh -F takes where it is not included
	KeyFile    string    `json:"keyFile"`    // the private key by which sessions are logged in to
	PublicKey  string    `json:"publicKey"`
	Hosts      []SSHHost `json:"hosts"` // in the order of the sessions' creation
}

// SSHHost is a session as ssh knows it.
type SSHHost struct {
	Session string   `json:"session"`
	Names   []string `json:"names"` // the shortest first
}

// SSHUpdate installs ssh's access to sessions or takes it out.
type SSHUpdate struct {
	Installed bool `json:"installed"`
}

// SSHAccess is how one session is reached by ssh.
type SSHAccess struct {
	Names       []string     `json:"names"` // the shortest first
	User        string       `json:"user"`
	Fingerprint string       `json:"fingerprint"` // of the key by which the session proves who it is
	Installed   bool         `json:"installed"`
	Commands    []SSHCommand `json:"commands"`
	// address that opens the session in Visual Studio Code; empty: ssh is not installed
	Editor string `json:"editor,omitempty"`
}

// SSHCommand is a command line to copy.
type SSHCommand struct {
	Name string `json:"name"` // ssh, scp, sftp, rsync or forward
	Line string `json:"line"`
}

// SSHTest is how an attempt to log in to a session went.
type SSHTest struct {
	OK        bool  `json:"ok"`
	ElapsedMs int64 `json:"elapsedMs"` // of the login by this installation itself
	// this computer's ssh was tried too, by the name in the person's configuration
	Own     bool           `json:"own"`
	Problem *session.Error `json:"problem,omitempty"` // why not
}
