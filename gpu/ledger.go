package gpu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Strategy is how shares are spread over devices.
type Strategy string

// The strategies. Fill takes the device with most free first and fills it before the next. Evenly, the default, takes
// the device with the smallest sufficient part free, so that large parts stay whole, and spreads a request for several
// devices as evenly as possible.
const (
	Fill   Strategy = "fill"
	Evenly Strategy = "evenly"
)

// Config is how a [Ledger] allocates. The zero value has tenths of devices, spread evenly, on as few as they fit.
type Config struct {
	Quantum            Share    // smallest share, 1 to 1000; 0: DefaultQuantum
	Strategy           Strategy // empty: Evenly
	AllowFragmentation bool     // parts of a request above one device may be unequal
	Exclude            []UUID   // devices that are never allocated
	Floor              Bytes    // memory of every device that is never allocated, for other programs

	// Slack is how many thousandths of the memory of a share or a whole device may be missing by the driver, because a
	// desktop always takes a little. 0 means DefaultSlack; a negative value none. A request for memory has no slack.
	Slack int
}

// DefaultSlack is the slack of a [Config] without one.
const DefaultSlack = 50

// Ledger records which parts of devices are allocated to whom. Its methods are not safe for concurrent use;
// [Ledger.Clone] makes a copy for planning. The same calls on the same devices always give the same answers.
type Ledger struct {
	config  Config
	slots   []*slot // in the order of Device.Index, then UUID; absent ones included
	index   map[UUID]*slot
	holders map[string][]Grant
}

type slot struct {
	device   Device
	excluded bool
	absent   bool   // it has grants but is not in the inventory
	shut     string // why none of it is allocated in this ledger; empty: it may be
	floor    Bytes
	capacity Share     // whole quanta of the device; 0 when it is allocated by instance
	holdings []Holding // sorted by holder, then instance

	// What follows is counted from holdings: see recount.
	used   Share  // Σ of shares; a whole device counts as capacity
	memory Bytes  // Σ of memory
	over   string // as in [View.Over]
}

// Kind is one of the exclusive ways in which a device is allocated.
type Kind string

// The kinds. A device that has MIG instances is only allocated by instance.
const (
	KindFree      Kind = "free"
	KindWhole     Kind = "whole"
	KindShares    Kind = "shares"
	KindInstances Kind = "instances"
)

// View is one device as the ledger sees it.
type View struct {
	Device     Device     `json:"device"`
	Kind       Kind       `json:"kind"`
	Free       Share      `json:"free"`       // in whole quanta with memory; with instances, their sum
	FreeMemory Bytes      `json:"freeMemory"` // usable less the floor and all grants; 0 if nothing is free
	Floor      Bytes      `json:"floor,omitempty"`
	Holdings   []Holding  `json:"holdings,omitempty"`
	Instances  []Instance `json:"instances,omitempty"` // the free ones
	Excluded   bool       `json:"excluded,omitempty"`
	Absent     bool       `json:"absent,omitempty"` // allocated, but not found on the machine any more

	// Over describes in a clause how grants contradict each other or the device as its driver describes it now. Nothing
	// more of it is allocated until enough of its holders have ended. Empty: they do not.
	Over string `json:"over,omitempty"`
}

// NewLedger makes an empty ledger. A failure is an [*Error] with code [CodeHoldInvalid]: a quantum out of range, an
// unknown strategy, or two devices of one UUID.
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
		return nil, failure(CodeHoldInvalid, "The smallest share of a device must be between 0.001 and 1.")
	}
	if config.Strategy != Fill && config.Strategy != Evenly {
		return nil, failure(CodeHoldInvalid, "%q is not a way to spread shares: it is fill or evenly.", config.Strategy)
	}
	l := empty(config)
	instances := map[UUID]bool{}
	for _, d := range devices {
		if d.UUID == "" || l.index[d.UUID] != nil {
			return nil, failure(CodeHoldInvalid, "The device %q is listed twice or has no UUID.", d.UUID)
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
		l.add(s)
	}
	return l, nil
}

