package gpu

import (
	"cmp"
	"slices"
	"time"
)

// SoftReservation is how long a new session of unknown use counts with its allocation: programs allocate late.
const SoftReservation = 60 * time.Second

// Book is the free memory of one device by both books: what the ledger has not allocated, and what the driver reports
// as free less what sessions may still take of their allocations. A session is admitted only if both agree.
type Book struct {
	Device     UUID            `json:"device"`
	LedgerFree Bytes           `json:"ledgerFree"`
	DriverFree *Bytes          `json:"driverFree,omitempty"` // by the driver; nil: unknown
	Unclaimed  Bytes           `json:"unclaimed"`            // Σ max(0, allocated − used) over holders
	Foreign    Bytes           `json:"foreign"`              // used outside of sessions now
	Peak       Bytes           `json:"peak"`                 // the same with hysteresis: see [Foreign]
	DeviceFree *Bytes          `json:"deviceFree,omitempty"` // what can be allocated: see [Books]; nil: no limit
	Others     []ProcessSample `json:"others,omitempty"`     // processes outside of sessions, largest memory first
}

// Age is how long each session has been running; one that is not in it was only just granted.
type Age map[string]time.Duration

// Books compares both books of every device of ledger. Foreign holds the hysteresis of each device and may be nil;
// afterwards the caller adds the Foreign of each book to it ([Foreign.Observe]). A device that sample does not have, or
// that is divided into instances, is limited by the ledger only.
func Books(ledger *Ledger, sample Sample, holders Holders, age Age, foreign map[UUID]Foreign) []Book {
	var books []Book
	for _, view := range ledger.Free() {
		book := Book{Device: view.Device.UUID, LedgerFree: view.FreeMemory}
		if d, ok := sample.Device(view.Device.UUID); ok && len(view.Device.Instances) == 0 {
			book.read(view, d, sample.Processes, holders, age)
			book.Peak = max(book.Foreign, foreign[book.Device].Peak())
			if book.DriverFree != nil {
				book.DeviceFree = new(max(0, *book.DriverFree-book.Unclaimed-(book.Peak-book.Foreign)))
			}
		}
		books = append(books, book)
	}
	return books
}

func (b *Book) read(view View, d DeviceSample, processes []ProcessSample, holders Holders, age Age) {
	usable := view.Device.Usable()
	switch {
	case d.MemoryFree != nil:
		b.DriverFree = d.MemoryFree
	case d.MemoryUsed != nil && usable > 0:
		b.DriverFree = new(max(0, usable-*d.MemoryUsed))
	}
	claims := map[string]*claim{}
	for _, h := range view.Holdings {
		if claims[h.Holder] == nil {
			running, known := age[h.Holder]
			claims[h.Holder] = &claim{soft: !known || running < SoftReservation}
		}
		claims[h.Holder].allocated += h.Grant.Memory
	}
	var sessions Bytes
	for _, p := range unique(processes, b.Device) {
		session, ours := holders.Of(p)
		if !ours {
			b.Others = append(b.Others, p)
			b.Foreign += known(p.Memory)
			continue
		}
		sessions += known(p.Memory)
		if c := claims[session]; c != nil {
			c.used += known(p.Memory)
			c.partly = c.partly || p.Memory == nil
		}
	}
	slices.SortStableFunc(b.Others,
		func(x, y ProcessSample) int { return cmp.Compare(known(y.Memory), known(x.Memory)) })
	var unexplained Bytes
	if d.MemoryUsed != nil {
		unexplained = max(0, *d.MemoryUsed-sessions-b.Foreign)
	}
	for _, c := range claims {
		open := max(0, c.allocated-c.used)
		if c.partly && !c.soft {
			// What the device uses and no other process explains counts as used by this session, up to its allocation.
			own := min(open, unexplained)
			unexplained -= own
			open -= own
		}
		b.Unclaimed += open
	}
	b.Foreign += unexplained
}

// claim is what one session may use of a device.
type claim struct {
	allocated Bytes
	used      Bytes // as far as known
	partly    bool  // the use of some of its processes is unknown
	soft      bool  // it started less than [SoftReservation] ago
}

func known(b *Bytes) Bytes {
	if b == nil {
		return 0
	}
	return *b
}

// Foreign remembers the use of a device by what is not a session, so that no session starts into memory that a program
// frees for a moment only: use counts at once when it rises, and only after a window when it falls. The zero value has
// seen nothing.
type Foreign struct {
	peaks []peak // falling, oldest and largest first
}

type peak struct {
	at   time.Duration
	used Bytes
}

// ForeignWindow is how long foreign use must stay low before it counts as low.
const ForeignWindow = 10 * time.Second

// Observe returns f with used bytes of foreign use at a time on the Boot clock. A time before the last one starts over.
func (f Foreign) Observe(at time.Duration, used Bytes) Foreign {
	var kept []peak
	for _, p := range f.peaks {
		if p.at <= at && at-p.at < ForeignWindow && p.used > used {
			kept = append(kept, p)
		}
	}
	return Foreign{append(kept, peak{at, used})}
}

// Peak is the largest foreign use within the window.
func (f Foreign) Peak() Bytes {
	if len(f.peaks) == 0 {
		return 0
	}
	return f.peaks[0].used
}

// unique lists the processes on a device, once with the larger values if they both compute and draw.
func unique(processes []ProcessSample, device UUID) []ProcessSample {
	type key struct {
		pid      int
		start    uint64
		instance UUID
	}
	at := map[key]int{}
	var list []ProcessSample
	for _, p := range processes {
		if p.Device != device {
			continue
		}
		k := key{p.PID, p.Start, p.Instance}
		i, seen := at[k]
		if !seen {
			at[k] = len(list)
			list = append(list, p)
			continue
		}
		if list[i].Memory == nil || p.Memory != nil && *p.Memory > *list[i].Memory {
			list[i].Memory = p.Memory
		}
		if list[i].Util == nil || p.Util != nil && *p.Util > *list[i].Util {
			list[i].Util = p.Util
		}
		if list[i].Container == "" {
			list[i].Container = p.Container
		}
	}
	return list
}
