package gpu

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// bench drives accounts by hand: one device "G" unless a test adds more.
type bench struct {
	t  *testing.T
	a  *Accounts
	at Moment
	e  Epoch
	// since is what the next sample says of its Since.
	since time.Duration
}

func newBench(t *testing.T) *bench {
	b := &bench{
		t: t, a: NewAccounts(State{}),
		at: Moment{BootID: "b1", Boot: time.Hour, Awake: time.Hour, Wall: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)},
		e:  Epoch{Boot: "b1", Driver: "d1"},
	}
	t.Cleanup(func() { b.check() })
	return b
}

func (b *bench) check() {
	b.t.Helper()
	for _, err := range b.a.Check() {
		b.t.Error(err)
	}
}

func (b *bench) pass(d time.Duration) {
	b.at.Boot, b.at.Awake, b.at.Wall = b.at.Boot+d, b.at.Awake+d, b.at.Wall.Add(d)
}

func (b *bench) start(session string, share Share, memory Bytes) {
	b.a.Start(b.at, Holder{Session: session, Containers: []string{"c-" + session},
		Grants: []Grant{{Device: "G", Share: share, Memory: memory}}})
}

// book books a sample of device d with processes.
func (b *bench) book(d DeviceSample, processes ...ProcessSample) Report {
	b.t.Helper()
	d.UUID = "G"
	for i := range processes {
		processes[i].Device = "G"
		if processes[i].PID == 0 {
			processes[i].PID = 100 + i
		}
	}
	r := b.a.Book(Sample{At: b.at, Epoch: b.e, Since: b.since, Devices: []DeviceSample{d}, Processes: processes})
	b.check()
	return r
}

func (b *bench) row(session string) Counters {
	var sum Counters
	for _, r := range b.a.Rows() {
		if r.Session == session {
			sum.Add(r.Counters)
		}
	}
	return sum
}

func (b *bench) want(what string, got, want any) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// crash continues from what the last checkpoint stored, through JSON.
func (b *bench) crash(stored State) {
	b.t.Helper()
	data, err := json.Marshal(stored)
	must(b.t, err)
	var read State
	must(b.t, json.Unmarshal(data, &read))
	b.a = NewAccounts(read)
	b.check()
}

func ptr[T any](v T) *T { return &v }

func proc(session string, util int, memory Bytes) ProcessSample {
	p := ProcessSample{Util: &util, Memory: &memory}
	if session != "" {
		p.Container = "c-" + session
	}
	return p
}

func TestAccountsChargeWhoUsed(t *testing.T) {
	b := newBench(t)
	b.start("a", 500, 10*GiB)
	b.start("b", 300, 6*GiB)
	b.book(DeviceSample{Util: ptr(0), MemoryUsed: ptr(Bytes(0)), Energy: ptr(MilliJoule(1000))})
	b.pass(2 * time.Second)
	b.book(DeviceSample{Util: ptr(9000), MemoryUsed: ptr(12 * GiB), Energy: ptr(MilliJoule(401_000))},
		proc("a", 6000, 8*GiB), proc("", 2000, GiB), proc("b", 500, 2*GiB))
	a, other := b.row("a"), b.row(Others)
	b.want("a's promise", a.AllocGPUMs, int64(1000))
	b.want("a's busy time", a.BusyGPUMs, int64(1200))
	b.want("a's memory", a.VRAM, Held(8*GiB, 2000))
	b.want("a's peak", a.VRAMPeak, 8*GiB)
	b.want("a's promised memory", a.VRAMAlloc, Held(10*GiB, 2000))
	b.want("a's covered time", a.CoveredMs, int64(2000))
	b.want("others' busy time", other.BusyGPUMs, int64(400))
	b.want("others' memory", other.VRAM, Held(GiB, 2000))
	b.want("b's busy time", b.row("b").BusyGPUMs, int64(100))
	b.want("unexplained busy time", b.row(Unattributed).BusyGPUMs, int64(100))
	b.want("unexplained memory", b.row(Unattributed).VRAM, Held(GiB, 2000))
	// No idle power was learned, so all 400 J are work: 6000, 2000, 500 and 500 of 9000.
	b.want("a's energy", a.EnergyDyn, MilliJoule(266_667))
	b.want("others' energy", other.EnergyDyn, MilliJoule(88_889))
	b.want("b's energy", b.row("b").EnergyDyn, MilliJoule(22_222))
	b.want("unexplained energy", b.row(Unattributed).EnergyDyn, MilliJoule(22_222))
}

