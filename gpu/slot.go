package gpu

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// admits says whether g can be promised beside what already is.
func (s *slot) admits(g Grant) error {
	kind := s.kind()
	switch {
	case g.Share <= 0 && g.Instance == "", g.Share < 0, g.Memory < 0, g.Share > WholeDevice:
		return s.fault(CodeHoldInvalid, "cannot be granted in a share of "+g.Share.String())
	case kind != KindFree && kind != g.kind():
		return s.fault(CodeHoldConflict, "is held by "+string(kind)+" and cannot be given by "+string(g.kind())+" too")
	case g.Whole && kind != KindFree:
		return s.fault(CodeHoldConflict, "is promised as a whole to "+s.holdings[0].Holder)
	case g.Instance != "":
		for _, h := range s.holdings {
			if h.Grant.Instance == g.Instance {
				return s.fault(CodeHoldConflict, "has promised its instance "+string(g.Instance)+" to "+h.Holder)
			}
		}
		return nil
	case g.kind() == KindShares && s.used+g.Share > WholeDevice:
		return s.fault(CodeHoldConflict, fmt.Sprintf("has %s free and not %s", WholeDevice-s.used, g.Share))
	case s.device.Memory > 0 && !s.absent && s.promised()+g.Memory > s.device.Usable():
		return s.fault(CodeHoldConflict, fmt.Sprintf("has %s of memory to promise and not %s", s.device.Usable()-s.promised(), g.Memory))
	}
	return nil
}

// suits says whether g is something that this device gives anew.
func (s *slot) suits(g Grant, quantum Share) error {
	switch {
	case s.absent:
		return s.fault(CodeHoldInvalid, "is not found any more")
	case s.device.Lost != nil:
		return s.fault(CodeHoldInvalid, "is lost: "+s.device.Lost.Why)
	case s.excluded:
		return s.fault(CodeHoldInvalid, "is excluded from use")
	case g.Instance != "":
		if !slices.ContainsFunc(s.device.Instances, func(i Instance) bool { return i.UUID == g.Instance }) {
			return s.fault(CodeHoldInvalid, "has no instance "+string(g.Instance))
		}
	case len(s.device.Instances) > 0:
		return s.fault(CodeHoldInvalid, "is given by MIG instance only")
	case !g.Whole && (g.Share%quantum != 0 || s.used+g.Share > s.capacity):
		return s.fault(CodeHoldInvalid, fmt.Sprintf("is given in multiples of %s up to %s", quantum, s.capacity))
	}
	return nil
}

func (s *slot) fault(code, what string) *Error {
	return &Error{Code: code, Message: fmt.Sprintf("%s %s.", s.name(), what)}
}

// name is what people call the device.
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

func (s *slot) recount() {
	s.used = 0
	for _, h := range s.holdings {
		s.used += h.Grant.Share
	}
}

func (s *slot) promised() (sum Bytes) {
	for _, h := range s.holdings {
		sum += h.Grant.Memory
	}
	return sum
}

// promisable is the memory that may be promised when nothing is.
func (s *slot) promisable() Bytes { return max(0, s.device.Usable()-s.floor) }

// closed says whether the device gives nothing now, whatever is promised of it.
func (s *slot) closed() bool { return s.excluded || s.absent || s.device.Lost != nil }

// free is the share that may still be given, in whole quanta.
func (s *slot) free(quantum Share) Share {
	if s.closed() || s.kind() == KindWhole {
		return 0
	}
	return max(0, s.capacity-s.used) / quantum * quantum
}

// freeInstances are the MIG instances that nobody holds.
func (s *slot) freeInstances() []Instance {
	if s.closed() || len(s.device.Instances) == 0 {
		return nil
	}
	var free []Instance
	for _, i := range s.device.Instances {
		if !slices.ContainsFunc(s.holdings, func(h Holding) bool { return h.Grant.Instance == i.UUID }) {
			free = append(free, i)
		}
	}
	return free
}

// slices is the part of the device that instance i is.
func (s *slot) slices(i Instance) Share { return s.device.part(i) }

func (s *slot) view() View {
	v := View{
		Device: s.device, Kind: s.kind(), Floor: s.floor, Holdings: slices.Clone(s.holdings),
		Excluded: s.excluded, Absent: s.absent, Instances: s.freeInstances(),
		FreeMemory: max(0, s.promisable()-s.promised()),
	}
	if !s.closed() && v.Kind != KindWhole {
		v.Free = max(0, s.capacity-s.used)
	}
	for _, i := range v.Instances {
		v.Free += s.slices(i)
	}
	if v.Free == 0 && len(v.Instances) == 0 {
		v.FreeMemory = 0
	}
	return v
}

// Check audits the book and returns everything that is wrong with it: a device
// promised beyond what it is, kinds mixed on one device, an instance promised
// twice, or the two sides of the book (by holder and by device) at odds. A
// healthy ledger has none.
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
		if len(grants) == 0 {
			continue
		}
		if !reflect.DeepEqual(canonical(grants), canonical(byHolder[holder])) {
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
		if a.Device != b.Device {
			return compareHolding(Holding{string(a.Device), a}, Holding{string(b.Device), b})
		}
		return compareHolding(Holding{"", a}, Holding{"", b})
	})
	return sorted
}

func (s *slot) check() []error {
	var errs []error
	var used Share
	instances := map[UUID]bool{}
	for _, h := range s.holdings {
		used += h.Grant.Share
		if h.Grant.kind() != s.kind() {
			errs = append(errs, fmt.Errorf("%s is held by %s and by %s", s.name(), s.kind(), h.Grant.kind()))
		}
		if h.Grant.Instance != "" && instances[h.Grant.Instance] {
			errs = append(errs, fmt.Errorf("the instance %s is promised twice", h.Grant.Instance))
		}
		instances[h.Grant.Instance] = true
	}
	if used != s.used {
		errs = append(errs, fmt.Errorf("%s counts %s promised, and the promises are %s", s.name(), s.used, used))
	}
	if s.kind() == KindShares && used > WholeDevice {
		errs = append(errs, fmt.Errorf("%s is promised %s times over", s.name(), used))
	}
	if s.kind() == KindWhole && len(s.holdings) > 1 {
		errs = append(errs, fmt.Errorf("%s is promised as a whole to %d holders", s.name(), len(s.holdings)))
	}
	if s.device.Memory > 0 && !s.absent && s.kind() != KindInstances && s.promised() > s.device.Usable() {
		errs = append(errs, fmt.Errorf("%s has promised %s of %s of memory", s.name(), s.promised(), s.device.Usable()))
	}
	return errs
}
