package scheduler

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// job is one session of a simulation: what it asks for and what only the world
// knows, how long it really runs.
type job struct {
	Request
	arrives time.Time
	runs    time.Duration
	starts  time.Time
	ends    time.Time
	given   session.Grants
	waitsOn []int // numbers of other jobs
}

// world plays a machine and its sessions against [Plan], and judges every plan
// with books of its own.
type world struct {
	t       *testing.T
	r       *rand.Rand
	machine Machine
	now     time.Time
	jobs    []*job
	byID    map[session.ID]*job
	queue   []*job
	running []*job
	events  moments
	foreign map[gpu.UUID]gpu.Bytes
	allowed map[string]session.Allowance // by owner
	limited map[string]int               // how often somebody waited for their own limit

	promised map[session.ID]time.Time // when the head was told that it starts at the latest
	plans    int
	slowest  time.Duration
	ahead    int // sessions that went ahead of a head
}

type moments []time.Time

func (m moments) Len() int           { return len(m) }
func (m moments) Less(i, j int) bool { return m[i].Before(m[j]) }
func (m moments) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)        { *m = append(*m, x.(time.Time)) }
func (m *moments) Pop() any          { x := (*m)[len(*m)-1]; *m = (*m)[:len(*m)-1]; return x }

func simulated(t *testing.T, seed uint64, devices int) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 3)), now: noon, byID: map[session.ID]*job{},
		foreign: map[gpu.UUID]gpu.Bytes{}, promised: map[session.ID]time.Time{}, limited: map[string]int{}}
	w.machine = Machine{Memory: 128 * gpu.GiB}
	for i := range 32 {
		w.machine.CPUs = append(w.machine.CPUs, i)
	}
	for i := range devices {
		w.machine.Devices = append(w.machine.Devices, gpu.Device{UUID: gpu.UUID(fmt.Sprint("GPU-", i)), Model: "T",
			Index: i, Memory: 24 * gpu.GiB, Reserved: 512 * gpu.MiB})
	}
	return w
}

// populate invents n jobs whose load is a little below what the machine holds.
func (w *world) populate(n int) {
	arrives := w.now
	for i := range n {
		arrives = arrives.Add(time.Duration(w.r.ExpFloat64() * float64(7*time.Minute)))
		j := &job{arrives: arrives, runs: time.Duration(1+w.r.IntN(90)) * time.Minute}
		j.Session = session.ID(fmt.Sprintf("s%05d", i))
		j.Name, j.CPU, j.Memory, j.Priority = string(j.Session), 1+w.r.IntN(4), gpu.Bytes(1+w.r.IntN(12))*gpu.GiB,
			session.DefaultPriority
		switch w.r.IntN(10) {
		case 0, 1, 2:
			j.GPU.Shares = gpu.Share(1+w.r.IntN(9)) * 100
		case 3:
			j.GPU.Devices = 1 + w.r.IntN(min(2, len(w.machine.Devices)))
		case 4:
			j.GPU.Memory = gpu.Bytes(1+w.r.IntN(20)) * gpu.GiB
		case 5:
			j.Kernels = 2 + w.r.IntN(3)
		case 6:
			if last := w.machine.Devices[len(w.machine.Devices)-1]; len(last.Instances) > 0 {
				j.GPU.Profile, j.GPU.Count = last.Instances[0].Profile, 1+w.r.IntN(3)
			}
		}
		if w.r.IntN(25) == 0 {
			j.CPU = 16 + w.r.IntN(16) // now and then someone wants half of the machine and more
			j.Kernels = 0
		}
		if w.r.IntN(6) > 0 { // else interactive: nobody but the world knows its end
			j.Timeout = j.runs + time.Duration(w.r.IntN(60))*time.Minute
		}
		if w.r.IntN(20) == 0 {
			j.Priority = 50
		}
		if i > 0 && w.r.IntN(15) == 0 {
			j.waitsOn = []int{w.r.IntN(i)}
		}
		if w.r.IntN(15) == 0 {
			at := arrives.Add(time.Duration(w.r.IntN(240)) * time.Minute)
			j.NotBefore = &at
		}
		w.jobs = append(w.jobs, j)
		w.byID[j.Session] = j
		heap.Push(&w.events, arrives)
	}
}

