package gpu

import (
	"cmp"
	"math/bits"
	"slices"
)

// split divides total by weights so that the parts are whole and their sum is
// exactly total: each part is rounded down, and what is left over goes, one
// each, to the parts that lost most by it, the earlier before the later. With
// no weight at all every part is 0, which is the only case in which the sum
// is not total. Nothing may be negative.
func split(total int64, weights []int64) []int64 {
	parts := make([]int64, len(weights))
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	if sum == 0 || total <= 0 {
		return parts
	}
	order := make([]int, len(weights))
	lost := make([]uint64, len(weights))
	left := total
	for i, w := range weights {
		hi, lo := bits.Mul64(uint64(total), uint64(w))
		quotient, remainder := bits.Div64(hi, lo, sum)
		parts[i], lost[i], order[i] = int64(quotient), remainder, i
		left -= parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lost[b], lost[a]) })
	for _, i := range order[:left] {
		parts[i]++
	}
	return parts
}
