package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// texts says who holds what, in clauses that many reasons share.
type texts struct {
	cpus    string
	memory  string
	devices []deviceText
	unread  string            // why the drivers of some do not tell what is free
	lacking map[part]lack     // by what is asked of devices
	few     map[amount]string // clauses on CPUs or memory
}

// amount is so much of CPUs or, in bytes, of memory, for so many kernels.
type amount struct {
	n       int64
	memory  bool
	kernels int
}

// lack says why devices cannot be had.
type lack struct {
	text string
	code session.Code
}

// deviceText says what is free of one device and who has the rest.
type deviceText struct {
	view     gpu.View
	name     string
	held     string // by promises: "0.5 held by train-a"
	foreign  string // "11.2 GiB held by pid 4312 (python, another user), not a session"
	returned string
	unread   bool // its driver does not tell what is free
	claim    gpu.Bytes
	slack    func(gpu.Bytes) gpu.Bytes
	measured bool
}

// holders are the most that a reason names of a kind.
const holders = 3

// viewer is who is told something of q's person: empty where they are told every
// name.
func (r *room) viewer(owner string) string {
	if owner == r.ruler {
		return ""
	}
	return owner
}

// anothers is what a session is called to those who may not know of it.
const anothers = "another person's session"

// nameFor is the name of a session of owner, as a viewer is told it.
func nameFor(viewer, owner, name string) string {
	if viewer == "" || owner == viewer {
		return name
	}
	return anothers
}

func (r *room) describe(viewer string) *texts {
	if t := r.texts[viewer]; t != nil {
		return t
	}
	t := &texts{
		unread:  r.machine.WhyUnread,
		lacking: map[part]lack{}, few: map[amount]string{},
		cpus:   r.holders(viewer, func(p Promise) int64 { return int64(len(p.Grants.CPUs)) }, func(n int64) string { return fmt.Sprint(n) }),
		memory: r.holders(viewer, func(p Promise) int64 { return int64(p.Grants.Memory) }, func(n int64) string { return gpu.Bytes(n).String() }),
	}
	if r.ledger != nil {
		for _, v := range r.ledger.Free() {
			if !v.Excluded && !v.Absent {
				t.devices = append(t.devices, r.describeDevice(viewer, v))
			}
		}
	}
	if r.texts == nil {
		r.texts = map[string]*texts{}
	}
	r.texts[viewer] = t
	return t
}

// holders names those who hold most of something.
func (r *room) holders(viewer string, amount func(Promise) int64, text func(int64) string) string {
	holding := slices.DeleteFunc(slices.Clone(r.promised), func(p Promise) bool { return amount(p) == 0 })
	slices.SortStableFunc(holding, func(a, b Promise) int { return int(min(1, max(-1, amount(b)-amount(a)))) })
	var parts []string
	var others int64
	for i, p := range holding {
		if i >= holders {
			others += amount(p)
			continue
		}
		parts = append(parts, fmt.Sprintf("%s holds %s", nameFor(viewer, p.Owner, p.Name), text(amount(p))))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%s %s", plural(len(holding)-holders, "other holds", "others hold"), text(others)))
	}
	if len(parts) == 0 {
		return "no session holds any of it"
	}
	return strings.Join(parts, ", ")
}

func (r *room) describeDevice(viewer string, v gpu.View) deviceText {
	d := deviceText{view: v, name: deviceName(v.Device), slack: r.tolerance, unread: slices.Contains(r.machine.Unread, v.Device.UUID)}
	shares := map[string]gpu.Share{}
	memory := map[string]gpu.Bytes{}
	instances := map[string]int{}
	var order []string
	for _, h := range v.Holdings {
		if _, seen := shares[h.Holder]; !seen {
			order = append(order, h.Holder)
		}
		shares[h.Holder] += h.Grant.Share
		memory[h.Holder] += h.Grant.Memory
		if h.Grant.Instance != "" {
			instances[h.Holder]++
		}
	}
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), cmp.Compare(r.arrival(a), r.arrival(b)))
	})
	var parts []string
	for i, holder := range order {
		if i == holders {
			parts = append(parts, fmt.Sprintf("%d more", len(order)-holders))
			break
		}
		switch name := r.nameOf(viewer, holder); {
		case instances[holder] > 0:
			parts = append(parts, fmt.Sprintf("%s of %d held by %s", plural(instances[holder], "instance", "instances"), len(v.Device.Instances), name))
		case v.Kind == gpu.KindWhole:
			parts = append(parts, "all held by "+name)
		case memory[holder] > 0:
			parts = append(parts, fmt.Sprintf("%s (%s) held by %s", shares[holder], memory[holder], name))
		default:
			parts = append(parts, fmt.Sprintf("%s held by %s", shares[holder], name))
		}
	}
	d.held = strings.Join(parts, ", ")
	for _, m := range r.machine.Measured {
		if m.Device == v.Device.UUID {
			d.measured, d.claim = true, r.claims[m.Device]
			d.foreign = foreignText(m.Foreign)
			if m.Returned > 0 {
				d.returned = fmt.Sprintf("%s given back a moment ago and counted as free once nobody has taken it until %s", m.Returned, m.Settles.UTC().Format("15:04:05 UTC"))
			}
		}
	}
	return d
}

