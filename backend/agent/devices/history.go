package devices

import (
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

const keepTracks = 24 * time.Hour // of the history of a device

// track is the history of one device, the oldest point first: every sample of the last hour, one each minute before.
type track []session.DevicePoint

func (t *track) add(p session.DevicePoint) {
	*t = append(*t, p)
	*t = (*t)[t.after(p.At.Add(-keepTracks-1)):]
	// One point crosses the border at a time: looking at the pair that has just left the dense part is enough.
	at := t.after(p.At.Add(-time.Hour - 1))
	if at >= 2 && (*t)[at-1].At.Sub((*t)[at-2].At) < time.Minute {
		*t = slices.Delete(*t, at-1, at)
	}
}

func (t *track) since(since time.Time) []session.DevicePoint {
	return slices.Clone((*t)[t.after(since):])
}

func (t *track) after(border time.Time) int {
	at, _ := slices.BinarySearchFunc(*t, border, func(p session.DevicePoint, border time.Time) int {
		if p.At.After(border) {
			return 1
		}
		return -1
	})
	return at
}

// History returns the points of a device after a time. It fails with device_read_not-found.
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
