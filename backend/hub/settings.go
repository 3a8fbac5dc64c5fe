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

// Settings are a user's preferences.
type Settings struct {
	Theme          string `json:"theme"`          // system, light or dark
	Density        string `json:"density"`        // comfortable or compact
	Language       string `json:"language"`       // en or ko
	CloseKeeps     string `json:"closeKeeps"`     // ask, keep or quit
	TerminalFont   int    `json:"terminalFont"`   // pixels
	TerminalFamily string `json:"terminalFamily"` // an installed font; "": none
	TerminalTheme  string `json:"terminalTheme"`  // follow, light, dark, contrast, solarized-light or solarized-dark
	TerminalBell   string `json:"terminalBell"`   // visual, sound or none
	// when to confirm: if it would run at once (runs), if it has several lines (several), or never
	TerminalPaste  string `json:"terminalPaste"`
	TerminalReader bool   `json:"terminalReader"` // announce output to screen readers
	Notifications  bool   `json:"notifications"`  // by the desktop or the browser
	OpenApps       bool   `json:"openApps"`       // open Jupyter by itself after a quick start
	Zoom           int    `json:"zoom"`           // window zoom on Linux, in percent
	Autostart      bool   `json:"autostart"`      // in the background, at login
	// how long the home of a session is kept unused after its end, for example 30d; 0: it is deleted with the session
	KeepHome string `json:"keepHome"`
}

const settingsKey = "hub.settings"

// SettingsFile stores the settings; settings.File is one.
type SettingsFile interface {
	Path() string
	Exists() bool
	Read() (settings.State, error)
	Save(changes map[string]any) (settings.State, error)
}

// Autostarter sets whether Slipway starts at login; autostart.Entry is one.
type Autostarter interface {
	Set(on bool) error
}

const settingsPause = 2 * time.Second // between looks for changes of the file by others

func defaultSettings() Settings {
	defaults := map[string]any{}
	for _, field := range settings.Fields() {
		defaults[field.Name] = field.Default
	}
	return settingsOf(defaults)
}

// settingsOf selects the user's preferences from all settings.
func settingsOf(values map[string]any) Settings {
	var s Settings
	if text, err := json.Marshal(values); err == nil {
		_ = json.Unmarshal(text, &s) // each value was checked by its field
	}
	return s
}

// values returns the settings by their names in the file.
func (s Settings) values() map[string]any {
	values := map[string]any{}
	if text, err := json.Marshal(s); err == nil {
		_ = json.Unmarshal(text, &values)
	}
	return values
}

func (ps *person) Settings() Settings {
	return locked(ps.shared, func() Settings { return ps.settings })
}

// SaveSettings saves what differs from the current settings. It fails with settings_update_invalid and Fields.
func (ps *person) SaveSettings(s Settings) error {
	changes, inForce := s.values(), ps.Settings().values()
	maps.DeleteFunc(changes, func(name string, value any) bool { return inForce[name] == value })
	_, err := ps.SaveSetting(changes)
	return err
}

// SaveSetting changes settings, including those of the agent, by their names in the file; nil resets one. It fails like
// settings.File.Save, or if the start at login cannot be changed; then nothing is.
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

func (ps *person) startAtLogin(on bool) error {
	if ps.autostart == nil || ps.Settings().Autostart == on {
		return nil
	}
	return ps.autostart.Set(on)
}

// SettingsState returns the path of the file and the state of every setting.
func (ps *person) SettingsState() (string, settings.State, error) {
	state, err := ps.file.Read()
	return ps.file.Path(), state, err
}

// adopt applies a state and publishes it if it differs.
func (ps *person) adopt(state settings.State) {
	s := settingsOf(state.Values)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.settings != s {
		ps.settings = s
		ps.stream.publish(Event{Settings: &s})
	}
}

// followSettings applies changes by others to the file. A broken file changes nothing.
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

// loadSettings reads the file. It first moves settings of an earlier version from the shelf into it.
func (ps *person) loadSettings() {
	var kept map[string]any
	if found, err := ps.shelf.Load(settingsKey, &kept); err == nil && found && !ps.file.Exists() {
		for name, value := range kept {
			if _, err := ps.file.Save(map[string]any{name: value}); err != nil {
				ps.log.Warn("a setting of an earlier version is ignored", "setting", name, "error", err)
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
	// The program or the file may have changed since the last run.
	if err := ps.autostart.Set(ps.settings.Autostart); err != nil {
		ps.log.Warn("what starts Slipway at login is as it was", "error", err)
	}
}

// person is what belongs to a person rather than to a machine: recents, projects, presets and settings.
type person struct {
	*shared
	file      SettingsFile
	autostart Autostarter // nil: Slipway is not started at login
	pins      func()      // called when pinned launches, or their sessions, may have changed

	// guarded by mu
	recents  []Recent
	projects []RecentProject
	presets  []Preset // the user's own, oldest first
	settings Settings
}
