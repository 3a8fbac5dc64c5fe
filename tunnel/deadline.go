package tunnel

import (
	"sync"
	"time"
)

// deadline is a point in time that can be waited for and moved. Its zero value
// is none.
type deadline struct {
	mu    sync.Mutex // guards what follows
	timer *time.Timer
	gone  chan struct{} // closed when the time has come; nil until someone waits
}

// set moves the deadline; the zero time means none.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() && d.gone != nil {
		<-d.gone // the timer's function runs: wait until it has closed the channel
	}
	d.timer = nil
	if d.gone == nil {
		if at.IsZero() {
			return
		}
		d.gone = make(chan struct{})
	}
	passed := expired(d.gone)
	if at.IsZero() {
		if passed {
			d.gone = make(chan struct{})
		}
		return
	}
	left := time.Until(at)
	if left <= 0 {
		if !passed {
			close(d.gone)
		}
		return
	}
	if passed {
		d.gone = make(chan struct{})
	}
	gone := d.gone
	d.timer = time.AfterFunc(left, func() { close(gone) })
}

// wait returns what is closed when the time has come.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone == nil {
		d.gone = make(chan struct{})
	}
	return d.gone
}

func expired(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
