package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

type room struct {
	machine  Machine
	free     []int // CPU numbers, least busy first
	memory   gpu.Bytes
	ledger   *gpu.Ledger
	claims   map[gpu.UUID]gpu.Bytes // free by the driver and not claimed by grants; absent: not measured
	promised []Promise
	unfit    map[part]bool     // what devices are known not to have, until something is released
	texts    map[string]*texts // of holders, by viewer, until something changes; nil: not made
	ruler    string            // who may see every name

	contradictions []string // in the grants before the plan
}

func newRoom(s Snapshot) *room {
	r := &room{machine: s.Machine, memory: s.Machine.Memory, promised: slices.Clone(s.Promised), unfit: map[part]bool{},
		claims: map[gpu.UUID]gpu.Bytes{}, ruler: s.Ruler}
	taken := map[int]bool{}
	grants := map[string][]gpu.Grant{}
	for _, p := range s.Promised {
		r.memory -= p.Grants.Memory
		for _, cpu := range p.Grants.CPUs {
			taken[cpu] = true
		}
		if len(p.Grants.GPUs) > 0 {
			grants[string(p.Session)] = p.Grants.GPUs
		}
	}
	for _, cpu := range s.Machine.CPUs {
		if !taken[cpu] && !slices.Contains(r.free, cpu) {
			r.free = append(r.free, cpu)
		}
	}
	slices.SortFunc(r.free, func(a, b int) int {
		// In tenths, so that noise does not scatter sessions over the machine.
		return cmp.Or(int(s.Machine.Busy[a]*10)-int(s.Machine.Busy[b]*10), a-b)
	})
	r.ledger = gpu.Restore(s.Machine.given(), s.Machine.Giving, grants)
	for _, wrong := range r.ledger.Check() {
		r.contradictions = append(r.contradictions, wrong.Error())
	}
	for _, m := range s.Machine.Measured {
		r.claims[m.Device] = m.Free - m.Returned
	}
	return r
}

// given are the devices for the ledger: those that cannot be read count as lost.
func (m Machine) given() []gpu.Device {
	devices := slices.Clone(m.Devices)
	for i := range devices {
		if devices[i].Lost == nil && slices.Contains(m.Unread, devices[i].UUID) {
			devices[i].Lost = &gpu.Loss{Kind: gpu.LossSilent, Why: session.Say(unread).English()}
		}
	}
	return devices
}

// unread is the phrase for a device whose free memory is unknown.
const unread = "unread"

// memoryOn is the memory of a device in grants, without instances, which have memory of their own.
func memoryOn(grants []gpu.Grant, device gpu.UUID) (sum gpu.Bytes) {
	for _, g := range grants {
		if g.Device == device && g.Instance == "" {
			sum += g.Memory
		}
	}
	return sum
}

func (r *room) clone() *room {
	c := *r
	c.free, c.promised = slices.Clone(r.free), slices.Clone(r.promised)
	c.unfit, c.claims = maps.Clone(r.unfit), maps.Clone(r.claims)
	c.ledger = r.ledger.Clone()
	return &c
}

// find returns what each kernel of q would be allocated, or nil if it does not fit now. Devices in avoid are not used.
func (r *room) find(q Request, avoid map[gpu.UUID]bool) []session.Grants {
	if q.cpus() > len(r.free) || q.memory() > r.memory {
		return nil
	}
	devices, ok := r.devices(q, avoid)
	if !ok {
		return nil
	}
	grants := make([]session.Grants, q.kernels())
	for i := range grants {
		grants[i] = session.Grants{CPUs: slices.Clone(r.free[i*q.CPU : (i+1)*q.CPU]), Memory: q.Memory}
		slices.Sort(grants[i].CPUs)
		if len(devices) > 0 {
			grants[i].GPUs = devices[i]
		}
	}
	return grants
}

