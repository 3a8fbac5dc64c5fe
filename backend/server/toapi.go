package server

import (
	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

// each converts all items of a list.
func each[A, B any](items []A, turn func(A) B) []B {
	out := make([]B, len(items))
	for i, item := range items {
		out[i] = turn(item)
	}
	return out
}

// lengthOut formats a duration; 0 is empty.
func lengthOut(d session.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// requestOut formats a request for devices; none is empty.
func requestOut(r gpu.Request) string {
	if r.IsZero() {
		return ""
	}
	return r.String()
}

// roundingOut adds the text that requests the rounded amount.
func roundingOut(r gpu.Rounding) api.Rounding {
	return api.Rounding{Rounding: r, Accept: requestOut(gpu.Request{Shares: r.Given})}
}
