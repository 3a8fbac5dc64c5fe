package session

import (
	"encoding"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time, written as a whole number with one of the units s, m, h, d and w: "30m", "2d".
type Duration time.Duration

const (
	day  = 24 * time.Hour
	week = 7 * day
)

var durationUnits = []struct {
	suffix string
	length time.Duration
}{{"w", week}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// maxDuration is longer than any task, and short enough that adding it to a time cannot overflow.
const maxDuration = 520 * week

// ParseDuration reads a whole number with a unit; without one it counts seconds.
func ParseDuration(text string) (Duration, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	length := time.Second
	for _, unit := range durationUnits {
		if rest, ok := strings.CutSuffix(s, unit.suffix); ok {
			s, length = rest, unit.length
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > int64(maxDuration/length) {
		return 0, fmt.Errorf("%q is not a length of time: write a whole number with s, m, h, d or w, for example 30m",
			text)
	}
	return Duration(time.Duration(n) * length), nil
}

// String writes d with the largest unit that loses nothing.
func (d Duration) String() string {
	for _, unit := range durationUnits {
		if d != 0 && time.Duration(d)%unit.length == 0 {
			return strconv.FormatInt(int64(time.Duration(d)/unit.length), 10) + unit.suffix
		}
	}
	return "0s"
}

// Words writes d in its two largest units, the second only if there is any of it, such as "2 h 5 min". A negative
// length is none.
func (d Duration) Words() string {
	left, words := max(0, time.Duration(d)), ""
	for i, unit := range []struct {
		name   string
		length time.Duration
	}{{"d", day}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}} {
		n := left / unit.length
		left %= unit.length
		switch {
		case words != "" && n > 0:
			return fmt.Sprintf("%s %d %s", words, n, unit.name)
		case words != "":
			return words
		case n > 0 || i == 3:
			words = fmt.Sprintf("%d %s", n, unit.name)
		}
	}
	return words
}

// MarshalText writes d as [Duration.String] does; zero is empty.
func (d Duration) MarshalText() ([]byte, error) {
	if d == 0 {
		return nil, nil
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what [ParseDuration] reads; empty is zero.
func (d *Duration) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = 0
		return nil
	}
	parsed, err := ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// UnmarshalJSON reads the text form and refuses numbers, whose unit is unclear.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is not a length of time: write a text such as \"30m\"", data)
	}
	return d.UnmarshalText([]byte(text))
}

type unit struct {
	kind Kind
	what string // a length of time, by the name that a person knows; empty: 0 is fine
	hint string
	none string // the hint where it is 0; empty: as hint
}

// units are the fields of a [Spec] with a unit, by their JSON paths. Those of an idle policy are usualUnit.
var units = map[string]unit{
	"timeout": {KindInvalid, "A timeout", "Write for example 30m, or leave it empty.",
		"Leave it empty for no timeout."},
	"keepHome": {KindRange, "", "Write for example 30d, or 0 to delete the home with the session.", ""},
	"pendingTimeout": {KindRange, "The longest wait", "Write for example 2h, or leave it empty to wait without limit.",
		""},
	"resources.memory": {KindRange, "", "Write for example 2g.", ""},
	"resources.shm":    {KindRange, "", "Write for example 64m, or leave it empty for an automatic amount.", ""},
	"accelerator":      {KindInvalid, "", "Write for example 0.5, 2, mig:1g.10gb or vram:12g, or leave it empty.", ""},
}

var usualUnit = unit{KindInvalid, "A length of time", "Write for example 30m, or leave it empty.", ""}

// ReadUnit reads an amount or a length of time as people write it into a field of a [Spec], and returns what is wrong
// with it; nil if nothing is. An empty text leaves the field as it is. A length of 0 must be left out instead.
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
	if length, ok := into.(*Duration); ok && *length == 0 && rule.what != "" {
		fault.Message = rule.what + " is at least 1 s."
		if rule.none != "" {
			fault.Hint = rule.none
		}
		return fault
	}
	return nil
}
