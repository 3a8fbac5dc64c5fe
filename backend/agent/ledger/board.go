package ledger

import (
	"cmp"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// Board describes the devices as they are now, and how they are handed to
// containers.
func (l *Ledger) Board(attachment engine.Attachment, strategy gpu.Strategy) session.DeviceBoard {
	b := session.DeviceBoard{
		Source: sourceName(l.state.Devices), Text: l.state.Text, Quantum: l.Quantum(),
		Strategy: string(cmp.Or(strategy, gpu.Evenly)),
		Attach:   attachName(l.state.Devices, attachment), Devices: []session.DeviceState{}, At: l.now.UTC(),
	}
	sample := gpu.Sample{}
	if n := len(l.state.Recent); n > 0 {
		sample = l.state.Recent[n-1]
		b.At = sample.At.Wall.UTC()
	}
	// A process of a session that holds no device is shown as any other program's.
	holders := slices.DeleteFunc(slices.Clone(l.holders), func(h gpu.Holder) bool { return len(h.Grants) == 0 })
	both := gpu.Books(l.Ledger, sample, holders, l.age, l.state.Foreign)
	for i, view := range l.Free() {
		state := deviceState(view, both[i], sample, l.state.Uses, l.live)
		if slices.Contains(l.state.Unread, view.Device.UUID) {
			// What was true a moment ago is not shown as what is.
			state.Unread, state.Free, state.MemoryFree = true, 0, 0
			state.Util, state.MemoryUsed, state.Power, state.Temperature = nil, nil, nil, nil
		}
		for _, o := range l.others {
			if holder, held := o.On(view); held {
				state.Holders = append(state.Holders, holder)
			}
		}
		part := gpu.Grant{Device: view.Device.UUID, Share: gpu.WholeDevice / 2}
		if len(view.Device.Instances) > 0 {
			part.Instance = view.Device.Instances[0].UUID
		}
		state.Level = gpu.LevelOf(view.Device, part, gpu.Enforcement{HardLimit: attachment.HardLimit, Guard: true})
		b.Devices = append(b.Devices, state)
	}
	return b
}

func deviceState(view gpu.View, both gpu.Book, sample gpu.Sample, uses []gpu.Live,
	live []session.Session) session.DeviceState {
	state := session.DeviceState{
		Device: view.Device, DeviceStatus: session.DeviceStatus{
			Free:       view.Free,
			MemoryFree: view.FreeMemory,
			Over:       view.Over,
			Holders:    []session.DeviceHolder{},
		},
	}
	if both.DeviceFree != nil {
		state.MemoryFree = min(state.MemoryFree, *both.DeviceFree)
	}
	if now, ok := sample.Device(view.Device.UUID); ok {
		state.Util, state.MemoryUsed, state.Power, state.Temperature = now.Util, now.MemoryUsed, now.Power,
			now.Temperature
	}
	for _, s := range live {
		holder := session.DeviceHolder{Session: s.ID, Name: s.Name, Owner: s.Owner}
		held := false
		for _, holding := range view.Holdings {
			if holding.Holder == string(s.ID) {
				held = true
				holder.Share += holding.Grant.Share
				holder.Promised += holding.Grant.Memory
			}
		}
		if !held {
			continue
		}
		for _, use := range uses {
			if use.Session == string(s.ID) && use.Device == view.Device.UUID {
				holder.Memory, holder.Util = use.Memory, use.Util
			}
		}
		state.Holders = append(state.Holders, holder)
	}
	for _, p := range both.Others {
		state.Holders = append(state.Holders, session.DeviceHolder{Name: p.Name, Owner: p.User, PID: p.PID,
			Memory: p.Memory, Util: p.Util})
	}
	return state
}

// sourceName names what the devices were found by.
func sourceName(devices []gpu.Device) string {
	name := "none"
	for _, d := range devices {
		switch d.Vendor {
		case gpu.NVIDIA:
			return "nvml"
		case gpu.AMD, gpu.Intel:
			name = "drm"
		case gpu.Sim:
			name = "sim"
		}
	}
	return name
}

// attachName names the way in which devices get into containers.
func attachName(devices []gpu.Device, attachment engine.Attachment) string {
	if sourceName(devices) == "drm" {
		return "nodes"
	}
	return string(cmp.Or(attachment.Way, engine.AttachNone))
}