func TestAccountsDivideIdleEnergyByPromise(t *testing.T) {
	b := newBench(t)
	counter := MilliJoule(0)
	b.book(DeviceSample{Util: ptr(0), Energy: ptr(counter)})
	for range 20 {
		b.pass(2 * time.Second)
		counter += 100_000 // 50 W
		b.book(DeviceSample{Util: ptr(0), Energy: ptr(counter)})
	}
	b.want("learned idle power", b.a.Devices()[0].Idle.Power(), MilliWatt(50_000))
	b.want("idle energy so far", b.row(Idle).EnergyIdle+b.row(Idle).EnergyDyn, MilliJoule(2_000_000))
	b.start("a", 500, GiB)
	b.start("b", 300, GiB)
	b.pass(2 * time.Second)
	counter += 500_000
	b.book(DeviceSample{Util: ptr(5000), Energy: ptr(counter)}, proc("b", 5000, GiB))
	b.want("a's idle part", b.row("a").EnergyIdle, MilliJoule(50_000))
	b.want("a's work", b.row("a").EnergyDyn, MilliJoule(0))
	b.want("b's idle part", b.row("b").EnergyIdle, MilliJoule(30_000))
	b.want("b's work", b.row("b").EnergyDyn, MilliJoule(400_000))
	b.want("all", b.row("a").EnergyIdle+b.row("b").EnergyIdle+b.row("b").EnergyDyn+b.row(Idle).EnergyIdle+b.row(Idle).
		EnergyDyn, counter)
	b.pass(2 * time.Second)
	counter += 60_000 // less than idle: capped at what was counted
	b.book(DeviceSample{Util: ptr(0), Energy: ptr(counter)})
	b.want("idle when the device draws less", b.row("a").EnergyIdle, MilliJoule(80_000))
}

func TestAccountsReduceWhatContradictsTheDevice(t *testing.T) {
	b := newBench(t)
	b.start("a", 500, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(9000), MemoryUsed: ptr(9 * GiB)}, proc("a", 9000, 10*GiB), proc("", 9000, 8*GiB))
	b.want("a's busy time", b.row("a").BusyGPUMs, int64(450))
	b.want("a's memory", b.row("a").VRAM, Held(5*GiB, 1000))
	b.want("others' memory", b.row(Others).VRAM, Held(4*GiB, 1000))
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(-5), MemoryUsed: ptr(Bytes(-1))}, proc("a", 2147483632, -GiB))
	b.want("a's busy time after garbage", b.row("a").BusyGPUMs, int64(450))
	b.pass(time.Second)
	b.book(DeviceSample{}, proc("a", 8000, GiB), proc("", 8000, GiB))
	b.want("a's busy time when only processes tell", b.row("a").BusyGPUMs, int64(950))
}

