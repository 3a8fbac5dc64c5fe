package gpu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Strategy says how shares are spread over devices.
type Strategy string

// The strategies. Fill takes the device with most free first and fills it before the next. Evenly, the default, takes
// the device with the smallest sufficient part free, so that large parts stay whole, and spreads what needs several
// devices as evenly as it can.
const (
	Fill   Strategy = "fill"
	Evenly Strategy = "evenly"
)

// Config is how a [Ledger] gives. The zero value has tenths of devices, spread evenly, on as few devices as they fit.
type Config struct {
	Quantum  Share    // smallest share given, 1 to 1000; 0: DefaultQuantum
	Strategy Strategy // empty: Evenly
	// a request above one device may be pieced together from unequal leftovers; else its parts are equal, to a quantum
	AllowFragmentation bool
	Exclude            []UUID // devices that are never given
	Floor              Bytes  // memory of every device that is never promised, for what is not a session

	// Slack is how many thousandths of what a share or a whole device stands for may be missing when the driver is
	// asked what is free, because a desktop always takes a little. 0 means DefaultSlack; a negative value none. A
	// request for memory has no slack.
	Slack int
}

// DefaultSlack is the slack of a [Config] without one.
const DefaultSlack = 50

// Ledger is the book of what is promised to whom. Its methods are not safe for concurrent use; [Ledger.Clone] makes one
// for planning. The same calls on the same devices always give the same answers.
type Ledger struct {
	config  Config
	slots   []*slot // in the order of Device.Index, then UUID; absent ones included
	index   map[UUID]*slot
	holders map[string][]Grant
}

// slot is one device and what is promised of it.
type slot struct {
	device   Device
	excluded bool
	absent   bool   // held by a grant, but not in the inventory
	shut     string // why it gives nothing in this ledger; empty: it may
	floor    Bytes
	capacity Share     // whole quanta of the device; 0 when it is given by instance
	holdings []Holding // sorted by holder, then instance

	// What follows is counted from holdings: see recount.
	used   Share  // Σ of shares promised; a whole device counts as capacity
	memory Bytes  // Σ of memory promised
	over   string // why nothing further may be given, as in [View.Over]
}

// Kind says in which of the ways that exclude one another a device is held.
type Kind string

// The kinds. A device that has MIG instances is only ever given by instance.
const (
	KindFree      Kind = "free"
	KindWhole     Kind = "whole"
	KindShares    Kind = "shares"
	KindInstances Kind = "instances"
)

// View is one device as the ledger sees it.
type View struct {
	Device Device `json:"device"`
	Kind   Kind   `json:"kind"`
	// in whole quanta that have memory left; with instances, the sum of the free ones
	Free       Share      `json:"free"`
	FreeMemory Bytes      `json:"freeMemory"` // usable less the floor and every promise; 0 where nothing is free
	Floor      Bytes      `json:"floor,omitempty"`
	Holdings   []Holding  `json:"holdings,omitempty"`
	Instances  []Instance `json:"instances,omitempty"` // the free ones
	Excluded   bool       `json:"excluded,omitempty"`
	Absent     bool       `json:"absent,omitempty"` // promised, but not found on the machine any more

	// Over says in a clause how what is allocated contradicts the device as its driver describes it now, or itself.
	// Nothing further of it is given until enough of its holders have ended. Empty: it does not.
	Over string `json:"over,omitempty"`
}

