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

// Preset is a named bundle of resources. Those that are not built in belong to
// the person.
type Preset struct {
	ID string `json:"id"`
	PresetContent
	Builtin bool `json:"builtin"`
}

// PresetContent is what a person says of a preset.
type PresetContent struct {
	Name        string            `json:"name"`
	Resources   session.Resources `json:"resources"`
	Accelerator gpu.Request       `json:"accelerator,omitzero"`
}

// PresetUpdate changes a preset; a nil field is left as it is.
type PresetUpdate struct {
	Name        *string            `json:"name,omitempty"`
	Resources   *session.Resources `json:"resources,omitempty"`
	Accelerator *gpu.Request       `json:"accelerator,omitempty"`
}

// MaxPresetName is the most characters of the name of a preset.
const MaxPresetName = 64

const (
	presetsKey  = "hub.presets"
	presetsMost = 100
)

// builtinPresets are offered to everybody.
func builtinPresets() []Preset {
	preset := func(id, name string, cpu int, memory gpu.Bytes) Preset {
		return Preset{ID: id, Builtin: true,
			PresetContent: PresetContent{Name: name, Resources: session.Resources{CPU: cpu, Memory: memory}}}
	}
	return []Preset{preset("small", "Small", 1, 2*gpu.GiB), preset("medium", "Medium", 2, 4*gpu.GiB),
		preset("large", "Large", 4, 16*gpu.GiB)}
}

// allPresets needs mu.
func (ps *person) allPresets() []Preset { return append(builtinPresets(), ps.presets...) }

// Presets lists the bundles that the launcher offers: those built in, then the
// person's own.
func (ps *person) Presets() []Preset {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.allPresets()
}

// AddPreset saves a preset of the person's own. It fails with
// settings_update_invalid and Fields, settings_update_conflict, or
// settings_update_conflict when there are too many.
func (ps *person) AddPreset(content PresetContent) (Preset, error) {
	p := Preset{ID: "p-" + newID(), PresetContent: content}
	err := ps.changePresets(func(own []Preset) ([]Preset, error) {
		if len(own) >= presetsMost {
			return nil, session.NewError(session.CodeSettingsConflict,
				fmt.Sprintf("There are %d presets already.", len(own)), "Remove one first.")
		}
		own = append(own, p)
		return own, checkPreset(&own[len(own)-1], own)
	})
	p.Name = strings.TrimSpace(p.Name)
	return p, err
}

// UpdatePreset renames or changes a preset of the person's own. It fails with
// recipe_read_not-found, settings_update_conflict for one that is built in,
// settings_update_invalid and Fields, or settings_update_conflict.
func (ps *person) UpdatePreset(id string, update PresetUpdate) (Preset, error) {
	var updated Preset
	err := ps.changePresets(func(own []Preset) ([]Preset, error) {
		i, err := findPreset(own, id)
		if err != nil {
			return nil, err
		}
		p := &own[i]
		if update.Name != nil {
			p.Name = *update.Name
		}
		if update.Resources != nil {
			p.Resources = *update.Resources
		}
		if update.Accelerator != nil {
			p.Accelerator = *update.Accelerator
		}
		if err := checkPreset(p, own); err != nil {
			return nil, err
		}
		updated = *p
		return own, nil
	})
	return updated, err
}

// DeletePreset forgets a preset of the person's own; recipe_read_not-found or
// settings_update_conflict.
func (ps *person) DeletePreset(id string) error {
	return ps.changePresets(func(own []Preset) ([]Preset, error) {
		i, err := findPreset(own, id)
		if err != nil {
			return nil, err
		}
		return slices.Delete(own, i, i+1), nil
	})
}

func findPreset(own []Preset, id string) (int, error) {
	if i := slices.IndexFunc(own, func(p Preset) bool { return p.ID == id }); i >= 0 {
		return i, nil
	}
	if slices.ContainsFunc(builtinPresets(), func(p Preset) bool { return p.ID == id }) {
		return -1, session.NewError(session.CodeSettingsConflict, "This preset is built in.",
			"Save one of your own beside it.")
	}
	return -1, session.NewError(session.CodeRecipeNotFound, fmt.Sprintf("There is no preset %q.", id),
		"It may have been removed; look at the list again.")
}

// checkPreset judges p, one of own, by the rules of a spec. It trims its name.
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
			message, hint := fmt.Sprintf("There is a preset named %s already.", other.Name), "Choose another name."
			return wrongField(session.CodeSettingsConflict, "name", session.KindDuplicate, message, hint)
		}
	}
	return nil
}

// validTitle reports whether a name that a person chose has at most so many
// characters, all of them printable.
func validTitle(name string, most int) bool {
	return name != "" && utf8.RuneCountInString(name) <= most &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// changePresets saves what change makes of a copy of the person's presets, and
// tells the watchers when it is saved.
func (ps *person) changePresets(change func([]Preset) ([]Preset, error)) error {
	ps.saving.Lock()
	defer ps.saving.Unlock()
	return changeList(ps, presetsKey, &ps.presets, change, func() Event { return Event{Presets: new(ps.allPresets())} })
}

// loadPresets reads what was saved. An entry that keeps no rule is dropped.
func (ps *person) loadPresets() {
	var own []Preset
	for _, p := range read[[]Preset](ps.shared, presetsKey, "the presets cannot be read; starting with none") {
		if p.ID == "" || slices.ContainsFunc(own, func(other Preset) bool { return other.ID == p.ID }) ||
			checkPreset(&p, own) != nil {
			ps.log.Warn("a saved preset cannot be used and is left out", "preset", p.Name)
			continue
		}
		own = append(own, p)
	}
	ps.presets = own
}
