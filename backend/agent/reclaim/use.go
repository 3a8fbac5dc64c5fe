package reclaim

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/idle"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
)

const (
	// jump is how far the wall clock may move away from time awake before all known times are shifted, because it was
	// set or the machine slept.
	jump        = 5 * time.Second
	bannerLasts = 5 * time.Second // after a banner, what terminals show may be it
	endedKept   = 20              // ended sessions that can still be simulated
)

// traffic is when a session was last used from outside. It is stored, as there is no use while the agent is down.
type traffic struct {
	Last  time.Time `json:"last,omitzero"`  // through a terminal or an app
	Input time.Time `json:"input,omitzero"` // by a person to a terminal
}

// Seen notes traffic, and whether it is a person's input.
func (w *Watch) Seen(id session.ID, input bool) {
	now := w.config.Clock.Now().UTC()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.used[id]
	t.Last = now
	if input {
		t.Input = now
	}
	w.used[id] = t
}

// shown notes output in a terminal, unless it is Slipway's own banner.
func (w *Watch) shown(id session.ID) {
	w.mu.Lock()
	banner := w.config.Clock.Since(w.of(id).bannerAt) < bannerLasts
	w.mu.Unlock()
	if !banner {
		w.Seen(id, false)
	}
}

// Sampled takes a sample of what a session uses of CPUs and memory.
func (w *Watch) Sampled(u session.Usage, grants session.Grants) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.of(u.Session)
	before := k.usageAt
	k.usageAt = u.At
	length := u.At.Sub(before)
	if before.IsZero() || length <= 0 || length > 2*idle.Every {
		return // what happened since then is unknown
	}
	if len(grants.CPUs) > 0 {
		k.point.CPU.Add(u.CPU*100/float64(len(grants.CPUs)), length)
	}
	if grants.Memory > 0 {
		k.point.Memory.Add(float64(u.Memory)*100/float64(grants.Memory), length)
	}
}

// DevicesUsed takes what sessions use of their devices. Estimates divide by allocation, so they show no use.
func (w *Watch) DevicesUsed(at gpu.Moment, live []session.Session, uses []gpu.Live) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range live {
		if s.Status != session.Running || len(s.Grants.GPUs) == 0 {
			continue
		}
		k := w.of(s.ID)
		length := at.Boot - k.deviceAt
		fits := k.deviceAt > 0 && length > 0 && length <= 2*idle.Every
		k.deviceAt = at.Boot
		var util, share float64
		var memory, granted gpu.Bytes
		utilKnown, memoryKnown := true, true
		for _, g := range s.Grants.GPUs {
			share, granted = share+float64(g.Share), granted+g.Memory
		}
		devices := map[gpu.UUID]bool{}
		for _, g := range s.Grants.GPUs {
			if devices[g.Device] {
				continue
			}
			devices[g.Device] = true
			i := slices.IndexFunc(uses,
				func(l gpu.Live) bool { return l.Session == string(s.ID) && l.Device == g.Device })
			if i < 0 {
				utilKnown, memoryKnown = false, false
				continue
			}
			if uses[i].Util == nil || uses[i].Estimated {
				utilKnown = false
			} else {
				util += float64(*uses[i].Util)
			}
			if uses[i].Memory == nil || uses[i].Estimated {
				memoryKnown = false
			} else {
				memory += *uses[i].Memory
			}
		}
		if util > 0 {
			k.point.WorkAt = at.Wall
		}
		if fits && utilKnown && share > 0 {
			k.point.GPU.Add(util*float64(gpu.WholeDevice)/100/share, length)
		}
		if fits && memoryKnown && granted > 0 {
			k.point.VRAM.Add(float64(memory)*100/float64(granted), length)
		}
	}
}

// turn completes the present points with what was seen inside the sessions.
func (w *Watch) turn(now gpu.Moment, running, live []session.Session, seen map[session.ID]activity) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slept := time.Duration(0)
	from := now.Wall.Add(-idle.Every)
	if !w.at.Wall.IsZero() && w.at.BootID == now.BootID {
		if d := now.Wall.Sub(w.at.Wall) - (now.Awake - w.at.Awake); d > jump || d < -jump {
			slept = d
		}
		from = w.at.Wall.Add(slept)
	}
	w.at = now
	if slept != 0 {
		w.shift(slept)
	}
	for _, s := range running {
		k := w.of(s.ID)
		p := k.point
		k.point = idle.Point{WorkAt: p.WorkAt, BusyAt: p.BusyAt, Busy: p.Busy}
		if p.From = from; s.StartedAt.After(from) {
			p.From = *s.StartedAt
		}
		if p.Length = now.Wall.Sub(p.From); p.Length <= 0 {
			continue
		}
		g := seen[s.ID]
		p.Known = g.known
		if g.busy != "" && g.busyAt.After(p.BusyAt) {
			p.Busy, p.BusyAt = g.busy, g.busyAt
		}
		k.point.Busy, k.point.BusyAt = p.Busy, p.BusyAt
		p.Traffic, p.Input = w.used[s.ID].Last, w.used[s.ID].Input
		k.series.Add(p)
	}
	w.forget(live)
}

