// Package devices finds the machine's devices, measures them and keeps their history. It shows on sessions what happens
// to their devices.
//
// # The guard
//
// If nothing stronger limits a session to its share of a device's memory, the guard checks each sample. It warns at
// nine tenths and applies its policy to sessions that stay above the share for two samples. Unknown values never count
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
	// Devices is the inventory in the order of their index, with lost devices and unlisted ones that are held.
	Devices []gpu.Device
	Recent  []gpu.Sample             // the newest last
	Uses    []gpu.Live               // of each session and device, by the newest sample
	Foreign map[gpu.UUID]gpu.Foreign // what programs outside of sessions use
	Text    string                   // why devices are missing or cannot be measured
	// Unread are the devices whose free memory is unknown, of which nothing may be allocated. WhyUnread is the reason,
	// in a sentence; may be empty.
	Unread    []gpu.UUID
	WhyUnread string
	Unlisted  bool // there was no inventory yet, so it may still have what a session asks for
}

// recentFor is how long a sample counts as current, and memory that a foreign process freed still counts as used.
const recentFor = 15 * time.Second

// inventoryEvery is the pause between two inventories, since drivers may be installed and devices fail meanwhile.
const inventoryEvery = time.Minute

// Devices knows what the machine has and what was measured of it. Its methods are safe for concurrent use.
type Devices struct {
	Source gpu.Source
	Moment func() gpu.Moment

	mu      sync.Mutex // guards everything below
	list    []gpu.Device
	looked  gpu.Moment   // when list was read; zero: never
	recent  []gpu.Sample // the newest last
	foreign map[gpu.UUID]gpu.Foreign
	live    []gpu.Live // of the newest sample
	tracks  map[gpu.UUID]*track
	text    string // why there are no devices or samples
	listed  bool   // list was read at least once
	lost    map[gpu.UUID]lostDevice
	reading reading
	savedAt gpu.Moment // when the tracks were stored
}

// New returns the devices of a source; nil: the machine has none. moment reads its clocks.
func New(source gpu.Source, moment func() gpu.Moment) *Devices {
	if source == nil {
		source = gpu.Empty{Now: moment}
	}
	return &Devices{
		Source: source, Moment: moment,
		foreign: map[gpu.UUID]gpu.Foreign{}, tracks: map[gpu.UUID]*track{}, lost: map[gpu.UUID]lostDevice{},
		text: "The devices were not looked for yet.", reading: reading{tells: map[gpu.UUID]bool{}},
	}
}

// OwnMoment is the default clock. It counts time asleep as awake, and each run of the agent as a boot.
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

// fresh returns the samples that are still current. samples is in the order of time.
func fresh(samples []gpu.Sample, at gpu.Moment) []gpu.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s gpu.Sample) bool {
		return s.At.BootID != at.BootID || at.Boot-s.At.Boot > recentFor
	})
}

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
		return err // it was cancelled, and nothing is known of the devices
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
		d.text = "No driver on this machine reports a device."
	}
	return nil
}

// Add takes a sample. It reports whether the queue must know that devices, or memory outside of sessions, changed.
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

// Fail notes that sampling failed. It reports whether that, or the reason, is news.
func (d *Devices) Fail(err error) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text, d.live = "The devices cannot be measured: "+err.Error(), nil
	return d.reading.fail(err)
}

func (d *Devices) Any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.list)+len(d.lost) > 0
}

// Loads is what a session uses of each device that it holds.
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

// reading is whether the drivers report what is free. Otherwise nothing is allocated, as others may use the devices.
type reading struct {
	failed bool              // the last sample failed
	why    string            // in a sentence; empty: it did not fail, or the reason is unknown
	tells  map[gpu.UUID]bool // devices that have reported what is free
}

func (r *reading) read(sample gpu.Sample) {
	r.failed, r.why = false, ""
	for _, d := range sample.Devices {
		if d.MemoryFree != nil {
			r.tells[d.UUID] = true
		}
	}
}

// fail notes that sampling failed. Of an error that names the next attempt, it keeps only the part that stays the same.
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

// unread are the listed devices that are not lost and whose free memory is unknown at a moment, and why. A device that
// never reports it, such as one that shares its memory with the processors, is not among them. The caller holds d.mu.
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
