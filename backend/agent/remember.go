package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/idle"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// What the idle checks know and the history of devices outlive the agent: an
// agent that is started anew every hour must not be blind to a session that has
// been idle for a day, nor take one that worked until a minute ago for idle
// since its start. They are stored with the accounts, once a minute and when
// the agent stops, so that a crash costs a minute of them.
const (
	savedEvery = time.Minute
	// keyTraffic is where the traffic of all sessions is stored, with every
	// checkpoint; keySeries and keyTrack begin the keys of what is stored once a
	// minute: of a session one idle.Point for five minutes, of a device one point
	// for a minute.
	keyTraffic = "idle/traffic"
	keySeries  = "idle/series/"
	keyTrack   = "track/"
)

// Extra gathers the traffic, and once a minute the series of sessions.
func (w *idleWatch) Extra(now gpu.Moment, all bool) accounts.Extra {
	extra := accounts.Extra{Rows: map[string]any{keyTraffic: w.traffics()}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !all && w.savedAt.BootID == now.BootID && now.Boot-w.savedAt.Boot < savedEvery {
		return extra
	}
	saved := map[*watchedSession]time.Time{}
	for id, k := range w.known {
		if slices.Contains(w.gone, id) {
			continue
		}
		every := accounts.KeysOf(keySeries, string(id))
		if !k.saved.IsZero() { // else the clock was set, and with it every key
			every.To = accounts.KeyAt(keySeries, string(id), now.Wall.Add(-idle.Reach))
		}
		extra.Remove = append(extra.Remove, every)
		for _, p := range k.series.Slots(k.saved) {
			extra.Rows[accounts.KeyAt(keySeries, string(id), idle.SlotOf(p.From))] = p
		}
		saved[k] = k.series.Last().From
	}
	for _, id := range w.over {
		extra.Remove = append(extra.Remove, accounts.KeysOf(keySeries, string(id)))
	}
	over := len(w.over)
	extra.Stored = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for k, at := range saved {
			k.saved = at
		}
		w.over = w.over[min(over, len(w.over)):]
		w.savedAt = now
	}
	return extra
}

// Extra gathers the last point of each minute of the history of devices that is
// not stored yet, and of the one before.
func (d *devices) Extra(now gpu.Moment, all bool) accounts.Extra {
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

// resume goes on with what is stored. What cannot be read, because another
// version wrote it, is left out. last is when it was stored.
func (w *idleWatch) resume(books *store.Store, now, last gpu.Moment, live []session.Session) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range live {
		w.of(s.ID).recallWarnings(s.Warnings)
	}
	if last.BootID == now.BootID {
		w.at = last // a machine that slept meanwhile did not idle
	}
	return books.EachAccount(keySeries, keySeries+"~", func(key string, data []byte) error {
		id, _, _ := strings.Cut(strings.TrimPrefix(key, keySeries), "/")
		var p idle.Point
		err := json.Unmarshal(data, &p)
		k := w.known[session.ID(id)]
		switch {
		case k == nil:
			if !slices.Contains(w.over, session.ID(id)) {
				w.over = append(w.over, session.ID(id))
			}
		case err == nil:
			k.series.Add(p)
			k.saved = p.From
			k.point = idle.Point{WorkAt: p.WorkAt, BusyAt: p.BusyAt, Busy: p.Busy}
		}
		return nil
	})
}

// resume goes on with the history that is stored. What cannot be read, because
// another version wrote it, is left out.
func (d *devices) resume(books *store.Store) error {
	now := d.moment()
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

// recallWarnings takes up since when ends are announced: a warning outlives the
// agent, and so does the time since it was given.
func (k *watchedSession) recallWarnings(warnings []session.Warning) {
	for _, warning := range warnings {
		if checker, ok := strings.CutPrefix(string(warning.Code), codeIdlePrefix); ok {
			k.announced[session.IdleChecker(checker)] = warning.At
		}
	}
}