func (w *world) snapshot() Snapshot {
	s := Snapshot{Machine: w.machine, Allowances: w.allowed}
	for _, j := range w.running {
		p := Promise{Session: j.Session, Name: j.Name, Owner: j.Owner, Grants: j.given, Since: &j.starts}
		if j.Timeout > 0 {
			ends := j.starts.Add(j.Timeout)
			p.Ends = &ends
		}
		s.Promised = append(s.Promised, p)
	}
	for _, j := range w.queue {
		q := j.Request
		q.After = nil
		for _, n := range j.waitsOn {
			on := w.jobs[n]
			d := Dependency{Session: on.Session, Name: on.Name, Status: session.Pending,
				Result: session.ResultUndefined}
			if !on.ends.IsZero() && !w.now.Before(on.ends) {
				d.Status, d.Result = session.Terminated, session.ResultSuccess
			}
			q.After = append(q.After, d)
		}
		s.Queue = append(s.Queue, q)
	}
	if len(w.foreign) > 0 {
		s.Machine.Measured = nil
		for _, d := range w.machine.Devices {
			free := d.Usable() - w.foreign[d.UUID]
			for _, j := range w.running {
				free -= memoryOn(j.given.GPUs, d.UUID)
			}
			s.Machine.Measured = append(s.Machine.Measured,
				Measured{Device: d.UUID, Free: free,
					Foreign: []Foreign{{PID: 1, Name: "other", Memory: w.foreign[d.UUID]}}})
		}
	}
	return s
}

// run plays until everyone has ended.
func (w *world) run() {
	arrived := 0
	for w.events.Len() > 0 {
		w.now = heap.Pop(&w.events).(time.Time)
		for w.events.Len() > 0 && !w.events[0].After(w.now) {
			heap.Pop(&w.events)
		}
		w.running = slices.DeleteFunc(w.running, func(j *job) bool { return !j.ends.After(w.now) })
		for arrived < len(w.jobs) && !w.jobs[arrived].arrives.After(w.now) {
			w.queue = append(w.queue, w.jobs[arrived])
			arrived++
		}
		w.plan()
		if w.t.Failed() {
			w.t.Fatalf("at %s", w.now.Sub(noon))
		}
	}
	if len(w.queue) > 0 || arrived < len(w.jobs) {
		w.t.Errorf("%d sessions never started, the first is %+v", len(w.queue), w.queue[0])
	}
}

func (w *world) plan() {
	s := w.snapshot()
	began := time.Now()
	plan := Plan(s, w.now)
	w.slowest = max(w.slowest, time.Since(began))
	w.plans++
	checkPlan(w.t, s, plan)
	var head *job
	for i, d := range plan.Decisions {
		if d.Wait != nil && d.Wait.Code == session.CodeWaitLimit {
			w.limited[w.queue[i].Owner]++
		}
		if j := w.queue[i]; d.Wait != nil && d.Wait.Position == 1 && (d.Wait.Code == session.CodeWaitResources) {
			head = j
		}
	}
	w.checkTurns(head, plan)
	for _, d := range plan.Decisions {
		j := w.byID[d.Session]
		if d.End != nil {
			w.t.Errorf("%s was ended: %+v", j.Name, d.End)
		}
		if d.Place == nil {
			continue
		}
		if head != nil && head.arrives.Before(j.arrives) {
			w.ahead++
		}
		if j.NotBefore != nil && w.now.Before(*j.NotBefore) {
			w.t.Errorf("%s starts %s too early", j.Name, j.NotBefore.Sub(w.now))
		}
		j.starts, j.ends, j.given = w.now, w.now.Add(j.runs), d.Place.Total()
		w.running = append(w.running, j)
		heap.Push(&w.events, j.ends)
	}
	w.queue = slices.DeleteFunc(w.queue, func(j *job) bool { return !j.starts.IsZero() })
	w.checkAllowed()
	if head != nil {
		w.checkHead(head)
	}
	if !plan.Next.IsZero() && plan.Next.After(w.now) && len(w.foreign) == 0 {
		heap.Push(&w.events, plan.Next)
	}
}

// checkTurns holds the plan to what heads were told: a time that was told is
// never moved back, unless someone came who goes first by the rules.
func (w *world) checkTurns(head *job, plan Schedule) {
	for i, d := range plan.Decisions {
		j := w.queue[i]
		told, known := w.promised[j.Session]
		if !known || w.overtaken(j, plan) {
			continue
		}
		if d.Place != nil || (j == head && d.Wait.Until != nil) {
			at := w.now
			if d.Place == nil {
				at = *d.Wait.Until
			}
			if at.After(told) {
				w.t.Errorf("%s was told %s and now it is %s", j.Name, told.Sub(noon), at.Sub(noon))
			}
		}
	}
	clear(w.promised) // of those who are no longer head, nothing was promised
	if head == nil {
		return
	}
	for i, d := range plan.Decisions {
		if w.queue[i] == head && d.Wait.Until != nil {
			w.promised[head.Session] = *d.Wait.Until
		}
	}
}