func foreignText(foreign []Foreign) string {
	sorted := slices.Clone(foreign)
	slices.SortStableFunc(sorted, func(a, b Foreign) int {
		return int(min(1, max(-1, b.Memory-a.Memory)))*2 + min(1, max(-1, a.PID-b.PID))
	})
	var parts []string
	var rest gpu.Bytes
	for i, f := range sorted {
		if i >= holders {
			rest += f.Memory
			continue
		}
		user := f.User
		if user == "" {
			user = "another user"
		}
		parts = append(parts, fmt.Sprintf("%s held by pid %d (%s, %s), not a session", f.Memory, f.PID, f.Name, user))
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%s by %d more that are no sessions", rest, len(sorted)-holders))
	}
	return strings.Join(parts, ", ")
}

func (r *room) nameOf(viewer, holder string) string {
	for _, p := range r.promised {
		if string(p.Session) == holder {
			return nameFor(viewer, p.Owner, p.Name)
		}
	}
	return holder
}

// arrival is the place of a holder among all that hold anything.
func (r *room) arrival(holder string) int {
	return slices.IndexFunc(r.promised, func(p Promise) bool { return string(p.Session) == holder })
}

func deviceName(d gpu.Device) string { return fmt.Sprintf("GPU %d", d.Index) }

// explain says in numbers what q lacks and who holds it.
func (r *room) explain(q Request) session.Wait {
	t := r.describe(r.viewer(q.Owner))
	w := session.Wait{Code: CodeWaitResources}
	var cpus, memory, devices, also, then string
	if q.cpus() > len(r.free) {
		cpus = r.clause(t, amount{int64(q.cpus()), false, q.kernels()})
	}
	if q.memory() > r.memory {
		memory = r.clause(t, amount{int64(q.memory()), true, q.kernels()})
	}
	first := cpus
	if cpus == "" {
		first, memory = memory, ""
	} else if memory != "" {
		also = " It also "
	}
	if _, ok := r.devices(q, nil); !ok {
		l, known := t.lacking[q.part()]
		if !known {
			l = t.explainDevices(q)
			t.lacking[q.part()] = l
		}
		if devices = l.text; first != "" {
			then = " "
		} else {
			w.Code = l.code
		}
	}
	if first != "" {
		first = first[1:]
		w.Message = "N" + first + also + memory + then + devices
		return w
	}
	w.Message = devices
	return w
}

// clause says what is lacking of an amount; it is made once.
func (r *room) clause(t *texts, a amount) string {
	if text, known := t.few[a]; known {
		return text
	}
	of := ""
	if a.kernels > 1 {
		of = fmt.Sprintf(" for %d kernels", a.kernels)
	}
	text := fmt.Sprintf("needs %s%s, %d of %d %s free; %s.", plural(int(a.n), "CPU", "CPUs"), of, len(r.free), len(r.machine.CPUs), isAre(len(r.free)), t.cpus)
	if a.memory {
		text = fmt.Sprintf("needs %s of memory%s, %s of %s is free; %s.", gpu.Bytes(a.n), of, max(0, r.memory), r.machine.Memory, t.memory)
	}
	t.few[a] = text
	return text
}

