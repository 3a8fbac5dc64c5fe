package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

var _ session.Accelerators = (*Agent)(nil)

func (a *Agent) Devices(context.Context) (session.DeviceBoard, error) {
	live, err := a.store.LiveSessions()
	if err != nil {
		return session.DeviceBoard{}, err
	}
	return a.board(live), nil
}

// DeviceHistory implements [session.Accelerators]. It fails with
// device_read_not-found.
func (a *Agent) DeviceHistory(_ context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	d := a.devices
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tracks[device]; t != nil {
		return t.since(since), nil
	}
	if slices.ContainsFunc(d.list, func(x gpu.Device) bool { return x.UUID == device }) {
		return []session.DevicePoint{}, nil
	}
	return nil, &session.Error{Code: "device_read_not-found", Message: fmt.Sprintf("The machine has no device %s.",
		device), Hint: "List the devices: one that was removed, or whose driver is gone, is not there."}
}

// board describes the devices as they are now.
func (a *Agent) board(live []session.Session) session.DeviceBoard {
	book := a.devices.now()
	holders, age, grants := gpu.Holders{}, gpu.Age{}, map[string][]gpu.Grant{}
	now := a.clock.Now()
	for _, s := range live {
		if !s.Status.HoldsResources() || len(s.Grants.GPUs) == 0 {
			continue
		}
		holders, grants[string(s.ID)] = append(holders, accounts.HolderOf(s)), s.Grants.GPUs
		if s.StartedAt != nil {
			age[string(s.ID)] = now.Sub(*s.StartedAt)
		}
	}
	around := a.neighbours()
	for _, n := range around {
		holder := string(n.holder())
		holders, grants[holder] = append(holders, gpu.Holder{Session: holder, Grants: n.grants,
			Containers: []string{n.state.ID}}), n.grants
	}
	ledger := gpu.Restore(book.Devices, a.config.Giving, grants)
	d := a.devices
	d.mu.Lock()
	uses, foreign := slices.Clone(d.live), maps.Clone(d.foreign)
	d.mu.Unlock()
	attachment := a.attachment()
	b := session.DeviceBoard{
		Source: sourceName(book.Devices), Text: book.Text, Quantum: ledger.Quantum(),
		Strategy: string(a.config.Giving.Strategy),
		Attach:   attachName(book.Devices, attachment), Devices: []session.DeviceState{}, At: now.UTC(),
	}
	if b.Strategy == "" {
		b.Strategy = string(gpu.Evenly)
	}
	sample := gpu.Sample{}
	if n := len(book.Recent); n > 0 {
		sample = book.Recent[n-1]
		b.At = sample.At.Wall.UTC()
	}
	both := gpu.Books(ledger, sample, holders, age, foreign)
	for i, view := range ledger.Free() {
		state := deviceState(view, both[i], sample, uses, live)
		if slices.Contains(book.Unread, view.Device.UUID) {
			// What was true a moment ago is not shown as what is.
			state.Unread, state.Free, state.MemoryFree = true, 0, 0
			state.Util, state.MemoryUsed, state.Power, state.Temperature = nil, nil, nil, nil
		}
		for _, n := range around {
			if holder, held := n.on(view); held {
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
		Device: view.Device, Free: view.Free, MemoryFree: view.FreeMemory, Over: view.Over,
		Holders: []session.DeviceHolder{},
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
	nodes := slices.ContainsFunc(devices, func(d gpu.Device) bool {
		return d.Vendor == gpu.AMD ||
			d.Vendor == gpu.Intel
	})
	nvidia := slices.ContainsFunc(devices, func(d gpu.Device) bool { return d.Vendor == gpu.NVIDIA })
	if nodes && !nvidia {
		return "nodes"
	}
	if attachment.Way == "" {
		return string(engine.AttachNone)
	}
	return string(attachment.Way)
}