// overtaken reports whether somebody who goes before j by the rules was placed:
// of higher priority, or that arrived earlier and stood outside of the line.
func (w *world) overtaken(j *job, plan Schedule) bool {
	for i, d := range plan.Decisions {
		other := w.queue[i]
		if (d.Place != nil || (d.Wait != nil && d.Wait.Position == 1)) && other != j &&
			(other.Priority > j.Priority || (other.Priority == j.Priority && other.arrives.Before(j.arrives))) {
			return true
		}
	}
	return false
}

// checkHead makes sure that the head lacks something, by plain counting.
func (w *world) checkHead(head *job) {
	cpus, memory := len(w.machine.CPUs), w.machine.Memory
	held := map[gpu.UUID]gpu.Share{}
	for _, j := range w.running {
		cpus -= len(j.given.CPUs)
		memory -= j.given.Memory
		for _, g := range j.given.GPUs {
			held[g.Device] += g.Share
		}
	}
	if head.cpus() > cpus || head.memory() > memory || head.GPU.Profile != "" {
		return
	}
	idle := 0
	for _, d := range w.machine.Devices {
		if held[d.UUID] == 0 && w.foreign[d.UUID] == 0 && len(d.Instances) == 0 {
			idle++
		}
	}
	if needed := max(head.GPU.Devices, 1) * head.kernels(); !head.GPU.IsZero() && idle < needed || len(w.foreign) > 0 {
		return
	}
	w.t.Errorf("%s waits at the head, needs %d CPUs, %s and %s, and there are %d CPUs, %s and %d idle devices",
		head.Name, head.cpus(), head.memory(), head.GPU, cpus, memory, idle)
}

func TestTenThousandSessionsAllGetTheirTurn(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 1_500
	}
	w := simulated(t, 1, 4)
	w.populate(count)
	w.run()
	var longest, sum time.Duration
	for _, j := range w.jobs {
		from := j.arrives
		if j.NotBefore != nil && j.NotBefore.After(from) {
			from = *j.NotBefore
		}
		for _, n := range j.waitsOn {
			from = later(from, w.jobs[n].ends)
		}
		wait := j.starts.Sub(from)
		longest, sum = max(longest, wait), sum+wait
	}
	t.Logf("%d plans, slowest %s; %d went ahead; waits: %s on average, %s at most", w.plans, w.slowest, w.ahead,
		(sum / time.Duration(count)).Round(time.Second), longest)
	if w.ahead == 0 {
		t.Error("nobody ever went ahead: the simulation is too easy")
	}
	if longest > 72*time.Hour {
		t.Errorf("somebody waited %s", longest)
	}
}

func TestInstancesAreNeverPromisedTwice(t *testing.T) {
	w := simulated(t, 9, 3)
	last := &w.machine.Devices[2]
	for i := range 7 {
		last.Instances = append(last.Instances, gpu.Instance{UUID: gpu.UUID(fmt.Sprint("MIG-", i)), Profile: "1g.3gb",
			Memory: 3 * gpu.GiB, Slices: 142})
	}
	w.populate(600)
	w.run()
	given := 0
	for _, j := range w.jobs {
		if j.GPU.Profile != "" && len(j.given.GPUs) == j.GPU.Count {
			given++
		}
	}
	if given == 0 {
		t.Error("nobody was given an instance")
	}
}

