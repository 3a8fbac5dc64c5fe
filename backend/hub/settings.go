package hub

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"slipway/backend/settings"
)

// Settings are a person's choices.
type Settings struct {
	Theme          string `json:"theme"`          // system, light or dark
	Density        string `json:"density"`        // comfortable or compact
	Language       string `json:"language"`       // en or ko
	CloseKeeps     string `json:"closeKeeps"`     // ask, keep or quit
	TerminalFont   int    `json:"terminalFont"`   // pixels
	TerminalFamily string `json:"terminalFamily"` // a font of the computer; "": none
	TerminalTheme  string `json:"terminalTheme"`  // follow, light, dark, contrast, solarized-light or solarized-dark
	TerminalBell   string `json:"terminalBell"`   // visual, sound or none
	// asked when it would run at once (runs), when it has several lines, never
	TerminalPaste  string `json:"terminalPaste"`
	TerminalReader bool   `json:"terminalReader"` // screen readers are told what is printed
	Notifications  bool   `json:"notifications"`  // on the desktop, or by the browser
	Zoom           int    `json:"zoom"`           // of the window on a Linux desktop, in percent
	Autostart      bool   `json:"autostart"`      // in the background, at login
}

const settingsKey = "hub.settings"

// SettingsFile keeps the settings; settings.File is one.
type SettingsFile interface {
	Path() string
	Exists() bool
	Read() (settings.State, error)
	Save(changes map[string]any) (settings.State, error)
}

// Autostarter has Slipway start at login, or not; autostart.Entry is one.
type Autostarter interface {
	Set(on bool) error
}

// settingsPause is how often the file is looked at for changes by others.
const settingsPause = 2 * time.Second

// DefaultSettings are in force until a person chooses others.
func DefaultSettings() Settings {
	defaults := map[string]any{}
	for _, field := range settings.Fields() {
		defaults[field.Name] = field.Default
	}
	return settingsOf(defaults)
}

// settingsOf takes a person's choices from all settings.
func settingsOf(values map[string]any) Settings {
	var s Settings
	if text, err := json.Marshal(values); err == nil {
		_ = json.Unmarshal(text, &s) // each value was checked by its field
	}
	return s
}

// values are the choices by their names in the file.
func (s Settings) values() map[string]any {
	values := map[string]any{}
	if text, err := json.Marshal(s); err == nil {
		_ = json.Unmarshal(text, &values)
	}
	return values
}

// Settings returns the settings in force.
func (h *Hub) Settings() Settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settings
}

// SaveSettings writes what differs from the settings in force;
// settings_update_invalid with Fields.
func (h *Hub) SaveSettings(s Settings) error {
	changes, inForce := s.values(), h.Settings().values()
	maps.DeleteFunc(changes, func(name string, value any) bool { return inForce[name] == value })
	_, err := h.SaveSetting(changes)
	return err
}

// SaveSetting changes settings by their names in the file, also those of the
// agent; nil: the default again. It fails as settings.File.Save does, and where
// what starts Slipway at login cannot be changed; then nothing is.
func (h *Hub) SaveSetting(changes map[string]any) (settings.State, error) {
	h.saving.Lock()
	defer h.saving.Unlock()
	before, err := h.file.Read()
	if err != nil {
		return before, err
	}
	state, err := h.file.Save(changes)
	if err != nil {
		return state, err
	}
	if err := h.startAtLogin(settingsOf(state.Values).Autostart); err != nil {
		restored := maps.Clone(changes)
		for name := range restored {
			restored[name] = before.File[name]
		}
		_, undone := h.file.Save(restored)
		return before, errors.Join(err, undone)
	}
	h.adopt(state)
	return state, nil
}

// startAtLogin changes what starts Slipway at login, if it is not so already.
func (h *Hub) startAtLogin(on bool) error {
	if h.autostart == nil || h.Settings().Autostart == on {
		return nil
	}
	return h.autostart.Set(on)
}

// SettingsState reads what the file says of every setting, and where that is.
func (h *Hub) SettingsState() (string, settings.State, error) {
	state, err := h.file.Read()
	return h.file.Path(), state, err
}

// adopt has a state in force and tells the watchers if it is another one.
func (h *Hub) adopt(state settings.State) {
	s := settingsOf(state.Values)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settings != s {
		h.settings = s
		h.stream.publish(Event{Settings: &s})
	}
}

// followSettings notices what others write into the file. One that is broken
// changes nothing until it is mended.
func (h *Hub) followSettings(ctx context.Context) {
	tick := time.NewTicker(settingsPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h.saving.Lock()
		if state, err := h.file.Read(); err == nil && !state.Broken() {
			if err := h.startAtLogin(settingsOf(state.Values).Autostart); err != nil {
				h.log.Warn("what starts Slipway at login is as it was", "error", err)
			}
			h.adopt(state)
		}
		h.saving.Unlock()
	}
}

// loadSettings reads the file. What an earlier version kept on the shelf is
// written into it.
func (h *Hub) loadSettings() {
	var kept map[string]any
	if found, err := h.shelf.Load(settingsKey, &kept); err == nil && found && !h.file.Exists() {
		for name, value := range kept {
			if _, err := h.file.Save(map[string]any{name: value}); err != nil {
				h.log.Warn("a setting of an earlier version is left out", "setting", name, "error", err)
			}
		}
	}
	state, err := h.file.Read()
	if err != nil {
		h.log.Error("the settings cannot be read; the defaults are used", "error", err)
		return
	}
	for _, problem := range state.Problems {
		h.log.Warn("a setting cannot be used", "line", problem.Line, "setting", problem.Name, "problem",
			problem.Message)
	}
	h.settings = settingsOf(state.Values)
	if h.autostart == nil || state.Broken() {
		return
	}
	// The program may have moved, and the file may have been changed meanwhile.
	if err := h.autostart.Set(h.settings.Autostart); err != nil {
		h.log.Warn("what starts Slipway at login is as it was", "error", err)
	}
}
