package scheduler

import (
	"strconv"

	"slipway/backend/session"
	"slipway/gpu"
)

// amounts are what an allowance limits.
type amounts struct {
	sessions int
	cpu      int
	memory   gpu.Bytes
	gpu      gpu.Share
}

func (a amounts) plus(b amounts) amounts {
	return amounts{a.sessions + b.sessions, a.cpu + b.cpu, a.memory + b.memory, a.gpu + b.gpu}
}

func heldBy(grants session.Grants) amounts {
	held := amounts{sessions: 1, cpu: len(grants.CPUs), memory: grants.Memory}
	for _, g := range grants.GPUs {
		held.gpu += g.Share
	}
	return held
}

// claim is what is kept of a person's allowance for a session of theirs that
// waits: what comes after it takes none of that, so that its turn comes.
type claim struct {
	name string
	amounts
}

// allowances are what the persons whose allowance is limited hold and keep
// while a plan is made.
type allowances struct {
	limits map[string]session.Allowance
	held   map[string]amounts
	kept   map[string][]claim
}

func newAllowances(s Snapshot) *allowances {
	a := &allowances{limits: s.Allowances, held: map[string]amounts{}, kept: map[string][]claim{}}
	if len(a.limits) == 0 {
		return a
	}
	for _, p := range s.Promised {
		a.hold(p.Owner, p.Grants)
	}
	return a
}

// limit is the allowance of a person; false where nothing is limited.
func (a *allowances) limit(owner string) (session.Allowance, bool) {
	limit := a.limits[owner]
	return limit, limit.Limits()
}

func (a *allowances) hold(owner string, grants session.Grants) {
	if _, limited := a.limit(owner); limited {
		a.held[owner] = a.held[owner].plus(heldBy(grants))
	}
}

// keep has what comes after q leave it what it asks for.
func (a *allowances) keep(q Request, asked amounts) {
	if _, limited := a.limit(q.Owner); limited {
		a.kept[q.Owner] = append(a.kept[q.Owner], claim{q.Name, asked})
	}
}

// lacks says in numbers why the allowance of q's person does not suffice for
// what q asks now, or nothing.
func (a *allowances) lacks(q Request, asked amounts) []sentence {
	limit, limited := a.limit(q.Owner)
	if !limited {
		return nil
	}
	held, kept := a.held[q.Owner], amounts{}
	var before session.Phrase
	for i, c := range a.kept[q.Owner] {
		kept = kept.plus(c.amounts)
		if i == 0 {
			before = plain(c.name)
		} else {
			before = session.Say("both", as("one", before), as("other", plain(c.name)))
		}
	}
	var said []sentence
	check := func(limit, held, kept, asked int64, what func(int64) session.Phrase, given func(int64) (string, int)) {
		if limit == 0 || asked == 0 || held+kept+asked <= limit {
			return
		}
		used, n := given(held)
		asks, _ := given(asked)
		var keeps session.Phrase
		if kept > 0 {
			amount, n := given(kept)
			keeps = count("kept", n, as("amount", plain(amount)), as("names", before))
		}
		said = append(said, spoken(count("limit", n, as("limit", what(limit)), as("used", plain(used)),
			as("kept", keeps), as("asked", plain(asks)))))
	}
	counted := func(n int64) (string, int) { return strconv.FormatInt(n, 10), int(n) }
	memory := func(n int64) (string, int) { return gpu.Bytes(n).String(), 1 }
	share := func(n int64) (string, int) { return gpu.Share(n).String(), 1 }
	check(int64(limit.Sessions), int64(held.sessions), int64(kept.sessions), int64(asked.sessions),
		func(n int64) session.Phrase { return count("sessions", int(n)) }, counted)
	check(int64(limit.CPU), int64(held.cpu), int64(kept.cpu), int64(asked.cpu),
		func(n int64) session.Phrase { return count("cpu", int(n)) }, counted)
	check(int64(limit.Memory), int64(held.memory), int64(kept.memory), int64(asked.memory),
		func(n int64) session.Phrase { return session.Say("memory", as("amount", plain(gpu.Bytes(n).String()))) },
		memory)
	check(int64(limit.GPU), int64(held.gpu), int64(kept.gpu), int64(asked.gpu), func(n int64) session.Phrase {
		return session.Say("ofDevices", as("share", plain(gpu.Share(n).String())))
	}, share)
	return said
}

// asks is what q asks of an allowance. Where it names no share of devices, it
// is what it would be given of devices that nobody holds.
func (p *planner) asks(q Request) amounts {
	a := amounts{sessions: 1, cpu: q.cpus(), memory: q.memory()}
	if _, limited := p.allowances.limit(q.Owner); limited && !q.GPU.IsZero() {
		a.gpu = p.shareOf(q)
	}
	return a
}

func (p *planner) shareOf(q Request) gpu.Share {
	share, known := p.shares[q.part()]
	if !known {
		share = ShareOf(p.snapshot.Machine, q.GPU, q.kernels())
		p.shares[q.part()] = share
	}
	return share
}

// ShareOf is how much of a machine's devices a request for so many kernels
// would be given if nobody held any of them, 0 where that cannot be.
func ShareOf(m Machine, request gpu.Request, kernels int) (share gpu.Share) {
	ledger, err := gpu.NewLedger(gpu.Mended(m.Devices), m.Giving)
	if err != nil || request.IsZero() {
		return 0
	}
	proposal, err := ledger.Propose(request)
	if err != nil {
		return 0
	}
	for _, g := range proposal.Grants {
		share += g.Share
	}
	return share * gpu.Share(max(1, kernels))
}

// overAllowance has q wait for its person's own allowance where that is what it
// lacks. It then holds up nobody but later sessions of the same person.
func (p *planner) overAllowance(q Request, asked amounts) bool {
	said := p.allowances.lacks(q, asked)
	if len(said) == 0 {
		return false
	}
	p.wait(q, waitFor(session.CodeWaitLimit, said...))
	if len(p.allowances.kept[q.Owner]) == 0 {
		p.allowances.keep(q, asked)
	}
	return true
}

// neverAllowed says why q can never be within its person's allowance, which was
// larger when it was launched.
func (p *planner) neverAllowed(q Request) []sentence {
	limit, limited := p.allowances.limit(q.Owner)
	if !limited {
		return nil
	}
	asked := p.asks(q)
	var said []sentence
	for _, wrong := range limit.Refuse(session.Ask{CPU: asked.cpu, Memory: asked.memory, GPU: asked.gpu}) {
		said = append(said, spoken(plain(wrong.Message)))
	}
	return said
}
