// Package devices finds the machine's devices, measures them and keeps their history. It shows on sessions what becomes
// of the devices that they hold.
//
// # The guard
//
// Where nothing stronger keeps a session to its share of a device's memory, the guard looks at each sample: it warns at
// nine tenths and acts by its policy on what stays above the share for two samples. What is not known is never held
// against a session.
package devices

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// State is what is known of the machine's devices at a moment. The zero State is that of a machine without devices.
type State struct {
	// Devices is the inventory in the order of their index. A device that is lost says so; one that is not listed any
	// more stays while somebody holds it.
	Devices []gpu.Device
	// Recent holds the samples of the last while, the newest last.
	Recent []gpu.Sample
	// Uses are what each session makes of each device, by the newest sample, and Foreign is what is used by what is no
	// session.
	Uses    []gpu.Live
	Foreign map[gpu.UUID]gpu.Foreign
	// Text says in words why devices are missing or cannot be measured.
	Text string
	// Unread are the devices of which nobody knows now what is free: the last try to sample them failed, or was too
	// long ago. Nothing of them may be promised. WhyUnread says in a sentence what went wrong; may be empty.
	Unread    []gpu.UUID
	WhyUnread string
	// Unlisted means that the inventory was never told, so that it may yet have what a session asks for.
	Unlisted bool
}

// recentFor is how long a sample counts as what is true now, and so for how long memory that a foreign process gave
// back is still known as used.
const recentFor = 15 * time.Second

// inventoryEvery is how often the devices are listed again: a driver may be installed, or a device may fall off the
// bus, while the agent runs.
const inventoryEvery = time.Minute

// Devices knows what the machine has and what was measured of it. Its methods are safe for concurrent use.
type Devices struct {
	Source gpu.Source
	Moment func() gpu.Moment

	mu      sync.Mutex // guards everything below
	list    []gpu.Device
	looked  gpu.Moment   // when list was asked for; zero: never
	recent  []gpu.Sample // the newest last
	foreign map[gpu.UUID]gpu.Foreign
	live    []gpu.Live // of the newest sample
	tracks  map[gpu.UUID]*track
	text    string // why there are no devices or samples
	listed  bool   // list was told at least once
	lost    map[gpu.UUID]lostDevice
	reading reading
	savedAt gpu.Moment // when the tracks were stored
}

// New returns the devices of a source, of which nothing is known yet. nil: the machine has none. moment reads its
// clocks.
func New(source gpu.Source, moment func() gpu.Moment) *Devices {
	if source == nil {
		source = gpu.Empty{Now: moment}
	}
	return &Devices{
		Source: source, Moment: moment,
		foreign: map[gpu.UUID]gpu.Foreign{}, tracks: map[gpu.UUID]*track{}, lost: map[gpu.UUID]lostDevice{},
		text: "The devices were not looked for yet.",
	}
}

// OwnMoment is a clock for an agent that was given none. It cannot tell time suspended from time awake, and each of its
// runs counts as a boot of its own.
func OwnMoment() func() gpu.Moment {
	origin, boot := time.Now(), rand.Text()
	return func() gpu.Moment {
		now := time.Now()
		return gpu.Moment{BootID: boot, Boot: now.Sub(origin), Awake: now.Sub(origin), Wall: now.Round(0)}
	}
}

// Now returns what is known at this moment. It never waits.
func (d *Devices) Now() State {
	at := d.Moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	unread, why := d.unread(at)
	return State{Devices: d.all(), Recent: fresh(d.recent, at), Uses: slices.Clone(d.live),
		Foreign: maps.Clone(d.foreign), Text: d.text, Unread: unread, WhyUnread: why, Unlisted: !d.listed}
}

// fresh returns those samples that still say what is true. samples is in the order of time.
func fresh(samples []gpu.Sample, at gpu.Moment) []gpu.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s gpu.Sample) bool {
		return s.At.BootID != at.BootID || at.Boot-s.At.Boot > recentFor
	})
}

// due reports whether it is time to list the devices again.
func (d *Devices) due() bool {
	at := d.Moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.looked.BootID != at.BootID || at.Boot-d.looked.Boot >= inventoryEvery
}

// Look lists the devices again. held are those that sessions were granted.
func (d *Devices) Look(ctx context.Context, held []gpu.UUID) error {
	list, err := d.Source.Inventory(ctx)
	if err != nil && ctx.Err() != nil {
		return err // it was given up, and nothing is known of the devices
	}
	at := d.Moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looked = at
	if err != nil {
		d.text = "The devices cannot be listed: " + err.Error()
		return err
	}
	before := d.all()
	d.list, d.text, d.listed = list, "", true
	d.judge(before, held, at)
	if len(list) == 0 {
		d.text = "The machine has no devices that a driver tells of."
	}
	return nil
}

