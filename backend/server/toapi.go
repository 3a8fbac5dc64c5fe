package server

import (
	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// each turns every item of a list; the result is never nil, so that it is
// written as [] and not as null.
func each[A, B any](items []A, turn func(A) B) []B {
	out := make([]B, len(items))
	for i, item := range items {
		out[i] = turn(item)
	}
	return out
}

// lengthOut writes a length of time; zero is empty.
func lengthOut(d session.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// requestOut writes a request for devices as people do; none is empty.
func requestOut(r gpu.Request) string {
	if r.IsZero() {
		return ""
	}
	return r.String()
}

// roundingOut says with which text to ask for what would be given.
func roundingOut(r gpu.Rounding) api.Rounding {
	return api.Rounding{Rounding: r, Accept: requestOut(gpu.Request{Shares: r.Given})}
}

func resourceSummaryOut(r hub.Resources) api.ResourceSummary {
	var limit *api.Limit
	if r.Limit.Limits() {
		limit = &api.Limit{Allowance: r.Limit, SessionsHeld: r.Sessions}
	}
	return api.ResourceSummary{Limit: limit, Agent: r.Agent, Group: r.Group, Online: r.Online, Live: r.Live,
		Total: r.Total, Promised: r.Promised, Mine: r.Mine,
		Free: r.Free, Load: r.Load, Devices: r.Devices}
}
