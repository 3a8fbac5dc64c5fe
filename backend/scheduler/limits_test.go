package scheduler

import (
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// sharers are the persons of a simulation with limits: what each may hold, and
// how many of a hundred sessions are theirs. Who has no limit shares the rest.
var sharers = []struct {
	owner string
	part  int
	limit session.Allowance
}{
	{"ann", 20, session.Allowance{Sessions: 2}},
	{"bob", 15, session.Allowance{CPU: 8}},
	{"carl", 15, session.Allowance{Memory: 24 * gpu.GiB}},
	{"dora", 15, session.Allowance{GPU: 1000}},
	{"emil", 20, session.Allowance{Sessions: 3, CPU: 12, Memory: 30 * gpu.GiB, GPU: 1500}},
}

// own gives every job to somebody, and has nobody ask for more than they may
// ever hold.
func (w *world) own() {
	w.allowed = map[string]session.Allowance{}
	for _, p := range sharers {
		w.allowed[p.owner] = p.limit
	}
	for _, j := range w.jobs {
		n := w.r.IntN(100)
		j.Owner = "free"
		for _, p := range sharers {
			if n -= p.part; n < 0 {
				j.Owner = p.owner
				break
			}
		}
		limit := w.allowed[j.Owner]
		if limit.CPU > 0 {
			j.CPU = max(1, min(j.CPU, limit.CPU/j.kernels()))
		}
		if limit.Memory > 0 {
			j.Memory = min(j.Memory, limit.Memory/gpu.Bytes(j.kernels()))
		}
		if limit.GPU > 0 {
			j.GPU.Devices = min(j.GPU.Devices, int(limit.GPU/gpu.WholeDevice))
		}
	}
}

// checkAllowed sums up what everybody holds.
func (w *world) checkAllowed() {
	held := map[string]session.Allowance{}
	for _, j := range w.running {
		h := held[j.Owner]
		h.Sessions, h.CPU, h.Memory = h.Sessions+1, h.CPU+len(j.given.CPUs), h.Memory+j.given.Memory
		for _, g := range j.given.GPUs {
			h.GPU += g.Share
		}
		held[j.Owner] = h
	}
	for owner, limit := range w.allowed {
		h := held[owner]
		if limit.Sessions > 0 && h.Sessions > limit.Sessions || limit.CPU > 0 && h.CPU > limit.CPU ||
			limit.Memory > 0 && h.Memory > limit.Memory || limit.GPU > 0 && h.GPU > limit.GPU {
			w.t.Errorf("%s holds %+v and may hold %+v", owner, h, limit)
		}
	}
}

func TestTenThousandSessionsKeepToTheirPersonsLimits(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 1_500
	}
	w := simulated(t, 4, 4)
	w.populate(count)
	w.own()
	w.run()
	longest, sum, jobs, full := map[string]time.Duration{}, map[string]time.Duration{}, map[string]int{},
		map[string]int{}
	for _, j := range w.jobs {
		from := j.arrives
		if j.NotBefore != nil && j.NotBefore.After(from) {
			from = *j.NotBefore
		}
		for _, n := range j.waitsOn {
			from = later(from, w.jobs[n].ends)
		}
		wait := j.starts.Sub(from)
		longest[j.Owner], sum[j.Owner] = max(longest[j.Owner], wait), sum[j.Owner]+wait
		jobs[j.Owner]++
		if wait > 0 {
			full[j.Owner]++
		}
	}
	for owner, n := range jobs {
		t.Logf("%s: %d sessions, %d had to wait, %s on average, %s at most", owner, n, full[owner],
			(sum[owner] / time.Duration(n)).Round(time.Second), longest[owner])
		if w.limited[owner] == 0 && owner != "free" {
			t.Errorf("the limit of %s never counted: the simulation is too easy", owner)
		}
		if longest[owner] > 72*time.Hour {
			t.Errorf("%s waited %s", owner, longest[owner])
		}
	}
}
