package gpu

import (
	"slices"
	"time"
)

// Report is what one sample says about each session, for display.
type Report struct {
	Stale bool   `json:"stale,omitempty"` // the sample is not newer than the last booked one; nothing was done
	Live  []Live `json:"live,omitempty"`
}

// Live is what one session, or [Others], does on one device now. What is not known is nil.
type Live struct {
	Session   string `json:"session"`
	Device    UUID   `json:"device"`
	Util      *int   `json:"util,omitempty"` // hundredths of a percent of the device, since the sample before
	Memory    *Bytes `json:"memory,omitempty"`
	Estimated bool   `json:"estimated,omitempty"` // divided by allocation, not measured
}

// Book counts what happened since the last booked sample. A sample that is not newer is stale and counts nothing.
func (a *Accounts) Book(s Sample) Report {
	last := a.state.At
	booted := last.BootID != s.At.BootID
	if !booted && !last.Wall.IsZero() && s.At.Boot <= last.Boot {
		return Report{Stale: true}
	}
	a.turn(s.At.Wall)
	a.steady(last, s.At)
	var holders Holders // including those that ended since the last sample
	for _, h := range a.state.Holders {
		if !h.Ended {
			a.accrue(h, s.At)
		}
		holders = append(holders, h.Holder)
	}
	if booted {
		for _, r := range a.state.Rows {
			r.Weight = 0
		}
	}
	var report Report
	for _, d := range s.Devices {
		report.Live = append(report.Live, a.bookDevice(s, d, holders)...)
	}
	for _, r := range a.state.Rows {
		if r.Pending > 0 { // its device is not in the sample
			a.charge(r, Counters{GapMs: r.Pending})
			r.Pending = 0
		}
	}
	a.state.Holders = slices.DeleteFunc(a.state.Holders, func(h *Running) bool { return h.Ended })
	a.close()
	a.state.At, a.fresh = s.At, false
	return report
}

func (a *Accounts) device(uuid UUID) *DeviceState {
	for i := range a.state.Devices {
		if a.state.Devices[i].UUID == uuid {
			return &a.state.Devices[i]
		}
	}
	a.state.Devices = append(a.state.Devices, DeviceState{UUID: uuid})
	return &a.state.Devices[len(a.state.Devices)-1]
}

// interval is one device between two samples.
type interval struct {
	device  *DeviceState
	sample  DeviceSample
	first   bool  // the first sample of its epoch
	ms      int64 // its length
	covered int64 // how much of it, at its end, Util describes
	held    int64 // how much of it the memory describes
}

func (a *Accounts) interval(d *DeviceState, s Sample, sample DeviceSample) interval {
	iv := interval{device: d, sample: sample}
	decreased := sample.Energy != nil && d.Energy != nil && *sample.Energy < *d.Energy
	iv.first = d.At.Wall.IsZero() || d.At.BootID != s.At.BootID || d.Epoch != s.Epoch || decreased
	if iv.first {
		d.Energy, d.Power = nil, nil
		return iv
	}
	iv.ms = between(d.At, s.At)
	iv.held = min(iv.ms, maxInterval.Milliseconds())
	elapsed := s.At.Boot - d.At.Boot
	switch {
	case s.Since > 0:
		reach := min(s.At.Boot-max(d.At.Boot, s.Since), maxInterval)
		iv.covered = min(iv.ms, max(0, reach.Milliseconds()))
		if s.Since <= d.At.Boot && elapsed <= maxInterval {
			iv.covered = iv.ms
		}
	case !a.fresh && elapsed <= trust:
		iv.covered = iv.ms
	}
	return iv
}

// party is a session, or others, with processes on a device or an allocation of it.
type party struct {
	session   string
	row       *Row  // nil until something is charged
	processes int   // how many it has on the device
	weight    int64 // share × milliseconds of its allocation since energy was divided
	measured  bool  // the use of some process is known
	use       int64 // Σ of the known uses, in ten-thousandths of a millisecond
	memory    Bytes
	hasMemory bool // the memory of some process is known
}

type parties []*party

// of finds or adds the party of a process: its session, or others unless it is ours.
func (ps *parties) of(session string, ours bool) *party {
	if !ours {
		session = Others
	}
	i := slices.IndexFunc(*ps, func(p *party) bool { return p.session == session })
	if i < 0 {
		i, *ps = len(*ps), append(*ps, &party{session: session})
	}
	return (*ps)[i]
}

func (a *Accounts) parties(s Sample, iv interval, holders Holders) (list parties) {
	list.of("", false)
	for _, r := range a.state.Rows {
		if r.Device == iv.device.UUID && r.Session != Others && r.Session != Idle && r.Session != Unattributed {
			p := list.of(r.Session, true)
			p.row, p.weight = r, r.Weight
		}
	}
	for _, process := range unique(s.Processes, iv.device.UUID) {
		list.of(holders.Of(process)).add(process, iv.covered, s.At.Boot)
	}
	return list
}