// explainDevices says for each device why it cannot be had. Where only what was
// given back a moment ago is missing, or only a driver's answer, the code says
// that.
func (t *texts) explainDevices(q Request) lack {
	const named = 4
	var parts []string
	left := 0
	codes := map[session.Code]bool{}
	for _, d := range t.devices {
		reason, code := d.blocks(q)
		if reason == "" {
			continue
		}
		codes[code] = true
		if len(parts) == named {
			left++
			continue
		}
		parts = append(parts, d.name+": "+reason)
	}
	need := "needs " + needText(q)
	if len(parts) == 0 {
		return lack{"N" + need[1:] + ", and what is free of the devices does not make that up.", CodeWaitResources}
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("%s as well", plural(left, "other is taken", "others are taken")))
	}
	l := lack{strings.Join(parts, "; ") + "; " + need + ".", CodeWaitResources}
	for code := range codes {
		if len(codes) == 1 {
			l.code = code
		}
	}
	if codes[CodeWaitDriver] && t.unread != "" {
		l.text += " " + t.unread
	}
	return l
}

// blocks says what stands in the way of q on a device, and of which code that
// is: promises, other programs, or that it is of the wrong kind. Nothing where
// it has room.
func (d deviceText) blocks(q Request) (reason string, code session.Code) {
	v := d.view
	switch {
	case q.GPU.Profile != "" && len(v.Device.Instances) == 0:
		return "", ""
	case d.unread:
		return textUnread, CodeWaitDriver
	case v.Device.Lost != nil:
		return "lost: " + v.Device.Lost.Why, CodeWaitResources
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
	var parts []string
	if lacksPromise && d.held != "" {
		parts = append(parts, d.held)
		if v.Free > 0 && q.GPU.Devices == 0 && q.GPU.Profile == "" {
			parts = append(parts, v.Free.String()+" free")
		}
	}
	if d.measured && !lacksPromise && d.claim < need {
		switch {
		case d.foreign != "":
			parts = append(parts, d.foreign)
		case d.returned != "":
		case d.held != "":
			parts = append(parts, fmt.Sprintf("%s free by its driver, beside %s", max(0, d.claim), d.held))
		default:
			parts = append(parts, fmt.Sprintf("%s free by its driver, and nobody can be seen who holds the rest", max(0, d.claim)))
		}
	}
	code = CodeWaitResources
	if len(parts) == 0 {
		code = CodeWaitSettle
	}
	if d.returned != "" && !lacksPromise {
		parts = append(parts, d.returned)
	}
	return strings.Join(parts, ", "), code
}

// needText says what q asks for of devices.
func needText(q Request) string {
	each := ""
	if q.kernels() > 1 {
		each = fmt.Sprintf(" for each of %d kernels", q.kernels())
	}
	switch asked := q.GPU; {
	case asked.Memory > 0:
		return asked.Memory.String() + each
	case asked.Devices > 0:
		return plural(asked.Devices, "whole device", "whole devices") + each
	case asked.Profile != "":
		return plural(max(1, asked.Count), asked.Profile+" instance", asked.Profile+" instances") + each
	}
	return "a share of " + q.GPU.Shares.String() + each
}

// needs says everything that q asks for.
func (q Request) needs() string {
	text := fmt.Sprintf("%s and %s of memory", plural(q.cpus(), "CPU", "CPUs"), q.memory())
	if !q.GPU.IsZero() {
		text = fmt.Sprintf("%s, %s of memory and %s", plural(q.cpus(), "CPU", "CPUs"), q.memory(), needText(q))
		if !strings.Contains(text, "device") && q.GPU.Profile == "" {
			text += " of a device"
		}
	}
	return text
}

// waitTurn says why q, which would fit, does not go ahead of the head.
func (p *planner) waitTurn(q Request) session.Wait {
	v := p.head
	if v.text == "" {
		v.text = "it is first in line and needs " + v.head.needs()
		if v.at != nil {
			v.text += ", which it gets at " + v.at.UTC().Format("2006-01-02 15:04:05 UTC") + " at the latest"
		}
	}
	return session.Wait{Code: CodeWaitTurn, Message: fmt.Sprintf("Needs %s, which is free but kept for %s: %s.", q.needs(), p.headFor(q), v.text), Until: v.at}
}

// headFor is the name of the head, as q's person is told it.
func (p *planner) headFor(q Request) string {
	return nameFor(p.room.viewer(q.Owner), p.head.head.Owner, p.head.head.Name)
}

// grantText says what a placement gives.
func (p *planner) grantText(kernels []session.Grants) string {
	var parts []string
	for i, k := range kernels {
		text := fmt.Sprintf("CPUs %v and %s of memory", k.CPUs, k.Memory)
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

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