func TestAccountsCountAProcessOnce(t *testing.T) {
	b := newBench(t)
	b.start("a", 500, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(time.Second)
	compute, graphics := proc("a", 3000, GiB), proc("a", 4000, GiB/2)
	compute.PID, graphics.PID = 7, 7
	b.book(DeviceSample{Util: ptr(4000), MemoryUsed: ptr(GiB)}, compute, graphics)
	b.want("busy time", b.row("a").BusyGPUMs, int64(400))
	b.want("memory", b.row("a").VRAM, Held(GiB, 1000))
}

func TestAccountsBelieveNoProcessThatItWorkedBeforeItWas(t *testing.T) {
	b := newBench(t)
	b.start("a", 500, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(2 * time.Second)
	young := proc("a", 9000, GiB)
	young.Start = uint64((b.at.Boot - 500*time.Millisecond) / (10 * time.Millisecond))
	b.book(DeviceSample{Util: ptr(9000)}, young)
	b.want("busy time of a process half a second old", b.row("a").BusyGPUMs, int64(500))
	b.want("what its number did before", b.row(Unattributed).BusyGPUMs, int64(1300))
}

func TestAccountsSayWhatIsNotMeasured(t *testing.T) {
	na := ProcessSample{Container: "c-a"}
	foreign := ProcessSample{PID: 9}
	for name, c := range map[string]struct {
		device    DeviceSample
		processes []ProcessSample
		want      Counters // of a, who was promised half for two seconds
		others    int64
	}{
		"nothing is told and nothing runs": {DeviceSample{}, nil, Counters{CoveredMs: 2000}, 0},
		"nothing is told and a runs":       {DeviceSample{}, []ProcessSample{na}, Counters{GapMs: 2000}, 0},
		"processes cannot be listed":       {DeviceSample{Blind: true}, nil, Counters{GapMs: 2000}, 0},
		"a is alone": {DeviceSample{Util: ptr(5000)}, []ProcessSample{na},
			Counters{EstimatedMs: 2000, BusyGPUMs: 1000}, 0},
		"a and another": {DeviceSample{Util: ptr(5000)}, []ProcessSample{na, foreign},
			Counters{EstimatedMs: 2000, BusyGPUMs: 500}, 500},
		"blind but the device is busy": {DeviceSample{Util: ptr(5000), Blind: true}, nil,
			Counters{EstimatedMs: 2000, BusyGPUMs: 500}, 500},
		"the device is idle": {DeviceSample{Util: ptr(0)}, []ProcessSample{na}, Counters{CoveredMs: 2000},
			0},
		"busy and nobody there": {DeviceSample{Util: ptr(5000)}, nil, Counters{CoveredMs: 2000}, 0},
		"memory is not told": {DeviceSample{Util: ptr(0), MemoryUsed: ptr(4 * GiB)}, []ProcessSample{na, foreign},
			Counters{EstimatedMs: 2000, VRAM: Held(2*GiB, 2000), VRAMPeak: 2 * GiB}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start("a", 500, 0)
			b.book(DeviceSample{Util: ptr(0)})
			b.pass(2 * time.Second)
			b.book(c.device, c.processes...)
			c.want.AllocGPUMs = 1000
			b.want("a", b.row("a"), c.want)
			b.want("others", b.row(Others).BusyGPUMs, c.others)
		})
	}
}

func TestAccountsCountPromisesByEvents(t *testing.T) {
	b := newBench(t)
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(700 * time.Millisecond)
	b.start("a", 300, 3*GiB)
	b.pass(801 * time.Millisecond)
	b.a.Stop(b.at, "a")
	b.a.Stop(b.at, "a")
	b.pass(499 * time.Millisecond)
	b.want("before the sample", b.row("a").AllocGPUMs, int64(240)) // 240.3
	b.book(DeviceSample{Util: ptr(1000)}, proc("a", 1000, GiB))
	a := b.row("a")
	b.want("promise", a.AllocGPUMs, int64(240))
	b.want("covered time", a.CoveredMs, int64(801))
	b.want("busy time of its last seconds", a.BusyGPUMs, int64(200))
	b.pass(2 * time.Second)
	b.book(DeviceSample{Util: ptr(1000)}, proc("a", 1000, GiB))
	b.want("busy time after its end", b.row("a").BusyGPUMs, int64(200))
	b.want("others' busy time", b.row(Others).BusyGPUMs, int64(200))
}

func TestAccountsCountNoPromiseBeyondAnEndThatIsComing(t *testing.T) {
	b := newBench(t)
	b.start("a", 500, 3*GiB)
	b.pass(time.Second)
	end := b.at
	b.a.Seal(end, "a")
	b.a.Seal(end, "nobody")
	b.pass(600 * time.Millisecond)
	b.book(DeviceSample{Util: ptr(0)})
	b.want("while its end is stored", b.row("a").AllocGPUMs, int64(500))
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(0)})
	b.a.Stop(end, "a")
	b.book(DeviceSample{Util: ptr(0)})
	a := b.row("a")
	b.want("after it", a.AllocGPUMs, int64(500))
	b.want("covered time", a.CoveredMs+a.EstimatedMs+a.GapMs, int64(1000))

	b.start("b", 500, 3*GiB)
	b.pass(time.Second)
	b.a.Seal(b.at, "b")
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(0)})
	b.a.Stop(b.at, "b") // the end could not be stored, and came later
	b.want("where it ended later", b.row("b").AllocGPUMs, int64(1000))
}

