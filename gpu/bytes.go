package gpu

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory or data in bytes.
//
// In JSON it is written as a plain integer and read from either an integer or
// a text such as "512m" (see [ParseBytes]), so that files written by people
// and records written by programs share one type.
type Bytes int64

// Binary units.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// ParseBytes reads an amount such as "512m", "1.5g", "2TiB" or "1048576".
// The units b, k, m, g and t are binary, whatever their case, and may be
// followed by "b" or "ib". It refuses negative amounts, unknown units and
// amounts beyond 8 EiB.
func ParseBytes(text string) (Bytes, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	cut := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	number, unit := s, ""
	if cut >= 0 {
		number, unit = s[:cut], strings.TrimSpace(s[cut:])
	}
	scale, ok := unitScale(unit)
	if !ok {
		return 0, fmt.Errorf("%q is not an amount of memory: write a number with m, g or t, for example 512m", text)
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 || value*float64(scale) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not an amount of memory: write a number with m, g or t, for example 512m", text)
	}
	return Bytes(math.Round(value * float64(scale))), nil
}

func unitScale(unit string) (Bytes, bool) {
	switch strings.TrimSuffix(strings.TrimSuffix(unit, "b"), "i") {
	case "":
		return 1, unit != "i" && unit != "ib"
	case "k":
		return KiB, true
	case "m":
		return MiB, true
	case "g":
		return GiB, true
	case "t":
		return TiB, true
	}
	return 0, false
}

// String writes b with the largest binary unit that keeps it at least one,
// with at most two decimals: "1.5 GiB".
func (b Bytes) String() string {
	switch {
	case b >= TiB:
		return trimUnit(float64(b)/float64(TiB), "TiB")
	case b >= GiB:
		return trimUnit(float64(b)/float64(GiB), "GiB")
	case b >= MiB:
		return trimUnit(float64(b)/float64(MiB), "MiB")
	case b >= KiB:
		return trimUnit(float64(b)/float64(KiB), "KiB")
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

func trimUnit(value float64, unit string) string {
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64) + " " + unit
}

// UnmarshalText reads a text for [ParseBytes].
func (b *Bytes) UnmarshalText(text []byte) error {
	parsed, err := ParseBytes(string(text))
	if err == nil {
		*b = parsed
	}
	return err
}

// UnmarshalJSON accepts an integer number of bytes or a text for [ParseBytes].
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		return b.UnmarshalText([]byte(text))
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%s is not a whole number of bytes", data)
	}
	*b = Bytes(n)
	return nil
}
