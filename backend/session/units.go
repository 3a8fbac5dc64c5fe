package session

import (
	"encoding"
	"strings"
)

// unit is how the text of one field is judged.
type unit struct {
	kind Kind
	what string // a length of time, by the name that a person knows; empty: 0 is fine
	hint string
	none string // the hint where it is 0; empty: as hint
}

// units are the fields of a [Spec] that people write with a unit, by their JSON
// paths. Those of an idle policy are usualUnit.
var units = map[string]unit{
	"timeout": {KindInvalid, "A timeout", "Write for example 30m, or leave it empty.",
		"Leave it empty for no timeout."},
	"pendingTimeout": {KindRange, "The longest wait",
		"Write for example 2h, or leave it empty to wait for ever.", ""},
	"resources.memory": {KindRange, "", "Write for example 2g.", ""},
	"resources.shm": {KindRange, "", "Write for example 64m, or leave it empty for an automatic amount.",
		""},
	"accelerator": {KindInvalid, "",
		"Write for example 0.5, 2, mig:1g.10gb or vram:12g, or leave it empty.", ""},
}

var usualUnit = unit{KindInvalid, "A length of time", "Write for example 30m, or leave it empty.", ""}

// ReadUnit reads an amount or a length of time as people write it into a field
// of a [Spec], and says what is wrong with it; nil where it is fine. An empty text
// leaves the field as it is. A length of 0 must be left out instead.
func ReadUnit(field, text string, into encoding.TextUnmarshaler) *FieldError {
	if text == "" {
		return nil
	}
	rule, ok := units[field]
	if !ok {
		rule = usualUnit
	}
	fault := &FieldError{Field: field, Kind: rule.kind, Hint: rule.hint}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		fault.Message = strings.TrimSuffix(err.Error(), ".") + "."
		if first := fault.Message[:1]; first != `"` {
			fault.Message = strings.ToUpper(first) + fault.Message[1:]
		}
		return fault
	}
	if length, ok := into.(*Duration); ok && *length == 0 {
		fault.Message = rule.what + " is at least 1 s."
		if rule.none != "" {
			fault.Hint = rule.none
		}
		return fault
	}
	return nil
}