func TestAccountsKeepFractionsOfPromises(t *testing.T) {
	b := newBench(t)
	b.start("a", 333, GiB)
	for range 1000 {
		b.pass(7 * time.Millisecond)
		b.book(DeviceSample{Util: ptr(0)})
	}
	b.want("promise", b.row("a").AllocGPUMs, int64(7*333))
}

func TestAccountsAddTheGrantsOfKernels(t *testing.T) {
	b := newBench(t)
	b.a.Start(b.at, Holder{Session: "a", Grants: []Grant{{Device: "G", Share: 200, Memory: GiB},
		{Device: "G", Share: 300, Memory: GiB}, {Device: "H", Share: 1000, Memory: GiB}}})
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(0)})
	b.want("promise on both", b.row("a").AllocGPUMs, int64(1500))
	b.want("promised memory", b.row("a").VRAMAlloc, Held(3*GiB, 1000))
	b.want("time without a sample", b.row("a").GapMs, int64(2000))
}

func TestAccountsTakeGapsForGaps(t *testing.T) {
	b := newBench(t)
	b.start("a", 500, GiB)
	b.book(DeviceSample{Util: ptr(0), Energy: ptr(MilliJoule(0))})
	b.pass(time.Minute)
	b.book(DeviceSample{Util: ptr(10000), MemoryUsed: ptr(GiB), Energy: ptr(MilliJoule(6_000_000))},
		proc("a", 10000, GiB))
	a := b.row("a")
	b.want("gap", a.GapMs, int64(60_000))
	b.want("busy time", a.BusyGPUMs, int64(0))
	b.want("memory, for at most 15 s", a.VRAM, Held(GiB, 15_000))
	b.want("promise", a.AllocGPUMs, int64(30_000))
	b.want("energy by promise", a.EnergyDyn, MilliJoule(3_000_000))
	b.want("of it estimated", a.EnergyEstimated, MilliJoule(3_000_000))
	b.want("energy of the rest", b.row(Idle).EnergyDyn, MilliJoule(3_000_000))
}

func TestAccountsRecoverWhatABufferStillHas(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	b.crash(b.a.Checkpoint().State)
	b.pass(12 * time.Second)
	b.since = b.at.Boot - 10*time.Second
	b.book(DeviceSample{Util: ptr(5000)}, proc("a", 5000, GiB))
	b.want("covered", b.row("a").CoveredMs, int64(10_000))
	b.want("gap", b.row("a").GapMs, int64(2_000))
	b.want("busy time", b.row("a").BusyGPUMs, int64(5_000))
	b.crash(b.a.Checkpoint().State)
	b.pass(2 * time.Second)
	b.since = 0 // a new source that does not say how far it looked back
	b.book(DeviceSample{Util: ptr(5000)}, proc("a", 5000, GiB))
	b.want("gap of what nobody vouches for", b.row("a").GapMs, int64(4_000))
	b.pass(2 * time.Second)
	b.since = b.at.Boot - 10*time.Second // reaches back over what is booked
	b.book(DeviceSample{Util: ptr(5000)}, proc("a", 5000, GiB))
	b.want("busy time, not twice", b.row("a").BusyGPUMs, int64(6_000))
}

