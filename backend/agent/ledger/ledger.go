// Package ledger computes who holds what of a machine's devices, other agents included, and compares it with samples.
package ledger

import (
	"cmp"
	"slices"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/devices"
	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

// Ledger is who holds what of the devices at a moment.
type Ledger struct {
	*gpu.Ledger
	now     time.Time
	state   devices.State
	live    []session.Session
	others  []Other
	holders gpu.Holders
	age     gpu.Age
}

// New returns the ledger of what live sessions and the containers of other agents hold.
func New(state devices.State, giving gpu.Config, live []session.Session, others []Other, now time.Time) *Ledger {
	l := &Ledger{now: now, state: state, live: live, others: others, age: gpu.Age{}}
	grants := map[string][]gpu.Grant{}
	for _, s := range live {
		if !s.Status.HoldsResources() {
			continue
		}
		// It may hold no devices, but its processes are known.
		l.holders = append(l.holders, accounts.HolderOf(s))
		if len(s.Grants.GPUs) > 0 {
			grants[string(s.ID)] = s.Grants.GPUs
		}
		if s.StartedAt != nil {
			l.age[string(s.ID)] = now.Sub(*s.StartedAt)
		}
	}
	for _, o := range others {
		holder := string(o.Holder())
		l.holders = append(l.holders, gpu.Holder{Session: holder, Grants: o.Grants, Containers: []string{o.ID}})
		grants[holder] = o.Grants
		if since := o.Since(); since != nil {
			l.age[holder] = now.Sub(*since)
		}
	}
	l.Ledger = gpu.Restore(state.Devices, giving, grants)
	return l
}

// TakenBy returns another agent's container that has part of the same device, which is allocated beyond what it has.
func (l *Ledger) TakenBy(id session.ID) (o Other, taken bool) {
	for _, view := range l.Free() {
		mine := slices.ContainsFunc(view.Holdings, func(h gpu.Holding) bool { return h.Holder == string(id) })
		if view.Over == "" || !mine {
			continue
		}
		for _, o := range l.others {
			if _, held := o.On(view); held {
				return o, true
			}
		}
	}
	return Other{}, false
}

// Measured compares each device that was measured lately with the ledger.
func (l *Ledger) Measured() []scheduler.Measured {
	recent := l.state.Recent
	if len(recent) == 0 {
		return nil
	}
	foreign := map[gpu.UUID]gpu.Foreign{}
	settles := map[gpu.UUID]time.Time{}
	newest := recent[len(recent)-1]
	final := map[gpu.UUID]gpu.Bytes{}
	for _, b := range gpu.Books(l.Ledger, newest, l.holders, l.age, nil) {
		final[b.Device] = b.Foreign
	}
	for _, sample := range recent {
		for _, b := range gpu.Books(l.Ledger, sample, l.holders, l.age, nil) {
			foreign[b.Device] = foreign[b.Device].Observe(sample.At.Boot, b.Foreign)
			if b.Foreign > final[b.Device] {
				settles[b.Device] = l.now.Add(sample.At.Boot - newest.At.Boot + gpu.ForeignWindow)
			}
		}
	}
	var list []scheduler.Measured
	for _, b := range gpu.Books(l.Ledger, newest, l.holders, l.age, foreign) {
		if b.DriverFree == nil {
			continue
		}
		m := scheduler.Measured{Device: b.Device, Free: *b.DriverFree - b.Unclaimed,
			Used: usedOf(newest, l.holders, b.Device), Settles: settles[b.Device]}
		if m.Returned = max(0, b.Peak-b.Foreign); m.Returned > 0 && m.Settles.IsZero() {
			m.Settles = l.now.Add(gpu.ForeignWindow)
		}
		for _, p := range b.Others {
			if p.Memory != nil {
				m.Foreign = append(m.Foreign, scheduler.Foreign{PID: p.PID, Name: p.Name, User: p.User,
					Memory: *p.Memory})
			}
		}
		list = append(list, m)
	}
	return list
}

// usedOf is the memory of a device that each session's processes use.
func usedOf(sample gpu.Sample, holders gpu.Holders, device gpu.UUID) map[session.ID]gpu.Bytes {
	used := map[session.ID]gpu.Bytes{}
	for _, p := range sample.Processes {
		if id, ours := holders.Of(p); ours && p.Device == device && p.Memory != nil {
			used[session.ID(id)] += *p.Memory
		}
	}
	return used
}

// Level is the weakest level that enforces the grants, empty if they are of no device.
func Level(with gpu.Enforcement, devices []gpu.Device, grants session.Grants) gpu.Level {
	order := []gpu.Level{gpu.LevelNone, gpu.LevelWatched, gpu.LevelPerProcess, gpu.LevelHard, gpu.LevelHardware}
	for _, level := range order {
		for _, g := range grants.GPUs {
			for _, d := range devices {
				if d.UUID == g.Device && gpu.LevelOf(d, g, with) == level {
					return level
				}
			}
		}
	}
	return ""
}

// Board describes the devices as they are now, and how they are attached to containers.
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
	// A process of a session without devices is shown as any other program's.
	holders := slices.DeleteFunc(slices.Clone(l.holders), func(h gpu.Holder) bool { return len(h.Grants) == 0 })
	both := gpu.Books(l.Ledger, sample, holders, l.age, l.state.Foreign)
	for i, view := range l.Free() {
		state := deviceState(view, both[i], sample, l.state.Uses, l.live)
		if slices.Contains(l.state.Unread, view.Device.UUID) {
			// Values of a moment ago are not shown as current.
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
		if !addHoldings(&holder, view, string(s.ID)) {
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

// addHoldings adds to a holder what it has of a device, and reports whether it has anything.
func addHoldings(holder *session.DeviceHolder, view gpu.View, name string) (held bool) {
	for _, holding := range view.Holdings {
		if holding.Holder == name {
			held = true
			holder.Share += holding.Grant.Share
			holder.Promised += holding.Grant.Memory
		}
	}
	return held
}

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

// attachName names the way in which devices are attached to containers.
func attachName(devices []gpu.Device, attachment engine.Attachment) string {
	if sourceName(devices) == "drm" {
		return "nodes"
	}
	return string(cmp.Or(attachment.Way, engine.AttachNone))
}
