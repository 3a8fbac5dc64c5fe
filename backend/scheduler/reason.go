package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

type texts struct {
	machine session.Phrase
	cpus    *sentence // who has most of them
	memory  *sentence
	amounts *lack // of no devices
	devices []deviceText
	unread  string               // why some devices cannot be read
	lacking map[part]*lack       // by what is asked of devices
	few     map[amount]*sentence // on CPUs or memory
}

// amount is a number of CPUs or, in bytes, an amount of memory, for so many kernels. besides: CPUs are lacking, too.
type amount struct {
	n       int64
	memory  bool
	kernels int
	besides bool
}

type deviceText struct {
	view     gpu.View
	name     session.Phrase
	held     []session.Phrase // by grants: "0.5 held by train-a"
	parted   []session.Phrase // the same, and what is free beside
	foreign  []session.Phrase // "11.2 GiB held by pid 4312 (python, another user), not a session"
	returned []session.Phrase
	unread   bool // it cannot be read
	claim    gpu.Bytes
	slack    func(gpu.Bytes) gpu.Bytes
	measured bool
}

// holders are the most that a reason names of a kind.
const holders = 3

// viewer is the person who reads a text for owner; empty if they may see every name.
func (r *room) viewer(owner string) string {
	if owner == r.ruler {
		return ""
	}
	return owner
}

// nameFor is the name of a session of owner for a viewer, who may not know those of others.
func nameFor(viewer, owner, name string) session.Phrase {
	if viewer == "" || owner == viewer {
		return plain(name)
	}
	return session.Say("anothers")
}

func (r *room) describe(viewer string) *texts {
	if t := r.texts[viewer]; t != nil {
		return t
	}
	t := &texts{
		unread:  r.machine.WhyUnread,
		machine: session.Fill(session.OnMachine, r.machine.Name),
		lacking: map[part]*lack{}, few: map[amount]*sentence{},
		cpus: spoken(session.Say("cpuHolders", as("holders",
			r.holders(viewer, func(p Promise) int64 { return int64(len(p.Grants.CPUs)) },
				func(n int64) string { return fmt.Sprint(n) })))),
		memory: spoken(session.Say("memoryHolders", as("holders",
			r.holders(viewer, func(p Promise) int64 { return int64(p.Grants.Memory) },
				func(n int64) string { return gpu.Bytes(n).String() })))),
	}
	for _, v := range r.ledger.Free() {
		if !v.Excluded && !v.Absent {
			t.devices = append(t.devices, r.describeDevice(viewer, v))
		}
	}
	t.amounts = t.lack(&sentence{})
	if r.texts == nil {
		r.texts = map[string]*texts{}
	}
	r.texts[viewer] = t
	return t
}

// holders names those who hold most of something.
func (r *room) holders(viewer string, amount func(Promise) int64, text func(int64) string) session.Phrase {
	holding := slices.DeleteFunc(slices.Clone(r.promised), func(p Promise) bool { return amount(p) == 0 })
	slices.SortStableFunc(holding, func(a, b Promise) int { return cmp.Compare(amount(b), amount(a)) })
	var parts []session.Phrase
	var others int64
	for i, p := range holding {
		if i >= holders {
			others += amount(p)
			continue
		}
		parts = append(parts, session.Say("holds", as("name", nameFor(viewer, p.Owner, p.Name)),
			as("amount", plain(text(amount(p))))))
	}
	if others > 0 {
		parts = append(parts, count("othersHold", len(holding)-holders, as("amount", plain(text(others)))))
	}
	if len(parts) == 0 {
		return session.Say("nobodyHolds")
	}
	return list(", ", parts)
}