func TestAccountsBeginAnewWithTheDriver(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"the driver is loaded anew": func(b *bench) { b.e.Driver = "d2" },
		"the counter begins at 0":   func(*bench) {},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start("a", 1000, GiB)
			b.book(DeviceSample{Util: ptr(0), Energy: ptr(MilliJoule(500_000))})
			b.pass(2 * time.Second)
			change(b)
			b.book(DeviceSample{Util: ptr(9000), Energy: ptr(MilliJoule(7_000))}, proc("a", 9000, GiB))
			b.want("energy across", b.row("a").EnergyDyn, MilliJoule(0))
			b.want("gap", b.row("a").GapMs, int64(2_000))
			b.pass(2 * time.Second)
			b.book(DeviceSample{Util: ptr(5000), Energy: ptr(MilliJoule(207_000))}, proc("a", 5000, GiB))
			b.want("energy after", b.row("a").EnergyDyn, MilliJoule(200_000))
			b.want("promise", b.row("a").AllocGPUMs, int64(4_000))
		})
	}
}

func TestAccountsCountNothingAcrossABoot(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(0), Energy: ptr(MilliJoule(500_000))})
	b.pass(time.Second)
	b.a.Book(Sample{At: b.at, Epoch: b.e}) // the device is lost, its time is unknown
	b.at.BootID, b.e.Boot = "b2", "b2"
	b.at.Boot, b.at.Awake = 3*time.Second, 3*time.Second
	b.book(DeviceSample{Util: ptr(9000), Energy: ptr(MilliJoule(900_000))}, proc("a", 9000, GiB))
	a := b.row("a")
	b.want("promise", a.AllocGPUMs, int64(1_000))
	b.want("busy time", a.BusyGPUMs, int64(0))
	b.want("energy", a.EnergyDyn, MilliJoule(0))
	b.pass(2 * time.Second)
	b.book(DeviceSample{Util: ptr(10000), Energy: ptr(MilliJoule(1_000_000))}, proc("a", 10000, GiB))
	b.want("energy after the boot", b.row("a").EnergyDyn, MilliJoule(100_000))
	b.want("busy time after the boot", b.row("a").BusyGPUMs, int64(2_000))
}

func TestAccountsDoNotCountSleep(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(time.Second)
	b.at.Boot, b.at.Wall = b.at.Boot+time.Hour, b.at.Wall.Add(time.Hour)
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(10000)}, proc("a", 10000, GiB))
	b.want("promise", b.row("a").AllocGPUMs, int64(2_000))
	b.want("gap", b.row("a").GapMs, int64(2_000))
	b.want("busy time", b.row("a").BusyGPUMs, int64(0))
}

func TestAccountsDoNotMindTheWallClock(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	jumps := []time.Duration{0, -3 * time.Hour, 400 * 24 * time.Hour, -400 * 24 * time.Hour, 0}
	for _, jump := range jumps {
		b.at.Wall = b.at.Wall.Add(jump)
		b.pass(2 * time.Second)
		b.book(DeviceSample{Util: ptr(5000)}, proc("a", 5000, GiB))
	}
	n := int64(len(jumps))
	b.want("busy time", b.row("a").BusyGPUMs, n*1000)
	b.want("covered", b.row("a").CoveredMs, n*2000)
	cp := b.a.Checkpoint()
	if limit := time.Date(2026, 5, 4, 10, 10, 0, 0, time.UTC).Add(-MinutesKept); cp.PruneMinutes.After(limit) {
		t.Errorf("a clock in next year prunes up to %s", cp.PruneMinutes)
	}
	for _, span := range []Span{SpanMinute, SpanHour, SpanDay} {
		var sum Counters
		keys := map[string]bool{}
		for _, bucket := range cp.Buckets {
			if bucket.Span == span {
				keys[fmt.Sprint(bucket.Start, bucket.Part)] = true
				for _, r := range bucket.Rows {
					if r.Session == "a" {
						sum.Add(r.Counters)
					}
				}
			}
		}
		b.want(string(span)+" buckets of a", sum, b.row("a"))
		if len(keys) < 3 {
			t.Errorf("%d %s buckets for a clock that jumped", len(keys), span)
		}
	}
}

func TestAccountsIntegratePowerWhereNothingCounts(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(10000), Power: ptr(MilliWatt(100_001))}, proc("a", 10000, GiB))
	for range 1000 {
		b.pass(1001 * time.Millisecond)
		b.book(DeviceSample{Util: ptr(10000), Power: ptr(MilliWatt(100_001))}, proc("a", 10000, GiB))
	}
	b.want("energy", b.row("a").EnergyDyn, MilliJoule(100_001*1001))
}

