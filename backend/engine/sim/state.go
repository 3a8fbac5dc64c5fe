package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// record is what is stored of a container.
type record struct {
	Spec     engine.Container `json:"spec"`
	State    engine.State     `json:"state"`
	OOMKills int              `json:"oomKills,omitempty"`
}

type savedState struct {
	Version    int                       `json:"version"`
	Containers []record                  `json:"containers"`
	Images     []session.Image           `json:"images"`             // null: those that the catalogue installs
	Received   []session.ImageParts      `json:"received,omitempty"` // what images are made of that were brought
	Networks   map[string]engine.Network `json:"networks,omitempty"`
}

const stateVersion = 1

func (s *Sim) statePath() string { return filepath.Join(s.config.Dir, "engine.json") }

func (m *machine) containerDir(id string) string {
	return filepath.Join(m.config.Dir, "containers", id)
}

func (s *Sim) load() error {
	data, err := os.ReadFile(s.statePath())
	saved := savedState{Version: stateVersion}
	if err == nil {
		err = json.Unmarshal(data, &saved)
	}
	if err == nil && saved.Version != stateVersion {
		err = fmt.Errorf("version %d of the file is not known", saved.Version)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return session.WrapError(err, session.CodeServerInvalid,
			fmt.Sprintf("The simulated engine's file %s cannot be read.", s.statePath()), "Move it away to begin anew.")
	}
	for _, r := range saved.Containers {
		log, err := openLog(filepath.Join(s.containerDir(r.State.ID), "log"), s.config.Clock)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		s.byID[r.State.ID] = &container{record: r, log: log}
	}
	maps.Copy(s.networks.here, saved.Networks)
	s.images.here, s.parts = saved.Images, saved.Received
	for _, image := range s.config.Catalogue {
		if saved.Images == nil && image.Installed {
			s.keep(image.describe())
		}
	}
	return nil
}

// write stores the state. A crash leaves the old file or the new one.
func (s *Sim) write() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	saved := savedState{Version: stateVersion, Images: s.images.here, Received: s.parts, Networks: s.networks.here}
	for _, id := range slices.Sorted(maps.Keys(s.byID)) {
		saved.Containers = append(saved.Containers, s.byID[id].record)
	}
	data, err := json.Marshal(saved)
	s.mu.Unlock()
	if err == nil {
		err = engine.ReplaceFile(s.statePath(), data)
	}
	if err != nil {
		return session.WrapError(err, session.CodeDiskFull, "The simulated engine cannot write its state.",
			"Make room on the disk.")
	}
	return nil
}
