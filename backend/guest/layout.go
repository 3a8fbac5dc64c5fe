package guest

import (
	"encoding/json"
	"fmt"

	"slipway/backend/engine"
)

// Where the engine puts things into a container.
const (
	configPath = "/.slipway/config.json"
	socketName = "agent.sock"     // in /.slipway/link
	selfPath   = "/proc/self/exe" // the guest's own program, wherever it lies
)

// User is the name of the person in every container.
const User = "work"

func readSettings(data []byte) (engine.GuestConfig, error) {
	var settings engine.GuestConfig
	if err := json.Unmarshal(data, &settings); err != nil {
		return settings, fmt.Errorf("read settings: %w", err)
	}
	if settings.UID < 0 || settings.GID < 0 {
		return settings, fmt.Errorf("read settings: invalid user %d:%d", settings.UID, settings.GID)
	}
	return settings, nil
}
