package api

import "slipway/backend/session"

// SSHSetup says how ssh on this computer reaches sessions.
type SSHSetup struct {
	Installed  bool      `json:"installed"`  // the user's configuration includes ours: ssh NAME works
	PersonFile string    `json:"personFile"` // the user's configuration
	ConfigFile string    `json:"configFile"` // ours, for ssh -F if it is not included
	KeyFile    string    `json:"keyFile"`    // private key for logging in to sessions
	PublicKey  string    `json:"publicKey"`
	Hosts      []SSHHost `json:"hosts"` // in the order in which the sessions were created
}

// SSHHost is a session as ssh knows it.
type SSHHost struct {
	Session string   `json:"session"`
	Names   []string `json:"names"` // shortest first
}

// SSHUpdate includes the configuration of sessions in the user's own, or removes it.
type SSHUpdate struct {
	Installed bool `json:"installed"`
}

// SSHAccess says how to reach one session by ssh.
type SSHAccess struct {
	Names       []string     `json:"names"` // shortest first
	User        string       `json:"user"`
	Fingerprint string       `json:"fingerprint"` // of the session's key
	Installed   bool         `json:"installed"`
	Commands    []SSHCommand `json:"commands"`
	// opens the session in Visual Studio Code; empty: ssh is not installed
	Editor string `json:"editor,omitempty"`
}

// SSHCommand is a command line to copy.
type SSHCommand struct {
	Name string `json:"name"` // ssh, scp, sftp, rsync or forward
	Line string `json:"line"`
}

// SSHTest is the result of a test login to a session.
type SSHTest struct {
	OK        bool  `json:"ok"`
	ElapsedMs int64 `json:"elapsedMs"` // of Slipway's own login
	// this computer's ssh was tested too, by the name in the user's configuration
	Own     bool           `json:"own"`
	Problem *session.Error `json:"problem,omitempty"` // why not
}