func (r *room) devices(q Request, avoid map[gpu.UUID]bool) ([][]gpu.Grant, bool) {
	if q.GPU.IsZero() {
		return nil, true
	}
	if r.unfit[q.part()] {
		return nil, false
	}
	found, ok := r.propose(q, avoid)
	if !ok && len(avoid) == 0 {
		r.unfit[q.part()] = true
	}
	return found, ok
}

func (r *room) propose(q Request, avoid map[gpu.UUID]bool) ([][]gpu.Grant, bool) {
	ledger, limits := r.ledger, r.limits(avoid)
	if q.kernels() > 1 {
		ledger = ledger.Clone()
	}
	found := make([][]gpu.Grant, q.kernels())
	for i := range found {
		grants, ok := ledger.Offer(q.GPU, limits)
		if !ok {
			return nil, false
		}
		found[i] = grants
		if i+1 == len(found) {
			break
		}
		if ledger.Hold(string(q.Session)+"/"+strconv.Itoa(i), grants) != nil {
			return nil, false
		}
		subtract(limits, grants)
	}
	return found, true
}

// limits is how much memory of each device can be allocated by the driver's book. The ledger itself tolerates a little
// use by others for requests of a share or of whole devices.
func (r *room) limits(avoid map[gpu.UUID]bool) gpu.Room {
	limits := make(gpu.Room, len(r.claims)+len(avoid))
	for device, claim := range r.claims {
		limits[device] = max(0, claim)
	}
	for device := range avoid {
		limits[device] = 0
	}
	return limits
}

// tolerance is how much of the memory of a share or a whole device may be missing by the driver's book.
func (r *room) tolerance(memory gpu.Bytes) gpu.Bytes {
	slack := r.machine.Giving.Slack
	if slack == 0 {
		slack = gpu.DefaultSlack
	}
	return gpu.Share(max(0, slack)).Of(memory)
}

// take allocates grants to q. It reports false, and allocates nothing, if the ledger does not have the devices free.
func (r *room) take(q Request, grants []session.Grants, now time.Time) bool {
	total := Placement{Kernels: grants}.Total()
	if len(total.GPUs) > 0 {
		if r.ledger.Hold(string(q.Session), total.GPUs) != nil {
			return false
		}
		subtract(r.claims, total.GPUs)
	}
	r.free = slices.DeleteFunc(slices.Clone(r.free), func(cpu int) bool { return slices.Contains(total.CPUs, cpu) })
	r.memory -= total.Memory
	p := Promise{Session: q.Session, Name: q.Name, Owner: q.Owner, Grants: total, Kinds: q.Kinds}
	if q.Timeout > 0 {
		p.Ends = new(now.Add(q.Timeout))
	}
	r.promised = append(r.promised, p)
	r.texts = nil
	return true
}

func subtract(claims map[gpu.UUID]gpu.Bytes, grants []gpu.Grant) {
	for _, g := range grants {
		if _, measured := claims[g.Device]; measured && g.Instance == "" {
			claims[g.Device] -= g.Memory
		}
	}
}

func (r *room) release(p Promise) {
	r.memory += p.Grants.Memory
	for _, cpu := range p.Grants.CPUs {
		if slices.Contains(r.machine.CPUs, cpu) {
			r.free = append(r.free, cpu)
		}
	}
	if len(p.Grants.GPUs) > 0 {
		r.ledger.Release(string(p.Session))
		for _, m := range r.machine.Measured {
			if memory := memoryOn(p.Grants.GPUs, m.Device); memory > 0 {
				r.claims[m.Device] += max(memory, m.Used[p.Session])
			}
		}
	}
	r.promised = slices.DeleteFunc(r.promised, func(other Promise) bool { return other.Session == p.Session })
	clear(r.unfit)
	r.texts = nil
}

// settle makes the memory that foreign processes returned count as free.
func (r *room) settle(m Measured) {
	r.claims[m.Device] += m.Returned
	clear(r.unfit)
}
