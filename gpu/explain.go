package gpu

import (
	"fmt"
	"strings"
)

// Obstacle says what one device has free and who holds the rest. Reason is a
// clause without a full stop, for example "0.3 of 1 free, held by s1 (0.7)".
type Obstacle struct {
	Device  UUID      `json:"device"`
	Name    string    `json:"name"` // for example "GPU 0"
	Free    Share     `json:"free"`
	Memory  Bytes     `json:"memory"` // what is free of its memory by both books
	Holders []Holding `json:"holders,omitempty"`
	Short   bool      `json:"short,omitempty"` // the promises leave enough, but the memory is in use
	Reason  string    `json:"reason"`
}

// Explain says device by device what keeps r from being granted, in numbers
// and with the names of holders. It is for a request that [Ledger.Offer]
// refused with the same room.
func (l *Ledger) Explain(r Request, room Room) []Obstacle {
	var obstacles []Obstacle
	for _, s := range l.slots {
		v := l.view(s)
		o := Obstacle{Device: s.device.UUID, Name: s.name(), Free: v.Free, Memory: v.FreeMemory, Holders: v.Holdings}
		if limit, ok := room[s.device.UUID]; ok {
			o.Memory = max(0, min(o.Memory, limit))
			o.Short = enough(r, v) && l.short(r, s, limit)
		}
		o.Reason = s.reason(r, v, &o)
		obstacles = append(obstacles, o)
	}
	return obstacles
}

func (s *slot) reason(r Request, v View, o *Obstacle) string {
	switch {
	case v.Device.Lost != nil:
		return "lost: " + v.Device.Lost.Why
	case v.Excluded:
		return "excluded from use"
	case v.Absent:
		return "not found any more"
	case v.Over != "":
		return "over-allocated: " + v.Over
	case r.Profile == "" && len(s.device.Instances) > 0:
		return "divided into MIG instances"
	case r.Profile != "":
		return s.reasonOfInstances(r, v)
	case v.Kind == KindWhole:
		return "held as a whole by " + v.Holdings[0].Holder
	case v.Kind == KindShares && r.Devices > 0:
		return "shared by " + names(v.Holdings)
	case v.Kind == KindInstances:
		return "held by MIG instance by " + names(v.Holdings)
	case o.Short:
		return fmt.Sprintf("%s of %s of memory really free", o.Memory, s.device.Usable())
	case r.Memory > 0:
		return fmt.Sprintf("%s of %s of memory free%s", v.FreeMemory, s.promisable(), heldBy(v.Holdings))
	}
	return fmt.Sprintf("%s of %s free%s", v.Free, s.capacity, heldBy(v.Holdings))
}

// short says whether limit is less than r needs of s.
func (l *Ledger) short(r Request, s *slot, limit Bytes) bool {
	switch {
	case r.Memory > 0:
		return limit < r.Memory
	case r.Devices > 0:
		return limit < s.needed(l.config.Slack)
	}
	return s.within(limit, l.config.Quantum, l.config.Slack) < min(r.Shares, WholeDevice)
}

// enough says whether the promises alone would let v give something of r.
func enough(r Request, v View) bool {
	return v.Free >= min(r.Shares, WholeDevice) && v.FreeMemory >= r.Memory
}

func (s *slot) reasonOfInstances(r Request, v View) string {
	count := func(instances []Instance) (n int) {
		for _, i := range instances {
			if i.Profile == r.Profile {
				n++
			}
		}
		return n
	}
	all := count(s.device.Instances)
	if all == 0 {
		return "no instance of profile " + r.Profile
	}
	return fmt.Sprintf("%d of %d instances of %s free%s", count(v.Instances), all, r.Profile, heldBy(v.Holdings))
}

func heldBy(holdings []Holding) string {
	if len(holdings) == 0 {
		return ""
	}
	return ", held by " + names(holdings)
}

func names(holdings []Holding) string {
	var text []string
	for _, h := range holdings {
		text = append(text, fmt.Sprintf("%s (%s)", h.Holder, h.Grant.Share))
	}
	return strings.Join(text, ", ")
}
