package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"slipway/gpu"
)

// keeper keeps accounts of a machine as an agent does: it samples, stores a
// checkpoint every ten seconds, and can be killed.
type keeper struct {
	t       *testing.T
	machine *Machine
	a       *gpu.Accounts
	state   []byte
	rows    map[string]gpu.Row
	stored  time.Duration // Boot clock of the last checkpoint
}

func newKeeper(t *testing.T, m *Machine) *keeper {
	return &keeper{t: t, machine: m, a: gpu.NewAccounts(gpu.State{}), rows: map[string]gpu.Row{}}
}

func (k *keeper) book(s gpu.Sample) {
	k.t.Helper()
	k.a.Book(s)
	for _, err := range k.a.Check() {
		k.t.Fatal(err)
	}
	if s.At.Boot-k.stored >= 10*time.Second {
		k.store(s.At)
	}
}

func (k *keeper) store(at gpu.Moment) {
	k.t.Helper()
	c := k.a.Checkpoint()
	data, err := json.Marshal(c.State)
	if err != nil {
		k.t.Fatal(err)
	}
	k.state, k.stored = data, at.Boot
	for _, r := range c.Rows {
		k.rows[fmt.Sprint(r.Session, " ", r.Device, " ", r.Part)] = r
	}
	k.a.Committed(c)
}

func (k *keeper) kill() {
	k.t.Helper()
	var state gpu.State
	if k.state != nil {
		if err := json.Unmarshal(k.state, &state); err != nil {
			k.t.Fatal(err)
		}
	}
	k.a = gpu.NewAccounts(state)
}

// sums are the stored counters by session.
func (k *keeper) sums() map[string]gpu.Counters {
	sums := map[string]gpu.Counters{}
	for _, r := range k.rows {
		sum := sums[r.Session]
		sum.Add(r.Counters)
		sums[r.Session] = sum
	}
	return sums
}

func near(got, want, part float64) bool { return math.Abs(got-want) <= part*math.Abs(want) }

func TestAccountsAgreeWithTheTruth(t *testing.T) {
	c := newClock()
	m := Open(Config{Seed: 21, Cards: []Card{Server, Server}, Clock: c.now, Foreign: true, Desktop: true, Truth: true})
	devices := inventory(t, m)
	k := newKeeper(t, m)
	first := read(t, m)
	k.book(first)
	for i, kind := range []Kind{Training, Notebook, Serving} {
		name := string(kind)
		grants := []gpu.Grant{{Device: devices[i/2].UUID, Share: 500, Memory: 38 * gpu.GiB}}
		k.a.Start(c.now(), gpu.Holder{Session: name, Containers: []string{box(name[:1])}, Grants: grants})
		m.RunGranted(box(name[:1]), kind, grants)
	}
	var last gpu.Sample
	for range 1800 {
		c.pass(2 * time.Second)
		last = read(t, m)
		k.book(last)
	}
	k.store(c.now())
	sums, truth := k.sums(), m.Truth()
	for i, kind := range []Kind{Training, Notebook, Serving} {
		got, want := sums[string(kind)], truth[Place{box(string(kind)[:1]), devices[i/2].UUID}]
		if !near(float64(got.BusyGPUMs), float64(want.Busy.Milliseconds()), 0.01) {
			t.Errorf("%s was busy for %d ms and is charged with %d", kind, want.Busy.Milliseconds(), got.BusyGPUMs)
		}
		if !near(gibHours(got.VRAM), gibHours(want.Memory), 0.005) || got.VRAMPeak != want.Peak {
			t.Errorf("%s held %f GiB·h, at most %s, and is charged with %f and %s", kind, gibHours(want.Memory),
				want.Peak, gibHours(got.VRAM), got.VRAMPeak)
		}
		if got.AllocGPUMs != 1_800_000 || got.CoveredMs != 3_600_000 || got.GapMs+got.EstimatedMs != 0 {
			t.Errorf("%s was promised a half for an hour: %+v", kind, got)
		}
	}
	var burnt, charged gpu.MilliJoule
	for i := range devices {
		burnt += *last.Devices[i].Energy - *first.Devices[i].Energy
	}
	for _, c := range sums {
		charged += c.EnergyDyn + c.EnergyIdle
	}
	if burnt != charged {
		t.Errorf("the devices burnt %d mJ and %d are charged", burnt, charged)
	}
	if sums[gpu.Others].BusyGPUMs == 0 || sums["training"].EnergyDyn < 2*sums["notebook"].EnergyDyn {
		t.Errorf("others worked for %d ms; training burnt %d mJ, the notebook %d", sums[gpu.Others].BusyGPUMs,
			sums["training"].EnergyDyn, sums["notebook"].EnergyDyn)
	}
}

