package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	rememberEvery = time.Minute
	// keySeries and keyTrack begin the keys of what is remembered: of a session
	// one idle.Point for five minutes, of a device one point for a minute.
	keySeries = "idle/series/"
	keyTrack  = "track/"
	// forgetAtOnce is more than is ever stored of one session.
	forgetAtOnce = 10_000
)

// memory is what one checkpoint stores besides the accounts.
type memory struct {
	rows   map[string]any
	forget []span // removed before rows are stored
	stored func() // is called when it is
}

// span is a range of keys, the first included.
type span struct{ from, to string }

// put stores m.
func (m memory) put(tx *store.Tx) error {
	for _, s := range m.forget {
		if _, err := tx.PruneAccounts(s.from, s.to, forgetAtOnce); err != nil {
			return err
		}
	}
	for key, value := range m.rows {
		if err := tx.PutAccount(key, value); err != nil {
			return err
		}
	}
	return nil
}

func rememberKey(prefix, of string, at time.Time) string {
	return fmt.Sprintf("%s%s/%020d", prefix, of, max(0, at.Unix()))
}

// everyKey are all keys of one session or device.
func everyKey(prefix, of string) span { return span{prefix + of + "/", prefix + of + "0"} } // 0 follows /

// memories gathers what is to be stored at a moment; nothing but the traffic
// until a minute has passed, unless all is wanted.
func (a *Agent) memories(now gpu.Moment, all bool) memory {
	m := memory{rows: map[string]any{keyTraffic: a.idle.traffics()}, stored: func() {}}
	w, d := a.idle, a.devices
	w.mu.Lock()
	due := all || w.savedAt.BootID != now.BootID || now.Boot-w.savedAt.Boot >= rememberEvery
	if due {
		w.remember(now, &m)
	}
	w.mu.Unlock()
	if !due {
		return m
	}
	d.mu.Lock()
	d.remember(now, &m)
	d.mu.Unlock()
	series := m.stored
	m.stored = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		series()
		w.savedAt = now
	}
	return m
}

// remember gathers the series of sessions. w.mu is held.
func (w *idleWatch) remember(now gpu.Moment, m *memory) {
	saved := map[*watchedSession]time.Time{}
	for id, k := range w.known {
		if slices.Contains(w.gone, id) {
			continue
		}
		every := everyKey(keySeries, string(id))
		if k.saved.IsZero() {
			m.forget = append(m.forget, every) // the clock was set, and with it every key
		} else {
			m.forget = append(m.forget, span{every.from, rememberKey(keySeries, string(id), now.Wall.Add(-idle.Reach))})
		}
		for _, p := range k.series.Slots(k.saved) {
			m.rows[rememberKey(keySeries, string(id), idle.SlotOf(p.From))] = p
		}
		saved[k] = k.series.Last().From
	}
	for _, id := range w.over {
		m.forget = append(m.forget, everyKey(keySeries, string(id)))
	}
	over := len(w.over)
	m.stored = func() {
		for k, at := range saved {
			k.saved = at
		}
		w.over = w.over[min(over, len(w.over)):]
	}
}

// remember gathers the last point of each minute of the history of devices
// that is not stored yet, and of the one before. d.mu is held.
func (d *devices) remember(now gpu.Moment, m *memory) {
	for id, t := range d.tracks {
		m.forget = append(m.forget, span{everyKey(keyTrack, string(id)).from,
			rememberKey(keyTrack, string(id), now.Wall.Add(-keepTracks))})
		for _, p := range t.since(now.Wall.Add(-2 * rememberEvery).Truncate(time.Minute)) {
			m.rows[rememberKey(keyTrack, string(id), p.At.Truncate(time.Minute))] = p
		}
	}
}

// recall goes on with what is stored. What cannot be read, because another
// version wrote it, is left out.
func (a *Agent) recall(live []session.Session) error {
	w, d := a.idle, a.devices
	now := d.moment()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range live {
		w.of(s.ID).recallWarnings(s.Warnings)
	}
	var last gpu.Moment
	if _, err := a.store.Account(keyCheckpoint, &last); err != nil {
		return err
	}
	if last.BootID == now.BootID {
		w.at = last // a machine that slept meanwhile did not idle
	}
	err := a.store.EachAccount(keySeries, keySeries+"~", func(key string, data []byte) error {
		id, _, _ := strings.Cut(strings.TrimPrefix(key, keySeries), "/")
		p, err := decode[idle.Point](data)
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
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return a.store.EachAccount(keyTrack, keyTrack+"~", func(key string, data []byte) error {
		id, minute, _ := strings.Cut(strings.TrimPrefix(key, keyTrack), "/")
		p, err := decode[session.DevicePoint](data)
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
