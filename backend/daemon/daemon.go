// Package daemon is the life of an agent that runs by itself, with no window
// and no control plane around it: how it is started so that it outlives
// whoever started it ([Start]), how programs on its machine find it and talk to
// it ([Connect], [Bridge]), and how it is replaced by another version without a
// session ending ([Switch]).
//
// Whoever rules a machine's agent, be it a daemon or a control plane, listens on
// two sockets in the folder of its files, open to its owner alone: one takes
// carriers of tunnels, the other is a small HTTP API for the person at the
// machine ([Serve], [Client]).
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/access"
	"slipway/backend/place"
	"slipway/backend/session"
)

// Roles of a process that rules an agent.
const (
	RoleAgent = "agent" // a daemon: it may be stopped and replaced from afar
	RolePlane = "plane" // a control plane of a person at that machine
)

// Status says what rules the agent of a folder.
type Status struct {
	Role    string    `json:"role"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Commit  string    `json:"commit"`
	Engine  string    `json:"engine"` // docker or sim
	Program string    `json:"program"`
	SHA256  string    `json:"sha256"` // of the program, in hex
	Live    int       `json:"live"`   // sessions that have not ended
	Started time.Time `json:"started"`
	Home    string    `json:"home"`
	Listen  string    `json:"listen,omitempty"` // host:port for paired devices; empty: none
	Key     string    `json:"key,omitempty"`    // fingerprint of the agent's key, where it listens
	Keeper  string    `json:"keeper,omitempty"` // what keeps a daemon running: systemd or nothing
	// Instance is the random id of the agent's books, as in [session.Machine].
	Instance string `json:"instance,omitempty"`
}

// Code is a pairing code, good once and for a short while.
type Code struct {
	Code    string    `json:"code"`
	Address string    `json:"address"` // where the agent listens
	Key     string    `json:"key"`     // fingerprint of the agent's key
	Expires time.Time `json:"expires"`
}

// CodeRequest says for whom a code is.
type CodeRequest struct {
	Owner string `json:"owner,omitempty"` // whose sessions the device will have; empty: those of the agent's person
	Role  string `json:"role,omitempty"`  // admin or user; empty: admin for the agent's person, user for others
}

// Device is a paired device.
type Device struct {
	Key   string    `json:"key"` // fingerprint
	Name  string    `json:"name"`
	Owner string    `json:"owner,omitempty"`
	Role  string    `json:"role,omitempty"`
	Added time.Time `json:"added"`
	Seen  time.Time `json:"seen,omitzero"`
	Live  int       `json:"live"` // its connections now
}

// Rotated is an agent's change of its key.
type Rotated struct {
	Before  string `json:"before"`  // fingerprint of the old key, which proves the new one
	Key     string `json:"key"`     // fingerprint of the new key
	Devices int    `json:"devices"` // how many were connected, and learn of it at once
}

// Daemon is what answers the person at the machine.
type Daemon interface {
	Status(ctx context.Context) (Status, error)
	// Stop asks for the end; sessions go on.
	Stop(ctx context.Context) error
	// EndSessions asks every session that lives to end, and does not wait.
	EndSessions(ctx context.Context) error
	Pair(ctx context.Context, request CodeRequest) (Code, error)
	Devices(ctx context.Context) ([]Device, error)
	// Revoke takes a device's access, by fingerprint or name.
	Revoke(ctx context.Context, device string) error
	// Audit returns the newest entries of the log of what was done that are asked for.
	Audit(ctx context.Context, asked session.AuditQuery) ([]access.Entry, error)
	// Limits returns what each person may hold at most, by owner.
	Limits(ctx context.Context) (map[string]session.Allowance, error)
	// SetLimit sets what one may hold; nil: nothing of their own.
	SetLimit(ctx context.Context, owner string, limit *session.Allowance) error
	// Rotate gives the agent another key, which the old one has signed.
	Rotate(ctx context.Context) (Rotated, error)
}

// Names of the files in the folder.
const (
	tunnelSocket  = "agent.sock"
	controlSocket = "control.sock"
	settingsFile  = "agent.json"
	logName       = "agent.log"
	switchLock    = "switch.lock"
)

// LogFile is where the daemon of a folder writes.
func LogFile(home place.Home) string { return home.Join(logName) }

// Settings are how a daemon runs. They are kept, since whoever starts it the
// next time may not know them.
type Settings struct {
	Engine string            `json:"engine,omitempty"` // docker, sim or auto; empty: docker
	Listen string            `json:"listen,omitempty"` // host:port for paired devices; empty: none
	Env    map[string]string `json:"env,omitempty"`    // for the daemon alone, such as DOCKER_HOST
}

// ListenOff as the address to listen on ends listening.
const ListenOff = "off"

// LoadSettings reads the settings of a folder; the zero Settings where there are none.
func LoadSettings(home place.Home) (Settings, error) {
	var s Settings
	data, err := os.ReadFile(home.Join(settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return Settings{}, &session.Error{Code: "agent_start_invalid", Message: "The file " + home.Join(settingsFile) +
			" cannot be read.", Hint: "Mend or remove it.", Err: err}
	}
	return s, nil
}

// Save writes the settings for their owner alone.
func (s Settings) Save(home place.Home) error {
	if err := home.Make(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return atomicwriter.WriteFile(home.Join(settingsFile), append(data, '\n'), 0o600)
}

// Merge returns s with what other sets.
func (s Settings) Merge(other Settings) Settings {
	if other.Engine != "" {
		s.Engine = other.Engine
	}
	switch other.Listen {
	case "":
	case ListenOff:
		s.Listen = ""
	default:
		s.Listen = other.Listen
	}
	if len(other.Env) > 0 {
		env := map[string]string{}
		for _, from := range []map[string]string{s.Env, other.Env} {
			for name, value := range from {
				env[name] = value
			}
		}
		s.Env = env
	}
	return s
}
