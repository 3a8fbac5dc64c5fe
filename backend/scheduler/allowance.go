package scheduler

import (
	"strconv"

	"slipway/backend/session"
	"slipway/gpu"
)

func heldBy(grants session.Grants) session.Ask {
	held := session.Ask{Sessions: 1, CPU: len(grants.CPUs), Memory: grants.Memory}
	for _, g := range grants.GPUs {
		held.GPU += g.Share
	}
	return held
}

// claim is what a waiting session reserves of its person's allowance, so that later sessions do not use it.
type claim struct {
	name string
	session.Ask
}

// allowances are what people with limited allowances hold and reserve while a plan is made.
type allowances struct {
	limits map[string]session.Allowance
	held   map[string]session.Ask
	kept   map[string][]claim
}

func newAllowances(s Snapshot) *allowances {
	a := &allowances{limits: s.Allowances, held: map[string]session.Ask{}, kept: map[string][]claim{}}
	for _, p := range s.Promised {
		a.hold(p.Owner, p.Grants)
	}
	return a
}

func (a *allowances) limit(owner string) (session.Allowance, bool) {
	limit := a.limits[owner]
	return limit, limit.Limits()
}

func (a *allowances) hold(owner string, grants session.Grants) { a.take(owner, heldBy(grants)) }

func (a *allowances) take(owner string, held session.Ask) {
	if _, limited := a.limit(owner); limited {
		a.held[owner] = a.held[owner].Plus(held)
	}
}

func (a *allowances) keep(q Request, asked session.Ask) {
	if _, limited := a.limit(q.Owner); limited {
		a.kept[q.Owner] = append(a.kept[q.Owner], claim{q.Name, asked})
	}
}

// lacks explains in numbers why the allowance of q's person is too small for q now; empty if it is not.
func (a *allowances) lacks(q Request, asked session.Ask) []*sentence {
	limit, limited := a.limit(q.Owner)
	if !limited {
		return nil
	}
	held, kept := a.held[q.Owner], session.Ask{}
	var before session.Phrase
	for i, c := range a.kept[q.Owner] {
		kept = kept.Plus(c.Ask)
		if i == 0 {
			before = plain(c.name)
		} else {
			before = session.Say("both", as("one", before), as("other", plain(c.name)))
		}
	}
	var said []*sentence
	for _, one := range []struct {
		limit, held, kept, asked int64
		what                     session.Phrase
		amount                   func(int64) string // nil: it is counted
	}{
		{int64(limit.Sessions), int64(held.Sessions), int64(kept.Sessions), int64(asked.Sessions),
			count("sessions", limit.Sessions), nil},
		{int64(limit.CPU), int64(held.CPU), int64(kept.CPU), int64(asked.CPU), count("cpu", limit.CPU), nil},
		{int64(limit.Memory), int64(held.Memory), int64(kept.Memory), int64(asked.Memory),
			session.Say("memory", as("amount", plain(limit.Memory.String()))),
			func(n int64) string { return gpu.Bytes(n).String() }},
		{int64(limit.GPU), int64(held.GPU), int64(kept.GPU), int64(asked.GPU),
			session.Say("ofDevices", as("share", plain(limit.GPU.String()))),
			func(n int64) string { return gpu.Share(n).String() }},
	} {
		if one.limit == 0 || one.asked == 0 || one.held+one.kept+one.asked <= one.limit {
			continue
		}
		given := func(n int64) (string, int) { // an amount counts as one
			if one.amount != nil {
				return one.amount(n), 1
			}
			return strconv.FormatInt(n, 10), int(n)
		}
		used, n := given(one.held)
		asks, _ := given(one.asked)
		var keeps session.Phrase
		if one.kept > 0 {
			amount, n := given(one.kept)
			keeps = count("kept", n, as("amount", plain(amount)), as("names", before))
		}
		said = append(said, spoken(count("limit", n, as("limit", one.what), as("used", plain(used)), as("kept", keeps),
			as("asked", plain(asks)))))
	}
	return said
}

// asks is what q asks of an allowance. Without a share of devices it is the share that it would get of free ones.
func (p *planner) asks(q Request) session.Ask {
	a := session.Ask{Sessions: 1, CPU: q.cpus(), Memory: q.memory()}
	if _, limited := p.allowances.limit(q.Owner); limited && !q.GPU.IsZero() {
		share, known := p.shares[q.part()]
		if !known {
			share = ShareOf(p.snapshot.Machine, q.GPU, q.kernels())
			p.shares[q.part()] = share
		}
		a.GPU = share
	}
	return a
}

// ShareOf is the share of a machine's devices, all free, that a request for so many kernels would get, or 0. Where the
// machine lists no devices, it is the share that is asked for.
func ShareOf(m Machine, request gpu.Request, kernels int) (share gpu.Share) {
	if len(m.Devices) == 0 {
		return (request.Shares + gpu.Share(request.Devices)*gpu.WholeDevice) * gpu.Share(max(1, kernels))
	}
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

// overAllowance makes q wait if its person's allowance is too small now. Only that person's sessions wait behind it.
func (p *planner) overAllowance(q Request, asked session.Ask) bool {
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

// neverAllowed explains why q can never be within its person's allowance, which was larger at the launch.
func (p *planner) neverAllowed(q Request) []*sentence {
	limit, limited := p.allowances.limit(q.Owner)
	if !limited {
		return nil
	}
	var said []*sentence
	for _, wrong := range limit.Refuse(p.asks(q)) {
		said = append(said, spoken(plain(wrong.Message)))
	}
	return said
}
