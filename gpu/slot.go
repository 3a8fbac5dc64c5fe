package gpu

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

func (l *Ledger) admits(g Grant) error {
	s := l.index[g.Device]
	if s == nil {
		return failure(CodeHoldInvalid, "The machine has no device %s.", g.Device)
	}
	kind := s.kind()
	switch {
	case !g.sound():
		return s.fault(CodeHoldInvalid, "cannot be granted in a share of "+g.Share.String())
	case kind != KindFree && kind != g.kind():
		return s.fault(CodeHoldConflict, "is held by "+string(kind)+" and cannot be given by "+string(g.kind())+" too")
	case g.Whole && kind != KindFree:
		return s.fault(CodeHoldConflict, "is promised as a whole to "+s.holdings[0].Holder)
	case s.over != "":
		return s.fault(CodeHoldConflict, "gives nothing further: "+s.over)
	case g.Instance != "":
		for _, h := range s.holdings {
			if h.Grant.Instance == g.Instance {
				return s.fault(CodeHoldConflict, "has promised its instance "+string(g.Instance)+" to "+h.Holder)
			}
		}
	case g.kind() == KindShares && s.used+g.Share > WholeDevice:
		return s.fault(CodeHoldConflict, fmt.Sprintf("has %s free and not %s", WholeDevice-s.used, g.Share))
	}
	return s.suits(g, l.config.Quantum)
}

func (g Grant) sound() bool {
	return g.Share >= 0 && g.Share <= WholeDevice && g.Memory >= 0 && (g.Share > 0 || g.Instance != "")
}

func (s *slot) suits(g Grant, quantum Share) error {
	switch {
	case s.absent:
		return s.fault(CodeHoldInvalid, "is not found any more")
	case s.device.Lost != nil:
		return s.fault(CodeHoldInvalid, "is lost: "+s.device.Lost.Why)
	case s.excluded:
		return s.fault(CodeHoldInvalid, "is excluded from use")
	case g.Instance != "":
		return s.suitsInstance(g)
	case len(s.device.Instances) > 0:
		return s.fault(CodeHoldInvalid, "is given by MIG instance only")
	case s.drained():
		return s.fault(CodeHoldInvalid, "has no memory to give")
	case g.Whole && (g.Share != WholeDevice || g.Memory != s.promisable()):
		return s.fault(CodeHoldInvalid, fmt.Sprintf("has %s of memory to give as a whole and not %s of it with %s",
			s.promisable(), g.Share, g.Memory))
	case g.Whole:
		return nil
	case g.Share%quantum != 0 || s.used+g.Share > s.capacity:
		return s.fault(CodeHoldInvalid, fmt.Sprintf("is given in multiples of %s up to %s", quantum, s.capacity))
	case g.Memory > g.Share.Of(s.promisable()), g.Memory == 0 && g.Share.Of(s.promisable()) > 0:
		return s.fault(CodeHoldInvalid, fmt.Sprintf("gives up to %s of memory with a share of %s and not %s",
			g.Share.Of(s.promisable()), g.Share, g.Memory))
	case g.Memory > s.left():
		return s.fault(CodeHoldConflict, fmt.Sprintf("has %s of memory free and not %s", s.left(), g.Memory))
	}
	return nil
}

func (s *slot) suitsInstance(g Grant) error {
	for _, i := range s.device.Instances {
		switch {
		case i.UUID != g.Instance:
		case g.Whole || g.Share != s.device.part(i) || g.Memory != i.Memory:
			return s.fault(CodeHoldInvalid,
				fmt.Sprintf("has %s of memory and %s of itself in its instance %s and not %s and %s",
					i.Memory, s.device.part(i), i.UUID, g.Memory, g.Share))
		default:
			return nil
		}
	}
	return s.fault(CodeHoldInvalid, "has no instance "+string(g.Instance))
}

func (s *slot) fault(code, what string) *Error { return failure(code, "%s %s.", s.name(), what) }

func (s *slot) name() string {
	if s.device.Model == "" {
		return "Device " + string(s.device.UUID)
	}
	return fmt.Sprintf("GPU %d", s.device.Index)
}

func (g Grant) kind() Kind {
	switch {
	case g.Instance != "":
		return KindInstances
	case g.Whole:
		return KindWhole
	}
	return KindShares
}

func (s *slot) kind() Kind {
	if len(s.holdings) > 0 {
		return s.holdings[0].Grant.kind()
	}
	return KindFree
}

// recount sums up the grants and looks for contradictions. It is called whenever grants or device change.
func (s *slot) recount() {
	s.used, s.memory = 0, 0
	for _, h := range s.holdings {
		s.used += max(0, h.Grant.Share)
		s.memory = sumOf(s.memory, max(0, h.Grant.Memory))
	}
	s.over = s.contradiction()
}

