package gpu

import (
	"cmp"
	"slices"
	"time"
)

// SoftReservation is how long after its start a session is taken at its promise where its use is not known: programs
// allocate late.
const SoftReservation = 60 * time.Second

// Book is one device by both books: what the ledger has not promised, and what the driver says is free less what
// sessions were promised and have not taken yet. A session is only admitted where both agree.
type Book struct {
	Device     UUID   `json:"device"`
	LedgerFree Bytes  `json:"ledgerFree"`
	DriverFree *Bytes `json:"driverFree,omitempty"` // as the driver says; nil: not told
	Unclaimed  Bytes  `json:"unclaimed"`            // Σ max(0, promised − used) over holders
	Foreign    Bytes  `json:"foreign"`              // used by what is no session, now
	Peak       Bytes  `json:"peak"`                 // the same with hysteresis: see [Foreign]
	// DriverFree less Unclaimed, less what foreign use lately was above what it is; nil: not limited
	DeviceFree *Bytes          `json:"deviceFree,omitempty"`
	Others     []ProcessSample `json:"others,omitempty"` // processes of no session, largest memory first
}

// Age says how long each session has been running; one that is not in it was only just granted.
type Age map[string]time.Duration

// Books compares both books of every device of ledger. Foreign holds the hysteresis of each device and may be nil;
// after the call each is told the Foreign of its book (see [Foreign.Observe]). A device that sample does not have, or
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
	claims := map[string]*Claim{}
	for _, h := range view.Holdings {
		if claims[h.Holder] == nil {
			running, known := age[h.Holder]
			claims[h.Holder] = &Claim{Soft: !known || running < SoftReservation}
		}
		claims[h.Holder].Promised += h.Grant.Memory
	}
	var sessions Bytes
	for _, p := range unique(processes, b.Device) {
		session, ours := holders.Of(p)
		if !ours {
			b.Others = append(b.Others, p)
			if p.Memory != nil {
				b.Foreign += *p.Memory
			}
			continue
		}
		if p.Memory != nil {
			sessions += *p.Memory
		}
		if c := claims[session]; c != nil {
			c.take(p.Memory)
		}
	}
	slices.SortStableFunc(b.Others,
		func(x, y ProcessSample) int { return cmp.Compare(known(y.Memory), known(x.Memory)) })
	unexplained := Bytes(0)
	if d.MemoryUsed != nil {
		unexplained = max(0, *d.MemoryUsed-sessions-b.Foreign)
	}
	list := make([]Claim, 0, len(claims))
	for _, c := range claims {
		list = append(list, *c)
	}
	var explained Bytes
	b.Unclaimed, explained = Unclaimed(list, unexplained)
	b.Foreign += unexplained - explained
}

func known(b *Bytes) Bytes {
	if b == nil {
		return 0
	}
	return *b
}

// Claim is one session's promise on a device and what it took of it.
type Claim struct {
	Promised Bytes
	Used     Bytes // what is known of its use
	Partly   bool  // some of its processes do not tell what they use
	Soft     bool  // it started less than [SoftReservation] ago
}

func (c *Claim) take(memory *Bytes) {
	if memory == nil {
		c.Partly = true
		return
	}
	c.Used += *memory
}

// Unclaimed is Σ max(0, promised − used): what sessions may still take. Where the use of a session is not told in full
// and its soft reservation is over, the use of the device that nobody else explains counts as its own, up to its
// promise; explained is how much of that was needed.
func Unclaimed(claims []Claim, unexplained Bytes) (unclaimed, explained Bytes) {
	for _, c := range claims {
		open := max(0, c.Promised-c.Used)
		if c.Partly && !c.Soft {
			own := min(open, unexplained-explained)
			explained += own
			open -= own
		}
		unclaimed += open
	}
	return unclaimed, explained
}

// Foreign remembers the use of a device by what is no session, so that a program that frees memory for a moment does
// not make a session start into it: use counts at once when it rises, and only after a window when it falls. The zero
// value remembers nothing yet. It is a value: [Foreign.Observe] returns the next one.
type Foreign struct {
	peaks []peak // falling, oldest and largest first
}

type peak struct {
	at   time.Duration
	used Bytes
}

// ForeignWindow is how long foreign use must stay low before it counts as low.
const ForeignWindow = 10 * time.Second

// Observe adds that used bytes were in foreign use at a time on the Boot clock. A time before the last one begins
// again.
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

// unique lists the processes on a device, each once: a process that is listed for compute and for graphics counts with
// the larger values.
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