// TestForeignUseIsNeverGivenAway lets other programs take and return memory of
// the devices while sessions come and go.
func TestForeignUseIsNeverGivenAway(t *testing.T) {
	count := 800
	if testing.Short() {
		count = 200
	}
	w := simulated(t, 5, 3)
	w.populate(count)
	for _, d := range w.machine.Devices {
		w.foreign[d.UUID] = 0
	}
	// Other programs change what they hold every ten minutes, and leave for good
	// after the last arrival.
	last := w.jobs[len(w.jobs)-1].arrives
	for at := noon; at.Before(last); at = at.Add(10 * time.Minute) {
		heap.Push(&w.events, at)
	}
	heap.Push(&w.events, last.Add(time.Minute))
	arrived := 0
	for w.events.Len() > 0 {
		w.now = heap.Pop(&w.events).(time.Time)
		w.running = slices.DeleteFunc(w.running, func(j *job) bool { return !j.ends.After(w.now) })
		for arrived < len(w.jobs) && !w.jobs[arrived].arrives.After(w.now) {
			w.queue = append(w.queue, w.jobs[arrived])
			arrived++
		}
		for _, d := range w.machine.Devices {
			switch {
			case w.now.After(last):
				w.foreign[d.UUID] = 0
			case w.r.IntN(3) == 0:
				free := d.Usable()
				for _, j := range w.running {
					free -= memoryOn(j.given.GPUs, d.UUID)
				}
				w.foreign[d.UUID] = gpu.Bytes(w.r.Int64N(int64(free) + 1))
			}
		}
		clear(w.promised) // programs that are no sessions keep no promises
		w.plan()
		if t.Failed() {
			t.Fatalf("at %s", w.now.Sub(noon))
		}
		if w.now.After(last) && len(w.queue) > 0 && len(w.events) == 0 {
			heap.Push(&w.events, w.now.Add(time.Hour))
			if w.now.Sub(last) > 1000*time.Hour {
				t.Fatalf("%d sessions wait for ever", len(w.queue))
			}
		}
	}
	if len(w.queue) > 0 {
		t.Errorf("%d sessions never started", len(w.queue))
	}
}

// TestUsesTheMachineAlmostAsWellAsCanBe compares small cases with the best
// order there is, found by trying all of them.
func TestUsesTheMachineAlmostAsWellAsCanBe(t *testing.T) {
	const jobs, cases = 7, 120
	var ours, best time.Duration
	worst := 1.0
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 11))
		var list []*job
		for i := range jobs {
			j := &job{arrives: noon, runs: time.Duration(10+r.IntN(50)) * time.Minute}
			j.Session = session.ID(fmt.Sprint("s", i))
			j.Name, j.CPU, j.Memory, j.Timeout = string(j.Session), 1+r.IntN(4), gpu.GiB, j.runs
			if r.IntN(2) == 0 {
				j.GPU.Shares = gpu.Share(1+r.IntN(10)) * 100
			}
			list = append(list, j)
		}
		w := simulated(t, seed, 1)
		w.machine.CPUs = w.machine.CPUs[:8]
		w.jobs = list
		for _, j := range list {
			w.byID[j.Session] = j
		}
		heap.Push(&w.events, noon)
		w.run()
		var made time.Duration
		for _, j := range list {
			made = max(made, j.ends.Sub(noon))
		}
		least := optimum(list, 8)
		if made < least {
			t.Fatalf("case %d: %s is better than the best, %s", seed, made, least)
		}
		ours, best = ours+made, best+least
		worst = min(worst, float64(least)/float64(made))
	}
	ratio := float64(best) / float64(ours)
	t.Logf("the machine is used %.1f %% as well as by the best order, %.1f %% in the worst case", 100*ratio, 100*worst)
	if ratio < 0.9 {
		t.Errorf("the machine is used %.1f %% as well as it could be", 100*ratio)
	}
}

// optimum is the least time in which all jobs can be done on so many CPUs and
// one device: the best of all orders in which each starts as early as it can.
func optimum(jobs []*job, cpus int) time.Duration {
	type span struct {
		from, to time.Duration
		cpu      int
		share    gpu.Share
	}
	best := time.Duration(1<<62 - 1)
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	var placed []span
	fits := func(at time.Duration, j *job) bool {
		// What is used within the job's time changes only where others start.
		for _, check := range append([]span{{from: at}}, placed...) {
			if check.from < at || check.from >= at+j.runs {
				continue
			}
			cpu, share := j.CPU, j.GPU.Shares
			for _, p := range placed {
				if p.from <= check.from && check.from < p.to {
					cpu, share = cpu+p.cpu, share+p.share
				}
			}
			if cpu > cpus || share > gpu.WholeDevice {
				return false
			}
		}
		return true
	}
	var try func(k int, made time.Duration)
	try = func(k int, made time.Duration) {
		if made >= best {
			return
		}
		if k == len(order) {
			best = made
			return
		}
		for i := k; i < len(order); i++ {
			order[k], order[i] = order[i], order[k]
			j := jobs[order[k]]
			earliest := time.Duration(-1)
			for _, at := range append([]span{{}}, placed...) {
				if (earliest < 0 || at.to < earliest) && fits(at.to, j) {
					earliest = at.to
				}
			}
			placed = append(placed, span{earliest, earliest + j.runs, j.CPU, j.GPU.Shares})
			try(k+1, max(made, earliest+j.runs))
			placed = placed[:len(placed)-1]
			order[k], order[i] = order[i], order[k]
		}
	}
	try(0, 0)
	return best
}
