// Package ledger tells who holds what of a machine's devices, other agents
// included, and compares that with what is measured of them.
package ledger

import (
	"slices"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/devices"
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

// New returns the ledger of what the live sessions and the containers of other
// agents hold.
func New(state devices.State, giving gpu.Config, live []session.Session, others []Other, now time.Time) *Ledger {
	l := &Ledger{now: now, state: state, live: live, others: others, age: gpu.Age{}}
	grants := map[string][]gpu.Grant{}
	for _, s := range live {
		if !s.Status.HoldsResources() {
			continue
		}
		// Of devices it may hold none: its processes are known all the same.
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

// TakenBy returns another agent's container that holds what a session holds, be
// it all of a device, an instance, or more shares or memory than there is.
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

// Measured is the second book of each device that was measured lately.
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

// usedOf is the memory of a device that each session's processes hold.
func usedOf(sample gpu.Sample, holders gpu.Holders, device gpu.UUID) map[session.ID]gpu.Bytes {
	used := map[session.ID]gpu.Bytes{}
	for _, p := range sample.Processes {
		if id, ours := holders.Of(p); ours && p.Device == device && p.Memory != nil {
			used[session.ID(id)] += *p.Memory
		}
	}
	return used
}

// Level is the weakest level by which grants are kept, empty where they are of
// no device.
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
