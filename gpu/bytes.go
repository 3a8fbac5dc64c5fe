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

// units are the binary units, largest first, with the letter that people write.
var units = []struct {
	size   Bytes
	letter string
}{{TiB, "t"}, {GiB, "g"}, {MiB, "m"}, {KiB, "k"}}

// ParseBytes reads an amount such as "512m", "1.5g", "2TiB" or "1048576".
// The units b, k, m, g and t are binary, whatever their case, and may be
// followed by "b" or "ib". It refuses negative amounts, unknown units and
// amounts beyond 8 EiB.
func ParseBytes(text string) (Bytes, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	number, unit := s, ""
	if cut := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); cut >= 0 {
		number, unit = s[:cut], strings.TrimSpace(s[cut:])
	}
	scale, ok := unitSize(unit)
	value, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || value < 0 || value*float64(scale) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is not an amount of memory: write a number with m, g or t, for example 512m", text)
	}
	return Bytes(math.Round(value * float64(scale))), nil
}

func unitSize(unit string) (Bytes, bool) {
	if unit == "" || unit == "b" {
		return 1, true
	}
	for _, u := range units {
		if rest, ok := strings.CutPrefix(unit, u.letter); ok {
			rest = strings.TrimSuffix(rest, "b")
			return u.size, rest == "" || rest == "i"
		}
	}
	return 0, false
}

// String writes b with the largest binary unit that keeps it at least one,
// with at most two decimals: "1.5 GiB".
func (b Bytes) String() string {
	for _, u := range units {
		if b >= u.size {
			value := math.Round(float64(b)/float64(u.size)*100) / 100
			return strconv.FormatFloat(value, 'f', -1, 64) + " " + strings.ToUpper(u.letter) + "iB"
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// Exact writes b with the largest unit that divides it, as [ParseBytes] reads
// it: "1536m".
func (b Bytes) Exact() string {
	for _, u := range units {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.letter
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// UnmarshalText reads a text for [ParseBytes].
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBytes(string(text))
	return err
}

// UnmarshalJSON accepts an integer number of bytes or a text for [ParseBytes].
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if quoted, err := readQuoted(data, b, ParseBytes); quoted {
		return err
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%s is not a whole number of bytes", data)
	}
	*b = Bytes(n)
	return nil
}

// readQuoted parses data into value where data is a JSON string.
func readQuoted[T any](data []byte, value *T, parse func(string) (T, error)) (quoted bool, err error) {
	if len(data) == 0 || data[0] != '"' {
		return false, nil
	}
	var text string
	if err = json.Unmarshal(data, &text); err == nil {
		*value, err = parse(text)
	}
	return true, err
}
