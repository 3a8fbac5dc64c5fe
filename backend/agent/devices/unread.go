package devices

import (
	"context"
	"errors"
	"slices"

	"slipway/gpu"
)

// reading is whether the drivers tell what is free of their devices. What is
// promised is one book only: while the other is closed nothing is promised again,
// since a program outside of Slipway may have taken what the first calls free.
type reading struct {
	failed bool              // the last try to sample failed
	why    string            // in a sentence; empty: it did not fail, or nobody knows
	tells  map[gpu.UUID]bool // devices that have told what is free of them
}

// read takes note of a sample.
func (r *reading) read(sample gpu.Sample) {
	r.failed, r.why = false, ""
	for _, d := range sample.Devices {
		if d.MemoryFree == nil {
			continue
		}
		if r.tells == nil {
			r.tells = map[gpu.UUID]bool{}
		}
		r.tells[d.UUID] = true
	}
}

// fail takes note that a sample could not be had. Of an error that says when it
// is tried again only what does not change is kept.
func (r *reading) fail(err error) (news bool) {
	why := "Their drivers do not answer in time."
	var e *gpu.Error
	switch {
	case errors.As(err, &e):
		why = e.Message
	case !errors.Is(err, context.DeadlineExceeded):
		why = "They cannot be measured: " + err.Error() + "."
	}
	news = !r.failed || r.why != why
	r.failed, r.why = true, why
	return news
}

// unread are the devices of the list that are not lost and of which it is not
// known at a moment what is free, and why. A device that by its nature never
// tells, as one that shares its memory with the processors, is not among them.
// d.mu is held.
func (d *Devices) unread(at gpu.Moment) (unread []gpu.UUID, why string) {
	recent := fresh(d.recent, at)
	for _, device := range d.list {
		if _, lost := d.lost[device.UUID]; lost {
			continue
		}
		known := false
		if n := len(recent); n > 0 && !d.reading.failed {
			sample, sampled := recent[n-1].Device(device.UUID)
			known = sampled && (sample.MemoryFree != nil || sample.MemoryUsed != nil || !d.reading.tells[device.UUID])
		}
		if !known {
			unread = append(unread, device.UUID)
		}
	}
	slices.Sort(unread)
	return unread, d.reading.why
}