// NewLedger makes a ledger in which nothing is promised yet. A failure is an [*Error] with code [CodeHoldInvalid]: a
// quantum out of range, an unknown strategy, or two devices of one UUID.
func NewLedger(devices []Device, config Config) (*Ledger, error) {
	if config.Quantum == 0 {
		config.Quantum = DefaultQuantum
	}
	if config.Strategy == "" {
		config.Strategy = Evenly
	}
	if config.Slack == 0 {
		config.Slack = DefaultSlack
	}
	config.Slack = min(max(config.Slack, 0), int(WholeDevice))
	if config.Quantum < 1 || config.Quantum > WholeDevice {
		return nil, &Error{Code: CodeHoldInvalid, Message: "The smallest share of a device lies between 0.001 and 1."}
	}
	if config.Strategy != Fill && config.Strategy != Evenly {
		return nil, &Error{Code: CodeHoldInvalid,
			Message: fmt.Sprintf("%q is not a way to spread shares: it is fill or evenly.", config.Strategy)}
	}
	l := &Ledger{config: config, index: map[UUID]*slot{}, holders: map[string][]Grant{}}
	instances := map[UUID]bool{}
	for _, d := range devices {
		if d.UUID == "" || l.index[d.UUID] != nil {
			return nil, &Error{Code: CodeHoldInvalid,
				Message: fmt.Sprintf("The device %q is listed twice or has no UUID.", d.UUID)}
		}
		s := &slot{device: d, excluded: slices.Contains(config.Exclude, d.UUID), floor: config.Floor}
		if len(d.Instances) == 0 {
			s.capacity = WholeDevice / config.Quantum * config.Quantum
		}
		for _, i := range d.Instances {
			if instances[i.UUID] {
				s.shut = fmt.Sprintf("its driver lists the instance %s twice", i.UUID)
			}
			instances[i.UUID] = true
		}
		s.recount()
		l.index[d.UUID], l.slots = s, append(l.slots, s)
	}
	l.sort()
	return l, nil
}

// Restore makes a ledger of what sessions hold. There is nothing to fail: what was promised stays promised, whatever a
// driver says of the device now, and a device of which more is held than it has gives nothing further ([View.Over]).
// The same holds for all devices where config is not valid.
func Restore(devices []Device, config Config, grants map[string][]Grant) *Ledger {
	l, err := NewLedger(devices, config)
	if err != nil {
		l = shutLedger(devices, err)
	}
	for _, holder := range slices.Sorted(maps.Keys(grants)) {
		l.Adopt(holder, grants[holder])
	}
	return l
}

// shutLedger is a ledger that gives nothing, because of err.
func shutLedger(devices []Device, err error) *Ledger {
	l := &Ledger{config: Config{Quantum: DefaultQuantum, Strategy: Evenly},
		index: map[UUID]*slot{}, holders: map[string][]Grant{}}
	for _, d := range devices {
		if l.index[d.UUID] == nil {
			s := &slot{device: d, shut: err.Error()}
			s.recount()
			l.index[d.UUID], l.slots = s, append(l.slots, s)
		}
	}
	l.sort()
	return l
}

func (l *Ledger) sort() {
	slices.SortFunc(l.slots, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(a.device.Index, b.device.Index), cmp.Compare(a.device.UUID, b.device.UUID))
	})
}

// Quantum is the smallest share that l gives.
func (l *Ledger) Quantum() Share { return l.config.Quantum }

// Hold promises grants to holder, all or none. Promising a holder exactly what it holds already changes nothing. It
// fails with an [*Error] of code [CodeHoldConflict] when something of it is promised to another, and with
// [CodeHoldInvalid] when it names what the machine does not have or is not in whole quanta; then nothing changed.
func (l *Ledger) Hold(holder string, grants []Grant) error {
	if holder == "" {
		return &Error{Code: CodeHoldInvalid, Message: "A promise needs a holder."}
	}
	if held, ok := l.holders[holder]; ok {
		if slices.Equal(held, grants) {
			return nil
		}
		return &Error{Code: CodeHoldConflict, Message: fmt.Sprintf("%s already holds other devices.", holder)}
	}
	for i, g := range grants {
		if err := l.take(holder, g); err != nil {
			for _, undo := range grants[:i] {
				l.give(holder, undo)
			}
			return err
		}
	}
	l.holders[holder] = slices.Clone(grants)
	return nil
}