// shift moves all known times by d. The caller holds w.mu.
func (w *Watch) shift(d time.Duration) {
	for id, k := range w.known {
		k.series.Shift(d)
		k.saved = time.Time{}
		idle.Move(d, &k.point.WorkAt, &k.point.BusyAt)
		for checker, at := range k.announced {
			k.announced[checker] = at.Add(d)
		}
		if t, ok := w.used[id]; ok {
			idle.Move(d, &t.Last, &t.Input)
			w.used[id] = t
		}
	}
}

// forget drops sessions that are no longer live, except the last few. The caller holds w.mu.
func (w *Watch) forget(live []session.Session) {
	alive := make(map[session.ID]bool, len(live))
	for _, s := range live {
		alive[s.ID] = true
	}
	maps.DeleteFunc(w.used, func(id session.ID, _ traffic) bool { return !alive[id] })
	for id := range w.known {
		if !alive[id] && !slices.Contains(w.gone, id) {
			w.gone, w.over = append(w.gone, id), append(w.over, id)
		}
	}
	for len(w.gone) > endedKept {
		delete(w.known, w.gone[0])
		w.gone = w.gone[1:]
	}
}

func (w *Watch) Checks(id session.ID) []session.IdleCheck {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.known[id]; k != nil {
		return k.checks
	}
	return nil
}

// usedBySSH takes what a guest reports of its ssh server.
func (w *Watch) usedBySSH(id session.ID, told session.SSHUse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.used[id]
	if told.Last.After(t.Last) {
		t.Last = told.Last
	}
	if told.Input.After(t.Input) {
		t.Input = told.Input
	}
	if t != (traffic{}) {
		w.used[id] = t
	}
}

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
		for _, checker := range checkers() {
			if warning.Code == checker.Code() {
				k.announced[checker] = warning.At
			}
		}
	}
}

// Terminal counts everything that passes a terminal as traffic, and frames of input as a person's.
func (w *Watch) Terminal(id session.ID, stream io.ReadWriteCloser) io.ReadWriteCloser {
	if stream == nil {
		return nil
	}
	return &watchedTerminal{ReadWriteCloser: stream, watch: w, id: id}
}

// App counts what passes an app as traffic.
func (w *Watch) App(id session.ID, conn net.Conn) net.Conn {
	if conn == nil {
		return nil
	}
	return &watchedConn{conn, w, id}
}

// File counts what is read from content as traffic, unless it is of no session.
func (w *Watch) File(id session.ID, content io.ReadCloser) io.ReadCloser {
	if id == "" {
		return content
	}
	return &watchedFile{content, w, id}
}

type watchedFile struct {
	io.ReadCloser
	watch *Watch
	id    session.ID
}

func (f *watchedFile) Read(p []byte) (int, error) { return f.watch.passed(f.id)(f.ReadCloser.Read(p)) }

type watchedConn struct {
	net.Conn
	watch *Watch
	id    session.ID
}

func (c *watchedConn) Read(p []byte) (int, error)  { return c.watch.passed(c.id)(c.Conn.Read(p)) }
func (c *watchedConn) Write(p []byte) (int, error) { return c.watch.passed(c.id)(c.Conn.Write(p)) }

// passed counts traffic if a read or write moved something, and returns its results.
func (w *Watch) passed(id session.ID) func(n int, err error) (int, error) {
	return func(n int, err error) (int, error) {
		if n > 0 {
			w.Seen(id, false)
		}
		return n, err
	}
}

type watchedTerminal struct {
	io.ReadWriteCloser
	watch   *Watch
	id      session.ID
	out, in frames
}

func (t *watchedTerminal) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	if n > 0 && t.out.feed(p[:n], terminal.FrameData) {
		t.watch.shown(t.id)
	}
	return n, err
}

func (t *watchedTerminal) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	if n > 0 && t.in.feed(p[:n], terminal.FrameInput) {
		t.watch.Seen(t.id, true)
	}
	return n, err
}

// frames finds frames of one type, which are a type, four bytes of length and a payload, in a stream split anywhere.
type frames struct {
	head []byte // of the current frame, while incomplete
	left uint32 // bytes of its payload that are still to come
}

// feed reports whether a frame of the type begins in p.
func (f *frames) feed(p []byte, wanted terminal.FrameType) (found bool) {
	const size = 5
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, uint32(len(p)))
			f.left -= n
			p = p[n:]
			continue
		}
		n := min(size-len(f.head), len(p))
		f.head = append(f.head, p[:n]...)
		p = p[n:]
		if len(f.head) == size {
			found = found || terminal.FrameType(f.head[0]) == wanted
			f.left = binary.BigEndian.Uint32(f.head[1:])
			f.head = f.head[:0]
		}
	}
	return found
}
