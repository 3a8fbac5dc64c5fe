package images

import (
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// meter adds up the layers of a pull. Its progress never goes back.
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

const rateWindow = 5 * time.Second

func newMeter() *meter { return &meter{layers: map[string]*layer{}} }

// note handles one message and reports whether it changed anything. The states of layers exist only as these words.
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

// downloading records the progress of a layer. After a cut, Docker resumes and counts only the rest.
func (l *layer) downloading(current, total int64) {
	if l.sized && total > 0 && total < l.total {
		current += l.total - total
	}
	l.current = max(l.current, current)
	if total > 0 {
		l.total, l.sized = max(l.total, total), true
	}
}

// complete records that a layer is downloaded. One too small to report its size counts as nothing.
func (l *layer) complete() {
	l.current = max(l.current, l.total)
	l.total, l.sized = l.current, true
}

// mark records the bytes downloaded, at most ten times a second.
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

// pull is the progress. Total is 0 until the size of every layer is known: a part would look nearly done.
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
