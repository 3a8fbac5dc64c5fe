package gpu

import (
	"math"
	"testing"
)

func TestPerCountsWholeUnits(t *testing.T) {
	month := Held(80*GiB, 31*24*3600*1000) // beyond 64 bits of bytes × milliseconds
	for name, c := range map[string]struct {
		held ByteTime
		unit Bytes
		want uint64
	}{
		"a month of 80 GiB": {month, MiB, 80 * 1024 * 31 * 24 * 3600 * 1000},
		"less than one":     {Held(MiB-1, 1), MiB, 0},
		"nothing":           {ByteTime{}, MiB, 0},
		"beyond 64 bits":    {month, 1, math.MaxUint64},
		"no unit":           {month, 0, math.MaxUint64},
	} {
		if got := c.held.Per(c.unit); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
