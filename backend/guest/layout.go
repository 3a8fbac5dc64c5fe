package guest

import (
	"encoding/json"
	"fmt"

	"slipway/backend/session"
)

// Where the engine puts things into a container.
const (
	configPath = "/.slipway/config.json"
	socketName = "agent.sock"     // in /.slipway/link
	selfPath   = "/proc/self/exe" // the guest's own program, wherever it lies
)

// User is the name of the person in every container.
const User = "work"

// Settings is what the engine tells the guest: the engine's GuestConfig.
type Settings struct {
	Session session.ID       `json:"session"`
	Kernel  string           `json:"kernel"`
	UID     int              `json:"uid"`
	GID     int              `json:"gid"`
	Groups  []int            `json:"groups,omitempty"`
	Env     []session.EnvVar `json:"env"`
	Command string           `json:"command"`
	Ports   []int            `json:"ports"`
	Cluster *Cluster         `json:"cluster,omitempty"`
	Pins    []Pin            `json:"pins,omitempty"`
}

// Pin says what a mount must show: the engine's Pin.
type Pin struct {
	Target string `json:"target"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// Cluster says how the kernels of one session reach each other: the engine's
// Cluster.
type Cluster struct {
	Self    string   `json:"self"`
	Hosts   []string `json:"hosts"`
	Port    int      `json:"port"`
	HostKey string   `json:"hostKey"`
	UserKey string   `json:"userKey"`
}

func readSettings(data []byte) (Settings, error) {
	var settings Settings
	if err := json.Unmarshal(data, &settings); err != nil {
		return settings, fmt.Errorf("read settings: %w", err)
	}
	if settings.UID < 0 || settings.GID < 0 {
		return settings, fmt.Errorf("read settings: invalid user %d:%d", settings.UID, settings.GID)
	}
	return settings, nil
}