// Adopt records what holder has already, beside whatever else it holds. Nothing is asked of it: the device may be
// absent or excluded by now, smaller, divided in another way, or another's too. Where that is so nothing further of the
// device is given ([View.Over]).
func (l *Ledger) Adopt(holder string, grants []Grant) {
	held, ok := l.holders[holder]
	if ok && slices.Equal(held, grants) {
		return
	}
	for _, g := range grants {
		s := l.index[g.Device]
		if s == nil {
			s = &slot{device: Device{UUID: g.Device}, absent: true, capacity: WholeDevice}
			l.index[g.Device], l.slots = s, append(l.slots, s)
			l.sort()
		}
		s.hold(holder, g)
	}
	l.holders[holder] = slices.Concat(held, grants)
}

func (l *Ledger) take(holder string, g Grant) error {
	s := l.index[g.Device]
	if s == nil {
		return &Error{Code: CodeHoldInvalid, Message: fmt.Sprintf("The machine has no device %s.", g.Device)}
	}
	if err := s.admits(g); err != nil {
		return err
	}
	if err := s.suits(g, l.config.Quantum); err != nil {
		return err
	}
	s.hold(holder, g)
	return nil
}

func (s *slot) hold(holder string, g Grant) {
	at, _ := slices.BinarySearchFunc(s.holdings, Holding{holder, g}, compareHolding)
	s.holdings = slices.Insert(slices.Clip(s.holdings), at, Holding{holder, g})
	s.recount()
}

func compareHolding(a, b Holding) int {
	return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Grant.Instance, b.Grant.Instance),
		cmp.Compare(a.Grant.Share, b.Grant.Share), cmp.Compare(a.Grant.Memory, b.Grant.Memory))
}

// Release ends every promise to holder. It is no error when there is none.
func (l *Ledger) Release(holder string) {
	for _, g := range l.holders[holder] {
		l.give(holder, g)
	}
	delete(l.holders, holder)
}

func (l *Ledger) give(holder string, g Grant) {
	s := l.index[g.Device]
	at, found := slices.BinarySearchFunc(s.holdings, Holding{holder, g}, compareHolding)
	if !found {
		return
	}
	s.holdings = slices.Delete(slices.Clone(s.holdings), at, at+1)
	s.recount()
	if s.absent && len(s.holdings) == 0 { // nobody needs it any more
		delete(l.index, s.device.UUID)
		l.slots = slices.DeleteFunc(slices.Clone(l.slots), func(other *slot) bool { return other == s })
	}
}

// Clone returns an independent copy, for trying things out.
func (l *Ledger) Clone() *Ledger {
	c := &Ledger{config: l.config, index: make(map[UUID]*slot, len(l.index)), holders: maps.Clone(l.holders)}
	for _, s := range l.slots {
		s := *s // holdings are never changed in place
		c.slots, c.index[s.device.UUID] = append(c.slots, &s), &s
	}
	return c
}

// Free describes every device, in order of its index.
func (l *Ledger) Free() []View {
	views := make([]View, 0, len(l.slots))
	for _, s := range l.slots {
		views = append(views, l.view(s))
	}
	return views
}

// Holder is a session as the books of devices know it: its name, its containers by their ids of 64 hexadecimal digits,
// and its grants.
type Holder struct {
	Session    string   `json:"session"`
	Containers []string `json:"containers,omitempty"`
	Grants     []Grant  `json:"grants"`
}

// Holding is one holder's promise on one device.
type Holding struct {
	Holder string `json:"holder"`
	Grant  Grant  `json:"grant"`
}

// Holders finds the session that a process belongs to.
type Holders []Holder

// Of returns the session whose container p runs in, or false when it runs in none. Where containers are nested the
// outermost that is ours counts.
func (h Holders) Of(p ProcessSample) (string, bool) {
	if p.Container == "" {
		return "", false
	}
	for id := range strings.SplitSeq(p.Container, ",") {
		for _, holder := range h {
			for _, container := range holder.Containers {
				if container == id {
					return holder.Session, true
				}
			}
		}
	}
	return "", false
}
