package hub

import (
	"fmt"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Settings are a person's choices.
type Settings struct {
	Theme        string `json:"theme"`        // system, light or dark
	Density      string `json:"density"`      // comfortable or compact
	Language     string `json:"language"`     // en or ko
	CloseKeeps   string `json:"closeKeeps"`   // ask, keep or quit
	TerminalFont int    `json:"terminalFont"` // pixels
}

const settingsKey = "hub.settings"

// Sizes that the terminal's font may have, in pixels.
const (
	smallestFont = 8
	largestFont  = 32
)

// DefaultSettings are in force until a person chooses others.
func DefaultSettings() Settings {
	return Settings{Theme: "system", Density: "comfortable", Language: "en", CloseKeeps: "ask", TerminalFont: 14}
}

// choice is one setting that has a few possible values.
type choice struct {
	field  string
	value  *string
	values []string
}

func (s *Settings) choices() []choice {
	return []choice{
		{"theme", &s.Theme, []string{"system", "light", "dark"}},
		{"density", &s.Density, []string{"comfortable", "compact"}},
		{"language", &s.Language, []string{"en", "ko"}},
		{"closeKeeps", &s.CloseKeeps, []string{"ask", "keep", "quit"}},
	}
}

// Check returns what is wrong with each field.
func (s Settings) Check() []session.FieldError {
	var wrong []session.FieldError
	for _, c := range s.choices() {
		if !slices.Contains(c.values, *c.value) {
			wrong = append(wrong, session.FieldError{Field: c.field, Code: "settings_update_invalid",
				Message: fmt.Sprintf("%q is not a choice for %s.", *c.value, c.field), Hint: "Choose one of " + strings.Join(c.values, ", ") + "."})
		}
	}
	if s.TerminalFont < smallestFont || s.TerminalFont > largestFont {
		wrong = append(wrong, session.FieldError{Field: "terminalFont", Code: "settings_update_invalid",
			Message: fmt.Sprintf("The terminal's font has %d to %d pixels.", smallestFont, largestFont), Hint: "14 is the default."})
	}
	return wrong
}

// repaired returns s with the default in place of each value that is no choice.
func (s Settings) repaired() Settings {
	defaults := DefaultSettings()
	usual := defaults.choices()
	for i, c := range s.choices() {
		if !slices.Contains(c.values, *c.value) {
			*c.value = *usual[i].value
		}
	}
	if s.TerminalFont < smallestFont || s.TerminalFont > largestFont {
		s.TerminalFont = defaults.TerminalFont
	}
	return s
}

// Settings returns the settings in force.
func (h *Hub) Settings() Settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settings
}

// SaveSettings replaces the settings; settings_update_invalid with Fields.
func (h *Hub) SaveSettings(s Settings) error {
	if wrong := s.Check(); len(wrong) > 0 {
		return &session.Error{Code: "settings_update_invalid", Message: wrong[0].Message, Hint: wrong[0].Hint, Fields: wrong}
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	if err := h.shelf.Save(settingsKey, s); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settings = s
	h.stream.publish(Event{Settings: &s})
	return nil
}