func (r *room) describeDevice(viewer string, v gpu.View) deviceText {
	d := deviceText{view: v, name: plain(deviceName(v.Device)), slack: r.tolerance,
		unread: slices.Contains(r.machine.Unread, v.Device.UUID)}
	type holding struct {
		holder    string
		share     gpu.Share
		memory    gpu.Bytes
		instances int
	}
	var list []holding
	for _, h := range v.Holdings { // sorted by holder
		if n := len(list); n == 0 || list[n-1].holder != h.Holder {
			list = append(list, holding{holder: h.Holder})
		}
		last := &list[len(list)-1]
		last.share, last.memory = last.share+h.Grant.Share, last.memory+h.Grant.Memory
		if h.Grant.Instance != "" {
			last.instances++
		}
	}
	slices.SortStableFunc(list, func(a, b holding) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(r.arrival(a.holder), r.arrival(b.holder)))
	})
	for i, h := range list {
		if i == holders {
			d.held = append(d.held, count("more", len(list)-holders))
			break
		}
		name, share := as("name", r.nameOf(viewer, h.holder)), as("share", plain(h.share.String()))
		switch {
		case h.instances > 0:
			all := as("all", number(len(v.Device.Instances)))
			d.held = append(d.held, count("instanceHeld", h.instances, all, name))
		case v.Kind == gpu.KindWhole:
			d.held = append(d.held, session.Say("allHeld", name))
		case h.memory > 0:
			d.held = append(d.held, session.Say("heldMemory", share, as("memory", plain(h.memory.String())), name))
		default:
			d.held = append(d.held, session.Say("held", share, name))
		}
	}
	d.parted = d.held
	if v.Free > 0 {
		d.parted = append(slices.Clip(d.held), session.Say("free", as("share", plain(v.Free.String()))))
	}
	for _, m := range r.machine.Measured {
		if m.Device == v.Device.UUID {
			d.measured, d.claim = true, r.claims[m.Device]
			d.foreign = foreignText(viewer, m.Foreign)
			if m.Returned > 0 {
				d.returned = []session.Phrase{session.Say("returned", as("memory", plain(m.Returned.String())),
					session.Moment("at", m.Settles.Truncate(time.Second)))}
			}
		}
	}
	return d
}

// foreignText describes foreign processes; only the owner of the machine sees which they are.
func foreignText(viewer string, foreign []Foreign) (parts []session.Phrase) {
	if viewer != "" && len(foreign) > 0 {
		var all gpu.Bytes
		for _, f := range foreign {
			all += f.Memory
		}
		return []session.Phrase{count("foreignSum", len(foreign), as("memory", plain(all.String())))}
	}
	sorted := slices.Clone(foreign)
	slices.SortStableFunc(sorted,
		func(a, b Foreign) int { return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.PID, b.PID)) })
	var rest gpu.Bytes
	for i, f := range sorted {
		if i >= holders {
			rest += f.Memory
			continue
		}
		user := plain(f.User)
		if f.User == "" {
			user = session.Say("anotherUser")
		}
		parts = append(parts, session.Say("foreign", as("memory", plain(f.Memory.String())), as("pid", number(f.PID)),
			as("program", plain(f.Name)), as("user", user)))
	}
	if rest > 0 {
		parts = append(parts, count("foreignMore", len(sorted)-holders, as("memory", plain(rest.String()))))
	}
	return parts
}

func (r *room) nameOf(viewer, holder string) session.Phrase {
	if i := r.arrival(holder); i >= 0 {
		return nameFor(viewer, r.promised[i].Owner, r.promised[i].Name)
	}
	return plain(holder)
}

func (r *room) arrival(holder string) int {
	return slices.IndexFunc(r.promised, func(p Promise) bool { return string(p.Session) == holder })
}

func deviceName(d gpu.Device) string { return fmt.Sprintf("GPU %d", d.Index) }