func TestAccountsWaitForACounterThatIsSilent(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(10000), Energy: ptr(MilliJoule(0)), Power: ptr(MilliWatt(100_000))},
		proc("a", 10000, GiB))
	for i := range 6 {
		b.pass(time.Second)
		d := DeviceSample{Util: ptr(10000), Power: ptr(MilliWatt(100_000))}
		if i%2 == 1 {
			d.Energy = ptr(MilliJoule(100_000 * (i + 1)))
		}
		b.book(d, proc("a", 10000, GiB))
	}
	b.want("energy", b.row("a").EnergyDyn, MilliJoule(600_000))
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(10000), Energy: ptr(MilliJoule(1 << 60))}, proc("a", 10000, GiB))
	b.want("energy of a counter that went wrong", b.row("a").EnergyDyn, MilliJoule(600_000))
}

func TestAccountsRefuseOldSamples(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(2 * time.Second)
	d := DeviceSample{Util: ptr(5000)}
	if r := b.book(d, proc("a", 5000, GiB)); r.Stale || len(r.Live) != 1 || *r.Live[0].Util != 5000 ||
		*r.Live[0].Memory != GiB {
		t.Errorf("the sample reports %+v", r)
	}
	before := b.row("a")
	if r := b.book(d, proc("a", 5000, GiB)); !r.Stale {
		t.Error("the same sample was booked twice")
	}
	b.at = b.at.Before(time.Second)
	if r := b.book(d, proc("a", 5000, GiB)); !r.Stale {
		t.Error("an older sample was booked")
	}
	b.want("a", b.row("a"), before)
}

func TestAccountsChargeSessionsOnDevicesTheyDoNotHold(t *testing.T) {
	b := newBench(t)
	b.a.Start(b.at, Holder{Session: "a", Containers: []string{"c-a"}, Grants: nil})
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(time.Second)
	nested := proc("", 5000, GiB)
	nested.Container = "c-outer,c-a"
	b.book(DeviceSample{Util: ptr(5000), MemoryUsed: ptr(GiB)}, nested)
	b.want("busy time", b.row("a").BusyGPUMs, int64(500))
	b.want("promise", b.row("a").AllocGPUMs, int64(0))
}

func TestAccountsStoreEndedRowsAndDropThem(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(0), Energy: ptr(MilliJoule(0))})
	b.pass(2 * time.Second)
	b.a.Stop(b.at, "a")
	b.book(DeviceSample{Util: ptr(5000), Energy: ptr(MilliJoule(5000))}, proc("a", 5000, GiB))
	c := b.a.Checkpoint()
	held := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Session == "a" })
	if held < 0 || c.Rows[held].Counters.BusyGPUMs != 1000 {
		t.Fatalf("the checkpoint has %+v", c.Rows)
	}
	if again := b.a.Checkpoint(); len(again.Rows) != len(c.Rows) {
		t.Error("what was not committed is not in the next checkpoint")
	}
	b.a.Committed(c)
	if next := b.a.Checkpoint(); len(next.Rows) != 0 || len(next.State.Rows) >= len(c.Rows)+1 {
		t.Errorf("after the commit there are still %+v", next.Rows)
	}
	b.start("a", 1000, GiB) // the same session again
	b.pass(2 * time.Second)
	b.book(DeviceSample{Util: ptr(5000), Energy: ptr(MilliJoule(9000))}, proc("a", 5000, GiB))
	for _, r := range b.a.Checkpoint().Rows {
		if r.Session == "a" && r.Part == c.Rows[held].Part {
			t.Error("the second time overwrites the first")
		}
	}
}

func TestMeasuredPartIsTold(t *testing.T) {
	if (Counters{}).Measured() != nil {
		t.Error("no time is measured in part")
	}
	if got := *(Counters{CoveredMs: 987, EstimatedMs: 3, GapMs: 10}).Measured(); got != 9870 {
		t.Errorf("987 of 1000 ms are %d hundredths of a percent", got)
	}
}
