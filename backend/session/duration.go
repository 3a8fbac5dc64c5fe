package session

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time that people write as a whole number with one of
// the units s, m, h, d and w: "30m", "2d". It travels as that text.
type Duration time.Duration

const (
	day  = 24 * time.Hour
	week = 7 * day
)

var durationUnits = []struct {
	suffix string
	length time.Duration
}{{"w", week}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// maxDuration bounds what is accepted: longer than any task, short enough that
// adding it to a time cannot overflow.
const maxDuration = 520 * week

// ParseDuration reads a whole number with a unit. A number without a unit
// counts seconds.
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

// UnmarshalJSON reads the text form and refuses numbers, whose unit would be a
// guess.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is not a length of time: write a text such as \"30m\"", data)
	}
	return d.UnmarshalText([]byte(text))
}
