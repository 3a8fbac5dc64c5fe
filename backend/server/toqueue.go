package server

import (
	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

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

func boardOut(b hub.Board) api.DeviceBoard {
	return api.DeviceBoard{Board: b, Devices: each(b.Devices, deviceOut)}
}

// deviceOut leaves out the device nodes, which are the agent's alone.
func deviceOut(s session.DeviceState) api.DeviceState {
	out := api.DeviceState{Device: s.Device, DeviceStatus: s.DeviceStatus,
		Capabilities: capabilitiesOut(s.Device.Capabilities), Lost: lossOut(s.Device.Lost)}
	out.Nodes = nil
	return out
}

func lossOut(l *gpu.Loss) *api.DeviceLoss {
	if l == nil {
		return nil
	}
	return &api.DeviceLoss{Kind: string(l.Kind), Why: l.Why, Hint: l.Hint()}
}

func capabilitiesOut(c gpu.Capabilities) []api.Capability {
	one := func(id string, p gpu.Probe) api.Capability {
		state := p.State
		if state == "" {
			state = gpu.Unknown
		}
		return api.Capability{ID: id, State: string(state), Why: p.Why}
	}
	return []api.Capability{one("process-memory", c.ProcessMemory), one("process-util", c.ProcessUtil),
		one("energy", c.Energy),
		one("accounting", c.Accounting), one("mig", c.MIG), one("memory-limit", c.MemoryLimit), one("mps", c.MPS)}
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
