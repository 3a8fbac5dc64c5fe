package images

import (
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// meter adds up what the layers of a pull report. What it tells never goes back.
type meter struct {
	layers map[string]*layer
	marks  []mark // what was downloaded when, over the last rateWindow
	last   session.Pull
}

type layer struct {
	current, total int64
	sized          bool // total is known
	done           bool // downloaded and unpacked, or there before
}

type mark struct {
	at      time.Time
	current int64
}

// rateWindow is the time over which the rate of a pull is taken.
const rateWindow = 5 * time.Second

func newMeter() *meter { return &meter{layers: map[string]*layer{}} }

// note takes in one message and reports whether it changed anything. Docker names the states of a layer only in these
// words.
func (m *meter) note(said message, now time.Time) bool {
	if said.ID == "" {
		return false
	}
	l := m.layers[said.ID]
	if l == nil {
		switch said.Status {
		case "Pulling fs layer", "Waiting", "Downloading", "Already exists":
			l = &layer{}
			m.layers[said.ID] = l
		default:
			return false // the tag being pulled, which looks like a layer
		}
	}
	switch said.Status {
	case "Downloading":
		l.downloading(said.Detail.Current, said.Detail.Total)
	case "Verifying Checksum", "Download complete", "Extracting":
		l.complete()
	case "Pull complete":
		l.complete()
		l.done = true
	case "Already exists":
		l.sized, l.done = true, true
	}
	m.mark(now)
	return true
}

// downloading notes how far a layer is. After a cut Docker goes on where it stood, and counts only what was missing
// then.
func (l *layer) downloading(current, total int64) {
	if l.sized && total > 0 && total < l.total {
		current += l.total - total
	}
	l.current = max(l.current, current)
	if total > 0 {
		l.total, l.sized = max(l.total, total), true
	}
}

// complete notes that a layer is downloaded. One that was too small to report its size counts as nothing.
func (l *layer) complete() {
	l.current = max(l.current, l.total)
	l.total, l.sized = l.current, true
}

// mark notes how much is downloaded, at most ten times a second.
func (m *meter) mark(now time.Time) {
	if n := len(m.marks); n > 0 && now.Sub(m.marks[n-1].at) < 100*time.Millisecond {
		return
	}
	var current int64
	for _, l := range m.layers {
		current += l.current
	}
	m.marks = append(m.marks, mark{at: now, current: current})
	for len(m.marks) > 2 && now.Sub(m.marks[0].at) > rateWindow {
		m.marks = m.marks[1:]
	}
}

// pull is the progress so far. Total stays 0 until the size of every layer is known, for a part of it would make the
// pull look nearly done.
func (m *meter) pull(now time.Time) session.Pull {
	p := session.Pull{Layers: len(m.layers)}
	sized := len(m.layers) > 0
	for _, l := range m.layers {
		p.Current += gpu.Bytes(l.current)
		p.Total += gpu.Bytes(l.total)
		sized = sized && l.sized
		if l.done {
			p.LayersDone++
		}
	}
	if !sized {
		p.Total = 0
	}
	p.Current = max(p.Current, m.last.Current)
	p.Total = max(p.Total, m.last.Total)
	if p.Total > 0 {
		p.Total = max(p.Total, p.Current)
	}
	if len(m.marks) > 0 {
		first := m.marks[0]
		if span := now.Sub(first.at); span > 0 {
			p.Rate = gpu.Bytes(max(float64(int64(p.Current)-first.current)/span.Seconds(), 0))
		}
	}
	m.last = p
	return p
}