// addEnded counts for each party the processes that ended since the last sample. The use of those whose session is
// unknown is divided by allocation; guessed reports whether there was any. The part for what is not allocated is
// dropped.
func (a *Accounts) addEnded(parties parties, s Sample, iv interval, holders Holders) (_ parties, guessed bool) {
	var unclaimed int64
	for _, e := range s.Ended {
		if e.Device != iv.device.UUID {
			continue
		}
		use := min(int64(max(0, e.Busy)/time.Millisecond), iv.covered) * fullUtil
		if !e.Known {
			unclaimed += use
			continue
		}
		p := parties.of(holders.Of(ProcessSample{Container: e.Container}))
		p.use += use
		if e.Peak != nil && p.session != Others {
			a.pay(iv, p, Counters{VRAMPeak: max(0, *e.Peak)})
		}
	}
	if unclaimed == 0 {
		return parties, false
	}
	for i, part := range split(unclaimed, allocated(iv.ms, parties))[:len(parties)] {
		parties[i].use += part
		guessed = guessed || part > 0
	}
	return parties, guessed
}

// add counts a process, busy at most as long as it exists: a driver may report an earlier process with its number.
func (p *party) add(process ProcessSample, covered int64, now time.Duration) {
	p.processes++
	if process.Util != nil {
		p.measured = true
		use := int64(clamp(*process.Util)) * covered
		if process.Start > 0 {
			age := now.Milliseconds() - int64(process.Start)*10
			use = min(use, max(0, age)*fullUtil)
		}
		p.use += use
	}
	if process.Memory != nil {
		p.hasMemory = true
		p.memory += max(0, *process.Memory)
	}
}

const fullUtil = 10000

func clamp(util int) int { return min(max(util, 0), fullUtil) }

func (a *Accounts) bookDevice(s Sample, sample DeviceSample, holders Holders) []Live {
	d := a.device(sample.UUID)
	iv := a.interval(d, s, sample)
	parties := a.parties(s, iv, holders)
	parties, guessed := a.addEnded(parties, s, iv, holders)
	uses, how := divideUse(iv, parties)
	if guessed && how == measured {
		how = divided
	}
	a.bookBusy(iv, parties, uses)
	memories, estimated := divideMemory(iv, parties)
	a.bookMemory(iv, parties, memories)
	if estimated && how == measured {
		how = divided
	}
	a.bookTime(parties, iv, how)
	a.bookEnergy(iv, s.At, parties, uses, how)
	d.At, d.Epoch = s.At, s.Epoch
	return live(iv, parties, uses, memories, how)
}

// pay charges a party, and opens no row for a zero charge.
func (a *Accounts) pay(iv interval, p *party, d Counters) {
	if d == (Counters{}) {
		return
	}
	if p.row == nil {
		p.row = a.row(p.session, iv.device.UUID)
	}
	a.charge(p.row, d)
}

func withRest(parties []*party) []*party {
	return append(slices.Clip(parties), &party{session: Unattributed})
}

// uses has one entry more than parties, for unattributed use.
func (a *Accounts) bookBusy(iv interval, parties []*party, uses []int64) {
	var total int64
	for _, use := range uses {
		total += use
	}
	total += iv.device.Carry
	iv.device.Carry = total % fullUtil
	parts := split(total/fullUtil, uses)
	for i, p := range withRest(parties) {
		a.pay(iv, p, Counters{BusyGPUMs: parts[i]})
	}
	iv.device.Counted.BusyGPUMs += total / fullUtil
}

// memories has one entry more than parties, for unattributed use.
func (a *Accounts) bookMemory(iv interval, parties []*party, memories []int64) {
	var total Bytes
	for i, p := range withRest(parties) {
		amount := Bytes(memories[i])
		total += amount
		a.pay(iv, p, Counters{VRAM: Held(amount, iv.held), VRAMPeak: amount})
	}
	iv.device.Counted.Add(Counters{VRAM: Held(total, iv.held), VRAMPeak: total})
}

func (a *Accounts) bookTime(parties []*party, iv interval, how quality) {
	for _, p := range parties {
		if p.row == nil || p.row.Pending == 0 {
			continue
		}
		known := min(p.row.Pending, iv.covered)
		c := Counters{GapMs: p.row.Pending - known}
		switch how {
		case measured:
			c.CoveredMs = known
		case divided:
			c.EstimatedMs = known
		default:
			c.GapMs += known
		}
		p.row.Pending = 0
		a.charge(p.row, c)
	}
}

func live(iv interval, parties []*party, uses, memories []int64, how quality) []Live {
	var list []Live
	for i, p := range parties {
		if p.session == Others && p.processes == 0 {
			continue
		}
		l := Live{Session: p.session, Device: iv.device.UUID, Estimated: how == divided}
		if iv.covered > 0 && how != unknown {
			l.Util = new(int(uses[i] / iv.covered))
		}
		if p.processes == 0 && !iv.sample.Blind || p.hasMemory || memories[i] > 0 {
			l.Memory = new(Bytes(memories[i]))
		}
		list = append(list, l)
	}
	return list
}