// sumOf is a + b, both at least 0, or the largest number: what another program records may be anything.
func sumOf(a, b Bytes) Bytes {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// contradiction describes how the grants contradict each other or the device; empty if they do not.
func (s *slot) contradiction() string {
	if s.shut != "" {
		return s.shut
	}
	kind := s.kind()
	for i, h := range s.holdings {
		switch g := h.Grant; {
		case !g.sound():
			return fmt.Sprintf("a share of %s with %s of memory is allocated, which is no part of a device", g.Share,
				g.Memory)
		case g.kind() != kind:
			return fmt.Sprintf("it is allocated by %s and by %s", kind, g.kind())
		case kind == KindWhole && i > 0:
			return fmt.Sprintf("it is allocated as a whole %d times", len(s.holdings))
		case kind == KindInstances && s.holds(s.holdings[:i], g.Instance):
			return fmt.Sprintf("its instance %s is allocated twice", g.Instance)
		case kind == KindInstances && !s.absent && !s.has(g.Instance):
			return fmt.Sprintf("its instance %s is allocated and does not exist any more", g.Instance)
		}
	}
	switch usable := s.device.Usable(); {
	case kind == KindShares && s.used > WholeDevice:
		return fmt.Sprintf("%s of it is allocated", s.used)
	case s.absent || kind != KindShares && kind != KindWhole:
		return ""
	case len(s.device.Instances) > 0:
		return fmt.Sprintf("it is allocated by %s and divided into MIG instances now", kind)
	case kind == KindShares && s.device.Memory > 0 && s.memory > usable:
		return fmt.Sprintf("%s of memory is allocated, %s more than is usable now", s.memory, s.memory-usable)
	}
	return ""
}

func (s *slot) holds(holdings []Holding, instance UUID) bool {
	return slices.ContainsFunc(holdings, func(h Holding) bool { return h.Grant.Instance == instance })
}

func (s *slot) has(instance UUID) bool {
	return slices.ContainsFunc(s.device.Instances, func(i Instance) bool { return i.UUID == instance })
}

// promisable is the memory that can be allocated in all.
func (s *slot) promisable() Bytes { return max(0, s.device.Usable()-s.floor) }

func (s *slot) left() Bytes { return max(0, s.promisable()-s.memory) }

func (s *slot) closed() bool {
	return s.excluded || s.absent || s.device.Lost != nil || s.over != ""
}

// drained reports that there is no memory to allocate, though the device has some: a grant would have no limit.
func (s *slot) drained() bool { return s.device.Memory > 0 && s.promisable() == 0 }

func (s *slot) free(quantum Share) Share {
	if kind := s.kind(); s.closed() || s.drained() || kind != KindFree && kind != KindShares {
		return 0
	}
	return max(0, s.capacity-s.used) / quantum * quantum
}

func (s *slot) freeInstances() []Instance {
	if s.closed() || len(s.device.Instances) == 0 {
		return nil
	}
	var free []Instance
	for _, i := range s.device.Instances {
		if !s.holds(s.holdings, i.UUID) {
			free = append(free, i)
		}
	}
	return free
}

// Check audits the ledger: nothing may be allocated beyond what a device is, by two kinds or twice, and the grants by
// holder and by device must agree. A healthy ledger has no errors.
func (l *Ledger) Check() []error {
	var errs []error
	byHolder := map[string][]Grant{}
	for _, s := range l.slots {
		errs = append(errs, s.check()...)
		if l.index[s.device.UUID] != s {
			errs = append(errs, fmt.Errorf("%s is filed under another name", s.device.UUID))
		}
		for _, h := range s.holdings {
			byHolder[h.Holder] = append(byHolder[h.Holder], h.Grant)
		}
	}
	if len(l.index) != len(l.slots) {
		errs = append(errs, errors.New("the index of devices does not match the list"))
	}
	for holder, grants := range l.holders {
		if !slices.Equal(canonical(grants), canonical(byHolder[holder])) {
			errs = append(errs, fmt.Errorf("%s holds %v, and the devices say %v", holder, grants, byHolder[holder]))
		}
	}
	for holder := range byHolder {
		if _, ok := l.holders[holder]; !ok {
			errs = append(errs, fmt.Errorf("devices are held by %s, who holds nothing", holder))
		}
	}
	return errs
}

func canonical(grants []Grant) []Grant {
	sorted := slices.Clone(grants)
	slices.SortFunc(sorted, func(a, b Grant) int {
		return compareHolding(Holding{string(a.Device), a}, Holding{string(b.Device), b})
	})
	return sorted
}

// check audits one slot. Contradictory grants are reported with their holders, once.
func (s *slot) check() []error {
	var errs []error
	counted := *s
	counted.recount()
	if counted.used != s.used || counted.memory != s.memory || counted.over != s.over {
		errs = append(errs, fmt.Errorf("%s counts %s and %s promised, and the promises are %s and %s",
			s.name(), s.used, s.memory, counted.used, counted.memory))
	}
	if counted.over != "" {
		errs = append(errs, fmt.Errorf("%s gives nothing further: %s%s", s.name(), counted.over, heldBy(s.holdings)))
	}
	return errs
}

func heldBy(holdings []Holding) string {
	if len(holdings) == 0 {
		return ""
	}
	var names []string
	for _, h := range holdings {
		names = append(names, fmt.Sprintf("%s (%s)", h.Holder, h.Grant.Share))
	}
	return ", held by " + strings.Join(names, ", ")
}
