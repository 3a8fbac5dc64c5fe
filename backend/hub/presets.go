package hub

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"slipway/backend/session"
	"slipway/gpu"
)

// Preset is a named bundle of resources, either built in or the user's own.
type Preset struct {
	ID string `json:"id"`
	PresetContent
	Builtin bool `json:"builtin"`
}

// PresetContent is the part of a preset that a person sets.
type PresetContent struct {
	Name        string            `json:"name"`
	Resources   session.Resources `json:"resources"`
	Accelerator gpu.Request       `json:"accelerator,omitzero"`
}

// PresetUpdate changes a preset. A nil field is left unchanged.
type PresetUpdate struct {
	Name        *string            `json:"name,omitempty"`
	Resources   *session.Resources `json:"resources,omitempty"`
	Accelerator *gpu.Request       `json:"accelerator,omitempty"`
}

// MaxPresetName is the most characters in the name of a preset.
const MaxPresetName = 64

const (
	presetsKey  = "hub.presets"
	presetsMost = 100
)

// builtinPresets are offered to everybody.
func builtinPresets() []Preset {
	preset := func(id, name string, cpu int, memory gpu.Bytes) Preset {
		return Preset{id, PresetContent{Name: name, Resources: session.Resources{CPU: cpu, Memory: memory}}, true}
	}
	return []Preset{preset("small", "Small", 1, 2*gpu.GiB), preset("medium", "Medium", 2, 4*gpu.GiB),
		preset("large", "Large", 4, 16*gpu.GiB)}
}

// allPresets is called with mu held.
func (ps *person) allPresets() []Preset { return append(builtinPresets(), ps.presets...) }

// Presets lists the presets of the launcher: built-in ones, then the user's own.
func (ps *person) Presets() []Preset { return locked(ps.shared, ps.allPresets) }

// AddPreset saves a preset. It fails with settings_update_invalid and Fields, or with settings_update_conflict.
func (ps *person) AddPreset(content PresetContent) (Preset, error) {
	p := Preset{ID: "p-" + newID(), PresetContent: content}
	err := ps.changePresets(func(own []Preset) ([]Preset, error) {
		if len(own) >= presetsMost {
			return nil, session.NewError(session.CodeSettingsConflict,
				fmt.Sprintf("There are already %d presets.", len(own)), "Remove one first.")
		}
		own = append(own, p)
		return own, checkPreset(&own[len(own)-1], own)
	})
	p.Name = strings.TrimSpace(p.Name)
	return p, err
}

// UpdatePreset changes a preset. It fails with recipe_read_not-found, with settings_update_conflict if it is built in
// or its name is taken, or with settings_update_invalid and Fields.
func (ps *person) UpdatePreset(id string, update PresetUpdate) (Preset, error) {
	var updated Preset
	err := ps.changePresets(func(own []Preset) ([]Preset, error) {
		i, err := findPreset(own, id)
		if err != nil {
			return nil, err
		}
		p := &own[i]
		set(&p.Name, update.Name)
		set(&p.Resources, update.Resources)
		set(&p.Accelerator, update.Accelerator)
		if err := checkPreset(p, own); err != nil {
			return nil, err
		}
		updated = *p
		return own, nil
	})
	return updated, err
}

// DeletePreset deletes a preset. It fails with recipe_read_not-found or settings_update_conflict.
func (ps *person) DeletePreset(id string) error {
	return ps.changePresets(func(own []Preset) ([]Preset, error) {
		i, err := findPreset(own, id)
		if err != nil {
			return nil, err
		}
		return slices.Delete(own, i, i+1), nil
	})
}

// set sets a field to a value of an update, unless that is nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func findPreset(own []Preset, id string) (int, error) {
	isIt := func(p Preset) bool { return p.ID == id }
	if i := slices.IndexFunc(own, isIt); i >= 0 {
		return i, nil
	}
	if slices.ContainsFunc(builtinPresets(), isIt) {
		return -1, session.NewError(session.CodeSettingsConflict, "This preset is built in.",
			"Save your own instead.")
	}
	return -1, session.NewError(session.CodeRecipeNotFound, fmt.Sprintf("There is no preset %q.", id),
		"It may have been removed; look at the list again.")
}

// checkPreset trims the name of p, one of own, and checks p by the rules of a spec.
func checkPreset(p *Preset, own []Preset) error {
	var wrong []session.FieldError
	p.Name = strings.TrimSpace(p.Name)
	if !validTitle(p.Name, MaxPresetName) {
		wrong = append(wrong, session.FieldError{Field: "name", Kind: session.KindInvalid,
			Message: fmt.Sprintf("A name has 1 to %d characters, all of them printable.", MaxPresetName),
			Hint:    "Choose another name."})
	}
	spec := session.Spec{Image: "preset", Resources: p.Resources, Accelerator: p.Accelerator}
	wrong = append(wrong, spec.Validate(time.Time{}, session.Limits{})...)
	if len(wrong) > 0 {
		return session.Refused(session.CodeSettingsInvalid, wrong...)
	}
	for _, other := range append(builtinPresets(), own...) {
		if other.ID != p.ID && strings.EqualFold(other.Name, p.Name) {
			message, hint := fmt.Sprintf("A preset named %s already exists.", other.Name), "Choose another name."
			return wrongField(session.CodeSettingsConflict, "name", session.KindDuplicate, message, hint)
		}
	}
	return nil
}

// validTitle reports whether a name has 1 to most characters, all printable.
func validTitle(name string, most int) bool {
	return name != "" && utf8.RuneCountInString(name) <= most &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// changePresets saves what change returns for a copy of the presets, and publishes it.
func (ps *person) changePresets(change func([]Preset) ([]Preset, error)) error {
	ps.saving.Lock()
	defer ps.saving.Unlock()
	return changeList(ps, presetsKey, &ps.presets, change, func() Event { return Event{Presets: new(ps.allPresets())} })
}

// loadPresets drops invalid presets.
func (ps *person) loadPresets() {
	var own []Preset
	for _, p := range read[[]Preset](ps.shared, presetsKey, "the presets cannot be read; starting with none") {
		if p.ID == "" || slices.ContainsFunc(own, func(other Preset) bool { return other.ID == p.ID }) ||
			checkPreset(&p, own) != nil {
			ps.log.Warn("an invalid preset is ignored", "preset", p.Name)
			continue
		}
		own = append(own, p)
	}
	ps.presets = own
}