// explainDevices explains for each device why it cannot be allocated. If all have one code, it is that of the wait.
func (t *texts) explainDevices(q Request) *lack {
	const named = 4
	parts := make([]session.Phrase, 0, named+1)
	left := 0
	codes := map[session.Code]bool{}
	for _, d := range t.devices {
		reasons, code := d.blocks(q)
		if len(reasons) == 0 {
			continue
		}
		codes[code] = true
		if len(parts) == named {
			left++
			continue
		}
		parts = append(parts, session.Say("deviceWhy", as("name", d.name), as("why", list(", ", reasons))))
	}
	if len(parts) == 0 {
		return t.lack(spoken(session.Say("noFit", as("need", needText(q)))))
	}
	if left > 0 {
		parts = append(parts, count("othersTaken", left))
	}
	devices := session.Say("deviceHolders", as("devices", list("; ", parts)))
	if codes[session.CodeWaitDriver] && t.unread != "" {
		devices = list(" ", []session.Phrase{devices, plain(t.unread)})
	}
	said := spoken(session.Say("fewDevices", as("what", t.needOf(q)), t.machine))
	said.details = spoken(devices)
	l := t.lack(said)
	for code := range codes {
		if len(codes) == 1 {
			l.code = code
		}
	}
	return l
}

// needOf is what q asks of the devices, and how many there are.
func (t *texts) needOf(q Request) (need session.Phrase) {
	switch asked := q.GPU; {
	case asked.Memory > 0:
		need = count("vramOf", len(t.devices), as("amount", plain(asked.Memory.String())))
	case asked.Devices > 0:
		need = count("gpuOf", len(t.devices), as("amount", number(asked.Devices)))
	case asked.Profile != "":
		all := 0
		for _, d := range t.devices {
			for _, i := range d.view.Device.Instances {
				if i.Profile == asked.Profile {
					all++
				}
			}
		}
		need = count("instanceOf", all, as("amount", number(max(1, asked.Count))), as("profile", plain(asked.Profile)))
	case asked.Shares > gpu.WholeDevice:
		need = count("gpuOf", len(t.devices), as("amount", plain(asked.Shares.String())))
	default:
		need = count("gpuShareOf", len(t.devices), as("share", plain(asked.Shares.String())))
	}
	if q.kernels() > 1 {
		return count("forEach", q.kernels(), as("what", need))
	}
	return need
}

// blocks returns what keeps q off a device, with its code: grants, other programs, or the kind of device.
func (d deviceText) blocks(q Request) (reasons []session.Phrase, code session.Code) {
	v := d.view
	switch {
	case q.GPU.Profile != "" && len(v.Device.Instances) == 0:
		return nil, ""
	case d.unread:
		return []session.Phrase{session.Say(unread)}, session.CodeWaitDriver
	case v.Device.Lost != nil:
		return []session.Phrase{session.Say("lost", as("why", plain(v.Device.Lost.Why)))}, session.CodeWaitResources
	case v.Over != "":
		return append([]session.Phrase{session.Say("overAllocated", as("why", plain(v.Over)))}, d.held...),
			session.CodeWaitResources
	}
	var lacksPromise bool
	var need gpu.Bytes
	switch asked := q.GPU; {
	case asked.Profile != "":
		free := 0
		for _, i := range v.Instances {
			if i.Profile == asked.Profile {
				free++
			}
		}
		lacksPromise = free < max(1, asked.Count)
	case asked.Devices > 0:
		lacksPromise, need = v.Kind != gpu.KindFree, v.FreeMemory-d.slack(v.FreeMemory)
	case asked.Memory > 0:
		lacksPromise, need = v.FreeMemory < asked.Memory, asked.Memory
	default:
		share := min(asked.Shares, gpu.WholeDevice)
		lacksPromise, need = v.Free < share, share.Of(v.Device.Usable()-v.Floor)
		need -= d.slack(need)
	}
	if lacksPromise && len(d.held) > 0 {
		if reasons = d.parted; q.GPU.Devices > 0 || q.GPU.Profile != "" {
			reasons = d.held // what is free of it is of no use
		}
	}
	if d.measured && !lacksPromise && d.claim < need {
		claim := plain(max(0, d.claim).String())
		switch {
		case len(d.foreign) > 0:
			reasons = slices.Clip(d.foreign)
		case len(d.returned) > 0:
		case len(d.held) > 0:
			reasons = []session.Phrase{session.Say("byDriver", as("memory", claim), as("held", list(", ", d.held)))}
		default:
			reasons = []session.Phrase{session.Say("byDriverAlone", as("memory", claim))}
		}
	}
	code = session.CodeWaitResources
	if len(reasons) == 0 {
		code = session.CodeWaitSettle
	}
	if !lacksPromise {
		reasons = append(reasons, d.returned...)
	}
	return reasons, code
}

