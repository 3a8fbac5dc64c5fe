package reclaim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/idle"
	"slipway/backend/session"
	"slipway/gpu"
)

// What is known of use is stored with the accounts: an agent that is restarted every hour must notice a session that
// has been idle for a day, and must not take one that worked until a minute ago for idle since the restart.
const (
	// keyTraffic is where the traffic of all sessions is stored, with every checkpoint. keySeries begins the keys of
	// the points of a session, one for five minutes, which are stored every savedEvery and when the agent stops.
	keyTraffic = "idle/traffic"
	keySeries  = "idle/series/"
	savedEvery = time.Minute
)

// Extra returns the traffic, and once a minute the series of sessions.
func (w *Watch) Extra(now gpu.Moment, all bool) accounts.Extra {
	w.mu.Lock()
	defer w.mu.Unlock()
	extra := accounts.Extra{Rows: map[string]any{keyTraffic: maps.Clone(w.used)}}
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

// Resume restores what was stored at last, except what cannot be read because another version wrote it.
func (w *Watch) Resume(now, last gpu.Moment, live []session.Session) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range live {
		w.of(s.ID).resumeWarnings(s.Warnings)
	}
	if last.BootID == now.BootID {
		w.at = last // time in which the machine slept meanwhile is not idle
	}
	return w.config.Records.EachAccount(keySeries, keySeries+"~", func(key string, data []byte) error {
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

// resumeWarnings restores from the warnings since when ends are announced.
func (k *watchedSession) resumeWarnings(warnings []session.Warning) {
	for _, warning := range warnings {
		for checker, code := range idleCodes {
			if warning.Code == code {
				k.announced[checker] = warning.At
			}
		}
	}
}
