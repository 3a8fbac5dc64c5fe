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

// integer turns what a pointer points to into a number of the wire.
func integer[N ~int64](p *N) *int64 { return maybe(p, func(n N) int64 { return int64(n) }) }

func boardOut(b hub.Board) api.DeviceBoard {
	return api.DeviceBoard{Board: b, Devices: each(b.Devices, deviceOut)}
}

func deviceOut(s session.DeviceState) api.DeviceState {
	d := s.Device
	return api.DeviceState{
		UUID: string(d.UUID), Vendor: string(d.Vendor), Model: d.Model, Index: d.Index, PCI: d.PCI, Driver: d.Driver,
		Memory: int64(d.Memory), Reserved: int64(d.Reserved), Capabilities: capabilitiesOut(d.Capabilities),
		Instances: d.Instances,
		Free:      int(s.Free), MemoryFree: int64(s.MemoryFree), Level: string(s.Level),
		Util: s.Util, MemoryUsed: integer(s.MemoryUsed), Power: integer(s.Power), Temperature: s.Temperature,
		Holders: s.Holders,
		Lost:    lossOut(d.Lost), Unread: s.Unread, Over: s.Over,
	}
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

func accountOut(a hub.Account) api.Account {
	return api.Account{
		Start: a.Start, Kind: a.Kind, Session: string(a.Session), Name: a.Name, Owner: a.Owner, Label: a.Label,
		Agent:  a.Agent,
		Device: string(a.Device), DeviceName: a.DeviceName, CPUMs: a.CPUMs, AllocCPUMs: a.AllocCPUMs,
		AllocGPUMs: a.GPU.AllocMs, BusyGPUMs: a.GPU.BusyMs,
		VRAMMiBMs: a.GPU.VRAMMiBMs, VRAMPeak: int64(a.GPU.VRAMPeak), EnergyDynamic: int64(a.GPU.EnergyDynamic),
		EnergyIdle: int64(a.GPU.EnergyIdle),
		CoveredMs:  a.GPU.CoveredMs, EstimatedMs: a.GPU.EstimatedMs, GapMs: a.GPU.GapMs,
	}
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
