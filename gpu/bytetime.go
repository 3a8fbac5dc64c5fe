package gpu

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// ByteTime is memory held over time in byte-milliseconds. It has 128 bits,
// because 64 hold 80 GiB for little more than a day. In JSON it is a whole
// number, which may be larger than what JavaScript reads exactly.
type ByteTime struct{ hi, lo uint64 }

// Held is amount held for ms milliseconds; what is negative counts as 0.
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

// Per is how many whole units × milliseconds t holds; what 64 bits cannot hold
// counts as the most they can.
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

// UnmarshalJSON reads what MarshalJSON wrote.
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