func needText(q Request) session.Phrase {
	need := session.Say("share", as("share", plain(q.GPU.Shares.String())))
	switch asked := q.GPU; {
	case asked.Memory > 0:
		need = plain(asked.Memory.String())
	case asked.Devices > 0:
		need = count("wholeDevice", asked.Devices)
	case asked.Profile != "":
		need = count("instance", max(1, asked.Count), as("profile", plain(asked.Profile)))
	}
	if q.kernels() > 1 {
		return count("forEach", q.kernels(), as("what", need))
	}
	return need
}

func (q Request) needs() session.Phrase {
	cpus, memory := as("cpus", count("cpu", q.cpus())), as("memory", plain(q.memory().String()))
	switch {
	case q.GPU.IsZero():
		return session.Say("needs", cpus, memory)
	case q.GPU.Devices > 0 || q.GPU.Profile != "":
		return session.Say("needsDevices", cpus, memory, as("need", needText(q)))
	}
	return session.Say("needsPart", cpus, memory, as("need", needText(q)))
}

// waitTurn explains why q, which would fit, does not start before the head.
func (p *planner) waitTurn(q Request) session.Wait {
	v := p.head
	needs, name, first := as("needs", q.needs()), as("name", p.headFor(q)), as("first", v.needs)
	said := session.Say("turn", needs, name, first)
	if v.at != nil {
		said = session.Say("turnAt", needs, name, first, v.latest)
	}
	return session.Wait{Code: session.CodeWaitTurn, Message: said.English(), Said: []session.Phrase{said}, Until: v.at}
}

func (p *planner) headFor(q Request) session.Phrase {
	return nameFor(p.room.viewer(q.Owner), p.head.head.Owner, p.head.head.Name)
}

func (p *planner) grantText(kernels []session.Grants) string {
	var parts []string
	for i, k := range kernels {
		text := fmt.Sprintf("CPUs %s and %s of memory", session.Ranges(k.CPUs), k.Memory)
		if len(k.CPUs) == 1 {
			text = fmt.Sprintf("CPU %d and %s of memory", k.CPUs[0], k.Memory)
		}
		for _, g := range k.GPUs {
			text += ", " + p.deviceGrant(g)
		}
		if len(kernels) > 1 {
			text += " for " + session.KernelName(i)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ") + "."
}

func (p *planner) deviceGrant(g gpu.Grant) string {
	name := string(g.Device)
	for _, d := range p.snapshot.Machine.Devices {
		if d.UUID == g.Device {
			name = deviceName(d)
		}
	}
	switch {
	case g.Instance != "":
		return "instance " + string(g.Instance) + " of " + name
	case g.Whole:
		return "all of " + name
	}
	return fmt.Sprintf("%s of %s (%s)", g.Share, name, g.Memory)
}

func count(key string, n int, holes ...session.Phrase) session.Phrase {
	return session.Phrase{Say: key, Count: n, With: holes}
}

func as(hole string, p session.Phrase) session.Phrase {
	p.Hole = hole
	return p
}

// plain is a name or an amount, the same in every language.
func plain(text string) session.Phrase { return session.Phrase{Text: text} }

func number(n int) session.Phrase { return plain(strconv.Itoa(n)) }

func list(join string, pieces []session.Phrase) session.Phrase {
	return session.Phrase{Text: join, With: pieces}
}
