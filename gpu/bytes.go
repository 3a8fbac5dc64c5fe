package gpu

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Bytes is an amount of memory or data in bytes. In JSON it is written as an integer and read from an integer or a text
// such as "512m" (see [ParseBytes]), so that files of people and of programs share one type.
type Bytes int64

// Binary units.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// units are the binary units, largest first, with the letter that people write, and the name that they read.
var units = []struct {
	size         Bytes
	letter, name string
}{{TiB, "t", " TiB"}, {GiB, "g", " GiB"}, {MiB, "m", " MiB"}, {KiB, "k", " KiB"}}

// ParseBytes reads an amount such as "512m", "1.5g", "2TiB" or "1048576". The units b, k, m, g and t are binary, in any
// case, and may be followed by "b" or "ib". Negative amounts, unknown units and amounts beyond 8 EiB fail.
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

// String writes b with the largest binary unit that keeps it at least one, with at most two decimals: "1.5 GiB".
func (b Bytes) String() string {
	for _, u := range units {
		if b >= u.size {
			value := math.Round(float64(b)/float64(u.size)*100) / 100
			return strconv.FormatFloat(value, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// Exact writes b with the largest unit that divides it, as [ParseBytes] reads it: "1536m".
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
	return readNumber(data, b, math.MaxInt64, "bytes", ParseBytes)
}

// readNumber reads an integer up to most, or a text for parse.
func readNumber[T ~int | ~int64](data []byte, value *T, most T, unit string, parse func(string) (T, error)) error {
	if quoted, err := readQuoted(data, value, parse); quoted {
		return err
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil || n < 0 || n > int64(most) {
		return fmt.Errorf("%s is not a whole number of %s", data, unit)
	}
	*value = T(n)
	return nil
}

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

// ByteTime is memory used over time in byte-milliseconds. It has 128 bits, because 64 hold 80 GiB for little more than
// a day. In JSON it is a whole number, which may be too large for JavaScript to read exactly.
type ByteTime struct{ hi, lo uint64 }

// Held is amount for ms milliseconds; negative values count as 0.
func Held(amount Bytes, ms int64) ByteTime {
	hi, lo := bits.Mul64(uint64(max(0, amount)), uint64(max(0, ms)))
	return ByteTime{hi, lo}
}

// Plus is t + u.
func (t ByteTime) Plus(u ByteTime) ByteTime {
	lo, carry := bits.Add64(t.lo, u.lo, 0)
	hi, _ := bits.Add64(t.hi, u.hi, carry)
	return ByteTime{hi, lo}
}

// Per returns how many whole units × milliseconds t holds, at most what 64 bits hold.
func (t ByteTime) Per(unit Bytes) uint64 {
	if unit <= 0 || t.hi >= uint64(unit) {
		return math.MaxUint64
	}
	n, _ := bits.Div64(t.hi, t.lo, uint64(unit))
	return n
}

func (t ByteTime) big() *big.Int {
	n := new(big.Int).SetUint64(t.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(t.lo))
}

// String is t as a whole number.
func (t ByteTime) String() string {
	if t.hi == 0 {
		return strconv.FormatUint(t.lo, 10)
	}
	return t.big().String()
}

// MarshalJSON writes a whole number.
func (t ByteTime) MarshalJSON() ([]byte, error) { return []byte(t.String()), nil }

func (t *ByteTime) UnmarshalJSON(data []byte) error {
	if lo, err := strconv.ParseUint(string(data), 10, 64); err == nil {
		*t = ByteTime{0, lo}
		return nil
	}
	n, ok := new(big.Int).SetString(string(data), 10)
	if !ok || n.Sign() < 0 || n.BitLen() > 128 {
		return fmt.Errorf("%s is not a whole number of byte-milliseconds", data)
	}
	t.lo = new(big.Int).And(n, new(big.Int).SetUint64(1<<64-1)).Uint64()
	t.hi = new(big.Int).Rsh(n, 64).Uint64()
	return nil
}

// UUID names a device or a MIG instance as its driver does, for example "GPU-8f6a…" or "MIG-1c9e…". Devices are never
// named by index, because their order differs between libraries and changes at a reboot.
type UUID string

// MilliJoule is an amount of energy in thousandths of a joule.
type MilliJoule int64

// MilliWatt is a power in thousandths of a watt.
type MilliWatt int64

// Share is a part of devices in thousandths of one device: 1500 is one and a half. JSON has that integer, or a text
// such as "0.5" when read (see [ParseShare]).
type Share int

// WholeDevice is the share that is one device.
const WholeDevice Share = 1000

// DefaultQuantum is the smallest share that can be allocated unless configured otherwise: a tenth of a device.
const DefaultQuantum Share = 100

const maxShare = 1024 * WholeDevice // so that sums cannot overflow

// ParseShare reads a decimal number of devices such as "0.5" or "2", with at most three decimals, up to 1024.
func ParseShare(text string) (Share, error) {
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	thousandths := value * float64(WholeDevice)
	if err != nil || !(value >= 0) || thousandths > float64(maxShare) ||
		math.Abs(thousandths-math.Round(thousandths)) > 1e-6 {
		const why = "%q is not a share of devices: write a number with at most three decimals, for example 0.5"
		return 0, fmt.Errorf(why, text)
	}
	return Share(math.Round(thousandths)), nil
}

// String writes s as a number of devices: "0.5", "2".
func (s Share) String() string {
	return strconv.FormatFloat(float64(s)/float64(WholeDevice), 'f', -1, 64)
}

// UnmarshalJSON accepts an integer number of thousandths or a text for [ParseShare].
func (s *Share) UnmarshalJSON(data []byte) error {
	return readNumber(data, s, maxShare, "thousandths of a device", ParseShare)
}

// Of returns the part of total for s, rounded down to a whole byte; all of it for one device or more.
func (s Share) Of(total Bytes) Bytes {
	if s >= WholeDevice {
		return total
	}
	if s <= 0 || total <= 0 {
		return 0
	}
	whole, rest := total/Bytes(WholeDevice), total%Bytes(WholeDevice)
	return whole*Bytes(s) + rest*Bytes(s)/Bytes(WholeDevice)
}