// Add takes a sample. It reports whether the queue must know: a device was lost or is back, can be read again or not
// any more, or memory that no session holds changed by much.
func (d *Devices) Add(s gpu.Sample, live []gpu.Live) (news bool) {
	const worth = 64 * gpu.MiB
	d.mu.Lock()
	defer d.mu.Unlock()
	before, _ := d.unread(s.At)
	news = d.miss(s)
	d.recent, d.live, d.text = append(fresh(d.recent, s.At), s), live, strings.Join(s.Lost, " ")
	d.reading.read(s)
	now, _ := d.unread(s.At)
	news = news || !slices.Equal(before, now)
	for _, device := range s.Devices {
		var used gpu.Bytes
		for _, l := range live {
			if l.Device == device.UUID && (l.Session == gpu.Others || l.Session == gpu.Unattributed) &&
				l.Memory != nil {
				used += *l.Memory
			}
		}
		before := d.foreign[device.UUID].Peak()
		d.foreign[device.UUID] = d.foreign[device.UUID].Observe(s.At.Boot, used)
		if change := d.foreign[device.UUID].Peak() - before; change >= worth || change <= -worth {
			news = true
		}
		if d.tracks[device.UUID] == nil {
			d.tracks[device.UUID] = &track{}
		}
		d.tracks[device.UUID].add(session.DevicePoint{
			At: s.At.Wall.UTC(), Util: device.Util, MemoryUsed: device.MemoryUsed, Power: device.Power,
			Temperature: device.Temperature,
		})
	}
	return news
}

// Fail takes note that a sample could not be had. It reports whether that, or the reason, is news.
func (d *Devices) Fail(err error) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text, d.live = "The devices cannot be measured: "+err.Error(), nil
	return d.reading.fail(err)
}

// Any reports whether the machine has devices, or lost one.
func (d *Devices) Any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.list)+len(d.lost) > 0
}

// Loads is what a session makes of each device that it holds.
func (d *Devices) Loads(grants []gpu.Grant, id session.ID) []session.DeviceLoad {
	if len(grants) == 0 {
		return nil
	}
	at := d.Moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	recent := len(fresh(d.recent, at)) > 0
	var list []session.DeviceLoad
	for _, g := range grants {
		if slices.ContainsFunc(list, func(l session.DeviceLoad) bool { return l.Device == g.Device }) {
			continue
		}
		load := session.DeviceLoad{Device: g.Device, Instance: g.Instance}
		for _, l := range d.live {
			if recent && l.Session == string(id) && l.Device == g.Device {
				load.Util, load.Memory = l.Util, l.Memory
			}
		}
		list = append(list, load)
	}
	return list
}

// reading is whether the drivers tell what is free of their devices. What is promised is one book only: while the other
// is closed nothing is promised again, since a program outside of Slipway may have taken what the first calls free.
type reading struct {
	failed bool              // the last try to sample failed
	why    string            // in a sentence; empty: it did not fail, or nobody knows
	tells  map[gpu.UUID]bool // devices that have told what is free of them
}

// read takes note of a sample.
func (r *reading) read(sample gpu.Sample) {
	r.failed, r.why = false, ""
	for _, d := range sample.Devices {
		if d.MemoryFree == nil {
			continue
		}
		if r.tells == nil {
			r.tells = map[gpu.UUID]bool{}
		}
		r.tells[d.UUID] = true
	}
}

// fail takes note that a sample could not be had. Of an error that says when it is tried again only what does not
// change is kept.
func (r *reading) fail(err error) (news bool) {
	why := "Their drivers do not answer in time."
	var e *gpu.Error
	switch {
	case errors.As(err, &e):
		why = e.Message
	case !errors.Is(err, context.DeadlineExceeded):
		why = "They cannot be measured: " + err.Error() + "."
	}
	news = !r.failed || r.why != why
	r.failed, r.why = true, why
	return news
}

// unread are the devices of the list that are not lost and of which it is not known at a moment what is free, and why.
// A device that by its nature never tells, as one that shares its memory with the processors, is not among them. d.mu
// is held.
func (d *Devices) unread(at gpu.Moment) (unread []gpu.UUID, why string) {
	recent := fresh(d.recent, at)
	for _, device := range d.list {
		if _, lost := d.lost[device.UUID]; lost {
			continue
		}
		known := false
		if n := len(recent); n > 0 && !d.reading.failed {
			sample, sampled := recent[n-1].Device(device.UUID)
			known = sampled && (sample.MemoryFree != nil || sample.MemoryUsed != nil || !d.reading.tells[device.UUID])
		}
		if !known {
			unread = append(unread, device.UUID)
		}
	}
	slices.Sort(unread)
	return unread, d.reading.why
}