// Restore makes a ledger with the grants of sessions. It cannot fail: grants stay, whatever a driver reports now, and a
// device with contradictory grants allocates nothing more ([View.Over]), as do all devices if config is not valid.
func Restore(devices []Device, config Config, grants map[string][]Grant) *Ledger {
	l, err := NewLedger(devices, config)
	if err != nil {
		l = empty(Config{Quantum: DefaultQuantum, Strategy: Evenly})
		for _, d := range devices {
			if l.index[d.UUID] == nil {
				l.add(&slot{device: d, shut: err.Error()})
			}
		}
	}
	for _, holder := range slices.Sorted(maps.Keys(grants)) {
		l.Adopt(holder, grants[holder])
	}
	return l
}

func empty(config Config) *Ledger {
	return &Ledger{config: config, index: map[UUID]*slot{}, holders: map[string][]Grant{}}
}

func (l *Ledger) add(s *slot) {
	s.recount()
	l.index[s.device.UUID], l.slots = s, append(l.slots, s)
	l.sort()
}

func (l *Ledger) sort() {
	slices.SortFunc(l.slots, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(a.device.Index, b.device.Index), cmp.Compare(a.device.UUID, b.device.UUID))
	})
}

// Quantum is the smallest share that l allocates.
func (l *Ledger) Quantum() Share { return l.config.Quantum }

// Hold allocates grants to holder, all or none. Repeating a call changes nothing. It fails with an [*Error] of code
// [CodeHoldConflict] when a part is allocated to another holder, and with [CodeHoldInvalid] for what the machine does
// not have or what is not in whole quanta; then nothing changed.
func (l *Ledger) Hold(holder string, grants []Grant) error {
	if holder == "" {
		return failure(CodeHoldInvalid, "A promise needs a holder.")
	}
	if held, ok := l.holders[holder]; ok {
		if slices.Equal(held, grants) {
			return nil
		}
		return failure(CodeHoldConflict, "%s already holds other devices.", holder)
	}
	for i, g := range grants {
		if err := l.admits(g); err != nil {
			for _, undo := range grants[:i] {
				l.give(holder, undo)
			}
			return err
		}
		l.index[g.Device].hold(holder, g)
	}
	l.holders[holder] = slices.Clone(grants)
	return nil
}

// Adopt records grants that holder has already, besides any others. Nothing is checked: the device may be absent,
// excluded, smaller or divided otherwise by now, or allocated to another, too. Such a device allocates nothing more
// ([View.Over]).
func (l *Ledger) Adopt(holder string, grants []Grant) {
	held, ok := l.holders[holder]
	if ok && slices.Equal(held, grants) {
		return
	}
	for _, g := range grants {
		s := l.index[g.Device]
		if s == nil {
			s = &slot{device: Device{UUID: g.Device}, absent: true, capacity: WholeDevice}
			l.add(s)
		}
		s.hold(holder, g)
	}
	l.holders[holder] = slices.Concat(held, grants)
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

// Release frees all grants of holder, if it has any.
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
	if s.absent && len(s.holdings) == 0 {
		delete(l.index, s.device.UUID)
		l.slots = slices.DeleteFunc(slices.Clone(l.slots), func(other *slot) bool { return other == s })
	}
}

// Clone returns an independent copy.
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
		v := View{
			Device: s.device, Kind: s.kind(), Floor: s.floor, Holdings: slices.Clone(s.holdings), Over: s.over,
			Excluded: s.excluded, Absent: s.absent, Instances: s.freeInstances(),
			Free: l.backed(l.part(s, false)), FreeMemory: s.left(),
		}
		for _, i := range v.Instances {
			v.Free += s.device.part(i)
		}
		if v.Free == 0 && len(v.Instances) == 0 {
			v.FreeMemory = 0
		}
		views = append(views, v)
	}
	return views
}

// Holder is a session: its name, its containers by their ids of 64 hexadecimal digits, and its grants.
type Holder struct {
	Session    string   `json:"session"`
	Containers []string `json:"containers,omitempty"`
	Grants     []Grant  `json:"grants"`
}

// Holding is one grant of a holder.
type Holding struct {
	Holder string `json:"holder"`
	Grant  Grant  `json:"grant"`
}

// Holders finds the session that a process belongs to.
type Holders []Holder

// Of returns the session whose container p runs in, or false if none is. Of nested containers the outermost counts.
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
