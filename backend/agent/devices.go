package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// books is what the queue asks about devices before it plans: the second book,
// beside what it has promised itself.
type books interface {
	// now returns what is known of the devices at this moment. It never waits.
	now() deviceBook
}

// deviceBook is what is known of the machine's devices. The zero book is that
// of a machine without devices.
type deviceBook struct {
	// Devices is the inventory in the order of their index. A device that is lost
	// says so; one that is not listed any more stays while somebody holds it.
	Devices []gpu.Device
	// Recent holds the samples of the last while, the newest last.
	Recent []gpu.Sample
	// Text says in words why devices are missing or cannot be measured.
	Text string
	// Unread are the devices of which nobody knows now what is free: the last
	// try to sample them failed, or was too long ago. Nothing of them may be
	// promised. WhyUnread says in a sentence what went wrong; may be empty.
	Unread    []gpu.UUID
	WhyUnread string
	// Unlisted means that the inventory was never told, so that it may yet have
	// what a session asks for.
	Unlisted bool
}

// recentFor is how long a sample counts as what is true now, and so for how
// long memory that a foreign process gave back is still known as used.
const recentFor = 15 * time.Second

// inventoryEvery is how often the devices are listed anew: a driver may be
// installed, or a device may fall off the bus, while the agent runs.
const inventoryEvery = time.Minute

// devices knows what the machine has and what was measured of it.
type devices struct {
	source  gpu.Source
	moment  func() gpu.Moment
	changed chan struct{} // of capacity 1: who holds devices changed

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
	sight   sight
	savedAt gpu.Moment // when the tracks were stored
}

var _ books = (*devices)(nil)

func newDevices(source gpu.Source, moment func() gpu.Moment) *devices {
	if moment == nil {
		moment = ownMoment()
	}
	if source == nil {
		source = gpu.Empty{Now: moment}
	}
	return &devices{
		source: source, moment: moment, changed: make(chan struct{}, 1),
		foreign: map[gpu.UUID]gpu.Foreign{}, tracks: map[gpu.UUID]*track{}, lost: map[gpu.UUID]lostDevice{},
		text: "The devices were not looked for yet.",
	}
}

// ownMoment is a clock for an agent that was given none. It cannot tell time
// suspended from time awake, and each of its runs counts as a boot of its own.
func ownMoment() func() gpu.Moment {
	origin, boot := time.Now(), randomHex()
	return func() gpu.Moment {
		now := time.Now()
		return gpu.Moment{BootID: boot, Boot: now.Sub(origin), Awake: now.Sub(origin), Wall: now.Round(0)}
	}
}

func (d *devices) now() deviceBook {
	at := d.moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	unread, why := d.unread(at)
	return deviceBook{Devices: d.all(), Recent: fresh(d.recent, at), Text: d.text, Unread: unread, WhyUnread: why,
		Unlisted: !d.listed}
}

// fresh returns those samples that still say what is true. samples is in the
// order of time.
func fresh(samples []gpu.Sample, at gpu.Moment) []gpu.Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s gpu.Sample) bool {
		return s.At.BootID != at.BootID || at.Boot-s.At.Boot > recentFor
	})
}

// due reports whether it is time to list the devices anew.
func (d *devices) due() bool {
	at := d.moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.looked.BootID != at.BootID || at.Boot-d.looked.Boot >= inventoryEvery
}

// look lists the devices anew. held are those that sessions were granted.
func (d *devices) look(ctx context.Context, held []gpu.UUID) error {
	list, err := d.source.Inventory(ctx)
	if err != nil && ctx.Err() != nil {
		return err // it was given up, and nothing is known of the devices
	}
	at := d.moment()
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

// look lists the devices anew if it is time to, and tells the queue of a change.
func (a *Agent) look(ctx context.Context, live []session.Session) {
	d := a.devices
	if !d.due() {
		return
	}
	before := d.now().Devices
	look := func(ctx context.Context) error { return d.look(ctx, heldDevices(live)) }
	if err := engine.Within(ctx, a.limits.Call, "inventory", look); err != nil && ctx.Err() == nil {
		a.log.Debug("the devices cannot be listed", "err", err) // the board says it
	}
	after := d.now().Devices
	if slices.EqualFunc(before, after, func(x, y gpu.Device) bool {
		return x.UUID == y.UUID && len(x.Instances) == len(y.Instances) && (x.Lost == nil) == (y.Lost == nil)
	}) {
		return
	}
	_ = a.askAttachment(ctx) // it is asked again when the engine answers
	a.rouse()
}

// keep takes a sample. It reports whether the queue must know: a device was lost
// or is back, can be read again or not any more, or memory that no session holds
// changed by much.
func (d *devices) keep(s gpu.Sample, live []gpu.Live) (news bool) {
	const worth = 64 * gpu.MiB
	d.mu.Lock()
	defer d.mu.Unlock()
	before, _ := d.unread(s.At)
	news = d.miss(s)
	d.recent, d.live, d.text = append(fresh(d.recent, s.At), s), live, strings.Join(s.Lost, " ")
	d.sight.read(s)
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

// lose takes note that a sample could not be had. It reports whether that, or
// the reason, is news.
func (d *devices) lose(err error) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text, d.live = "The devices cannot be measured: "+err.Error(), nil
	return d.sight.fail(err)
}

// any reports whether the machine has devices, or lost one.
func (d *devices) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.list)+len(d.lost) > 0
}

// loads is what a session makes of each device that it holds.
func (d *devices) loads(grants []gpu.Grant, id session.ID) []session.DeviceLoad {
	if len(grants) == 0 {
		return nil
	}
	at := d.moment()
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
