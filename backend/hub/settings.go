package hub

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"slipway/backend/pace"
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

// defaultSettings are in force until a person chooses others.
func defaultSettings() Settings {
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
func (ps *person) Settings() Settings {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.settings
}

// SaveSettings writes what differs from the settings in force;
// settings_update_invalid with Fields.
func (ps *person) SaveSettings(s Settings) error {
	changes, inForce := s.values(), ps.Settings().values()
	maps.DeleteFunc(changes, func(name string, value any) bool { return inForce[name] == value })
	_, err := ps.SaveSetting(changes)
	return err
}

// SaveSetting changes settings by their names in the file, also those of the
// agent; nil: the default again. It fails as settings.File.Save does, and where
// what starts Slipway at login cannot be changed; then nothing is.
func (ps *person) SaveSetting(changes map[string]any) (settings.State, error) {
	ps.saving.Lock()
	defer ps.saving.Unlock()
	before, err := ps.file.Read()
	if err != nil {
		return before, err
	}
	state, err := ps.file.Save(changes)
	if err != nil {
		return state, err
	}
	if err := ps.startAtLogin(settingsOf(state.Values).Autostart); err != nil {
		restored := maps.Clone(changes)
		for name := range restored {
			restored[name] = before.File[name]
		}
		_, undone := ps.file.Save(restored)
		return before, errors.Join(err, undone)
	}
	ps.adopt(state)
	return state, nil
}

// startAtLogin changes what starts Slipway at login, if it is not so already.
func (ps *person) startAtLogin(on bool) error {
	if ps.autostart == nil || ps.Settings().Autostart == on {
		return nil
	}
	return ps.autostart.Set(on)
}

// SettingsState reads what the file says of every setting, and where that is.
func (ps *person) SettingsState() (string, settings.State, error) {
	state, err := ps.file.Read()
	return ps.file.Path(), state, err
}

// adopt has a state in force and tells the watchers if it is another one.
func (ps *person) adopt(state settings.State) {
	s := settingsOf(state.Values)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.settings != s {
		ps.settings = s
		ps.stream.publish(Event{Settings: &s})
	}
}

// followSettings notices what others write into the file. One that is broken
// changes nothing until it is mended.
func (ps *person) followSettings(ctx context.Context) {
	for pace.Wall().Pause(ctx, settingsPause) == nil {
		ps.saving.Lock()
		if state, err := ps.file.Read(); err == nil && !state.Broken() {
			if err := ps.startAtLogin(settingsOf(state.Values).Autostart); err != nil {
				ps.log.Warn("what starts Slipway at login is as it was", "error", err)
			}
			ps.adopt(state)
		}
		ps.saving.Unlock()
	}
}

// loadSettings reads the file. What an earlier version kept on the shelf is
// written into it.
func (ps *person) loadSettings() {
	var kept map[string]any
	if found, err := ps.shelf.Load(settingsKey, &kept); err == nil && found && !ps.file.Exists() {
		for name, value := range kept {
			if _, err := ps.file.Save(map[string]any{name: value}); err != nil {
				ps.log.Warn("a setting of an earlier version is left out", "setting", name, "error", err)
			}
		}
	}
	state, err := ps.file.Read()
	if err != nil {
		ps.log.Error("the settings cannot be read; the defaults are used", "error", err)
		return
	}
	for _, problem := range state.Problems {
		ps.log.Warn("a setting cannot be used", "line", problem.Line, "setting", problem.Name, "problem",
			problem.Message)
	}
	ps.settings = settingsOf(state.Values)
	if ps.autostart == nil || state.Broken() {
		return
	}
	// The program may have moved, and the file may have been changed meanwhile.
	if err := ps.autostart.Set(ps.settings.Autostart); err != nil {
		ps.log.Warn("what starts Slipway at login is as it was", "error", err)
	}
}

// person is what belongs to a person rather than to a machine: what they
// launched, their presets and their settings.
type person struct {
	*shared
	file      SettingsFile
	autostart Autostarter // nil: none

	// mu guards these.
	recents  []Recent
	presets  []Preset // those of the person, in the order of their creation
	settings Settings
}
