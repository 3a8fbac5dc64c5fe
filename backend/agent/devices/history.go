package devices

import (
	"fmt"
	"math"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// keepTracks is how long the history of a device is kept.
const keepTracks = 24 * time.Hour

// track is the history of one device: every sample of the last hour, one each
// minute before. There are thousands of points of each device, so they are packed.
type track struct {
	points []trackPoint
}

// trackPoint is a [session.DevicePoint]. A number that was not read is unread.
type trackPoint struct {
	at                int64 // nanoseconds since the epoch
	memory            gpu.Bytes
	power             int32 // milliwatts
	util, temperature int16 // permyriad; degrees
}

const unread = math.MinInt16

func (t *track) add(p session.DevicePoint) {
	t.points = append(t.points, pack(p))
	gone := t.after(p.At.Add(-keepTracks - 1))
	t.points = t.points[gone:]
	// One point crosses the border at a time: looking at the pair that has just
	// left the dense part is enough.
	at := t.after(p.At.Add(-time.Hour - 1))
	if at >= 2 && time.Duration(t.points[at-1].at-t.points[at-2].at) < time.Minute {
		t.points = slices.Delete(t.points, at-1, at)
	}
}

// since returns the points that are newer than a time.
func (t *track) since(since time.Time) []session.DevicePoint {
	newer := t.points[t.after(since):]
	points := make([]session.DevicePoint, len(newer))
	for i, p := range newer {
		points[i] = p.unpack()
	}
	return points
}

// after is the place of the first point that is newer than a time.
func (t *track) after(border time.Time) int {
	at, _ := slices.BinarySearchFunc(t.points, border, func(p trackPoint, border time.Time) int {
		if time.Unix(0, p.at).After(border) {
			return 1
		}
		return -1
	})
	return at
}

func pack(p session.DevicePoint) trackPoint {
	packed := trackPoint{at: p.At.UnixNano(), memory: unread, power: unread, util: unread, temperature: unread}
	if p.Util != nil {
		packed.util = int16(min(*p.Util, math.MaxInt16))
	}
	if p.MemoryUsed != nil {
		packed.memory = *p.MemoryUsed
	}
	if p.Power != nil {
		packed.power = int32(min(*p.Power, math.MaxInt32))
	}
	if p.Temperature != nil {
		packed.temperature = int16(min(*p.Temperature, math.MaxInt16))
	}
	return packed
}

func (p trackPoint) unpack() session.DevicePoint {
	point := session.DevicePoint{At: time.Unix(0, p.at).UTC()}
	point.Util, point.MemoryUsed = known[int](p.util), known[gpu.Bytes](p.memory)
	point.Power, point.Temperature = known[gpu.MilliWatt](p.power), known[int](p.temperature)
	return point
}

// known is a packed number, nil where it was not read.
func known[T, P int | int16 | int32 | gpu.Bytes | gpu.MilliWatt](packed P) *T {
	if packed == unread {
		return nil
	}
	return new(T(packed))
}

// History returns the points of a device that are newer than a time. It fails
// with device_read_not-found.
func (d *Devices) History(device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tracks[device]; t != nil {
		return t.since(since), nil
	}
	if slices.ContainsFunc(d.list, func(x gpu.Device) bool { return x.UUID == device }) {
		return []session.DevicePoint{}, nil
	}
	return nil, session.NewError(session.CodeDeviceNotFound, fmt.Sprintf("The machine has no device %s.", device),
		"List the devices: one that was removed, or whose driver is gone, is not there.")
}