// Killed at 200 random moments, accounts never count twice, lose at most ten
// seconds of busy time each, and no energy and no promise at all.
func TestAccountsSurviveBeingKilled(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := newClock()
		m := Open(Config{Seed: seed, Cards: []Card{Server}, Clock: c.now, Foreign: true, Truth: true})
		device := inventory(t, m)[0].UUID
		whole, killed := newKeeper(t, m), newKeeper(t, m)
		both := []*keeper{whole, killed}
		first := read(t, m)
		for _, k := range both {
			k.book(first)
		}
		holder := func(i int) gpu.Holder {
			return gpu.Holder{Session: fmt.Sprint("s", i), Containers: []string{box(string(rune('a' + i)))},
				Grants: []gpu.Grant{{Device: device, Share: gpu.Share(100 + 100*i), Memory: 8 * gpu.GiB}}}
		}
		for i := range 3 {
			for _, k := range both {
				k.a.Start(c.now(), holder(i))
				k.store(c.now())
			}
			m.RunGranted(holder(i).Containers[0], []Kind{Training, Notebook, Serving}[i], holder(i).Grants)
		}
		kills := 0
		var last gpu.Sample
		for range 2500 {
			c.pass(time.Duration(1500+rng.IntN(1000)) * time.Millisecond)
			last = read(t, m)
			whole.book(last)
			if rng.IntN(12) == 0 && kills < 50 {
				kills++
				killed.kill()
				continue // it is away for this sample
			}
			killed.book(last)
		}
		for _, k := range both {
			k.store(c.now())
		}
		want, got := whole.sums(), killed.sums()
		var burnt gpu.MilliJoule
		for _, g := range got {
			burnt += g.EnergyDyn + g.EnergyIdle
		}
		for session, w := range want {
			g := got[session]
			if g.AllocGPUMs != w.AllocGPUMs || g.VRAMAlloc != w.VRAMAlloc {
				t.Errorf("seed %d: %s was promised %d ms, killed %d", seed, session, w.AllocGPUMs, g.AllocGPUMs)
			}
			if g.BusyGPUMs > w.BusyGPUMs+1 || w.BusyGPUMs-g.BusyGPUMs > int64(kills)*12_500 {
				t.Errorf("seed %d: %s was busy for %d ms, killed %d times it is %d", seed, session, w.BusyGPUMs, kills,
					g.BusyGPUMs)
			}
			if time := g.CoveredMs + g.EstimatedMs + g.GapMs; time != w.CoveredMs+w.EstimatedMs+w.GapMs {
				t.Errorf("seed %d: the time of %s is %d ms, killed %d", seed, session,
					w.CoveredMs+w.EstimatedMs+w.GapMs, time)
			}
			if g.CoveredMs > w.CoveredMs || w.CoveredMs-g.CoveredMs != g.GapMs {
				t.Errorf("seed %d: %s is covered for %d ms of %d with a gap of %d", seed, session, g.CoveredMs,
					w.CoveredMs, g.GapMs)
			}
		}
		if counted := *last.Devices[0].Energy - *first.Devices[0].Energy; burnt != counted || kills != 50 {
			t.Errorf("seed %d: after %d kills %d mJ are charged of %d", seed, kills, burnt, counted)
		}
	}
}

func TestLedgerGuardAndMachineTogether(t *testing.T) {
	c := newClock()
	m := Open(Config{Seed: 2, Clock: c.now})
	devices := inventory(t, m)
	l, err := gpu.NewLedger(devices, gpu.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Propose(gpu.Request{Shares: 500})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Hold("a", p.Grants); err != nil {
		t.Fatal(err)
	}
	holders := gpu.Holders{{Session: "a", Containers: []string{box("a")}, Grants: p.Grants}}
	m.Run(Program{Container: box("a"), Device: p.Grants[0].Device, Memory: p.Grants[0].Memory + gpu.GiB})
	guard := gpu.Guard{Policy: gpu.PolicyEndProcess}
	var alarms []gpu.Alarm
	for range 10 {
		c.pass(2 * time.Second)
		alarms = append(alarms, guard.Poll(gpu.Readings(read(t, m), holders))...)
	}
	if len(alarms) < 2 || alarms[0].Stage != gpu.StageWarn || alarms[1].Act != gpu.PolicyEndProcess {
		t.Fatalf("the guard says %+v", alarms)
	}
	m.End(alarms[1].Process.PID)
	c.pass(2 * time.Second)
	if s := read(t, m); len(s.Processes) != 0 {
		t.Errorf("the process is still there: %+v", s.Processes)
	}
	hog := m.Run(Program{Device: devices[0].UUID, Kind: Holding, Memory: 14 * gpu.GiB})
	c.pass(20 * time.Second)
	if _, ok := l.Offer(gpu.Request{Shares: 500}, roomBeside(t, m, l, holders)); ok {
		t.Error("beside a program of 14 GiB a half is given")
	}
	m.End(hog)
	c.pass(2 * time.Second)
	if _, ok := l.Offer(gpu.Request{Shares: 500}, roomBeside(t, m, l, holders)); !ok {
		t.Error("after it has gone a half is not given")
	}
	for _, err := range l.Check() {
		t.Error(err)
	}
}

// roomBeside is what both books leave of the first device while session a runs.
func roomBeside(t *testing.T, m *Machine, l *gpu.Ledger, holders gpu.Holders) gpu.Room {
	t.Helper()
	b := gpu.Books(l, read(t, m), holders, gpu.Age{"a": time.Minute}, nil)[0]
	return gpu.Room{b.Device: *b.DeviceFree}
}

func gibHours(held gpu.ByteTime) float64 { return float64(held.Per(gpu.GiB)) / 3.6e6 }
