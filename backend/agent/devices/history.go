package devices

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/session"
	"slipway/backend/store"
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
		"List the devices. A device that was removed or lost its driver is not listed.")
}

// The history of devices is stored with the accounts, so a crash costs a minute of it.
const (
	keyTrack   = "track/" // begins the keys of the points of a device, one a minute
	savedEvery = time.Minute
)

// Extra gathers the last point of each minute of the history of devices that is not stored yet, and of the one before.
func (d *Devices) Extra(now gpu.Moment, all bool) accounts.Extra {
	extra := accounts.Extra{Rows: map[string]any{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !all && d.savedAt.BootID == now.BootID && now.Boot-d.savedAt.Boot < savedEvery {
		return extra
	}
	for id, t := range d.tracks {
		old := accounts.KeysOf(keyTrack, string(id))
		old.To = accounts.KeyAt(keyTrack, string(id), now.Wall.Add(-keepTracks))
		extra.Remove = append(extra.Remove, old)
		for _, p := range t.since(now.Wall.Add(-2 * savedEvery).Truncate(time.Minute)) {
			extra.Rows[accounts.KeyAt(keyTrack, string(id), p.At.Truncate(time.Minute))] = p
		}
	}
	extra.Stored = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.savedAt = now
	}
	return extra
}

// Resume restores the stored history, except what cannot be read because another version wrote it.
func (d *Devices) Resume(books *store.Store) error {
	now := d.Moment()
	d.mu.Lock()
	defer d.mu.Unlock()
	return books.EachAccount(keyTrack, keyTrack+"~", func(key string, data []byte) error {
		id, minute, _ := strings.Cut(strings.TrimPrefix(key, keyTrack), "/")
		var p session.DevicePoint
		err := json.Unmarshal(data, &p)
		at, atErr := strconv.ParseInt(minute, 10, 64)
		if err != nil || atErr != nil || now.Wall.Sub(time.Unix(at, 0)) > keepTracks || p.At.After(now.Wall) {
			return nil
		}
		if d.tracks[gpu.UUID(id)] == nil {
			d.tracks[gpu.UUID(id)] = &track{}
		}
		d.tracks[gpu.UUID(id)].add(p)
		return nil
	})
}
