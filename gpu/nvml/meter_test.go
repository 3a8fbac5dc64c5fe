package nvml

import (
	"math/rand/v2"
	"testing"
	"time"

	"slipway/gpu"
)

func moment(s time.Duration) gpu.Moment {
	return gpu.Moment{BootID: "boot-1", Boot: time.Hour + s, Awake: time.Hour + s, Wall: time.Unix(1_800_000_000, 0).
		Add(s)}
}

// truth simulates the driver: every 139 ms one sample of the device, which is
// charged to one process, and a memory of ten seconds.
type truth struct {
	rng     *rand.Rand
	samples []row // all of them, the oldest first
	busy    map[uint32]float64
	next    time.Duration // when the next sample is taken
}

const every = 139 * time.Millisecond

// run lets time pass up to a moment; shares are how likely each process is at work.
func (d *truth) run(to time.Duration, shares map[uint32]float64) {
	for ; d.next < to; d.next += every {
		var who uint32
		x := d.rng.Float64()
		for _, pid := range []uint32{1, 2} {
			if x < shares[pid] {
				who = pid
				break
			}
			x -= shares[pid]
		}
		d.samples = append(d.samples, row{PID: who, At: micros(moment(d.next).Wall), SM: 100})
		if who != 0 {
			d.busy[who] += every.Seconds()
		}
	}
}

// read answers what the driver would, of what is newer than last.
func (d *truth) read(now gpu.Moment, last uint64) deviceReading {
	r := deviceReading{UUID: "A"}
	r.Listed, r.RowsCode, r.Processes = true, 6, []processInfo{{PID: 1, Memory: notAvailable}, {PID: 2, Memory: 5}}
	sum, newest, n := map[uint32]uint64{}, map[uint32]uint64{}, uint64(0)
	for _, s := range d.samples {
		if s.At <= last || s.At <= micros(now.Wall.Add(-bufferSpan)) || s.At > micros(now.Wall) {
			continue
		}
		n++
		value := uint64(0)
		if s.PID != 0 {
			value = uint64(s.SM)
			sum[s.PID] += value
			newest[s.PID] = s.At
		}
		r.Ticks = append(r.Ticks, tick{At: s.At, Value: value})
	}
	for pid, total := range sum {
		r.Rows = append(r.Rows, row{PID: pid, At: newest[pid], SM: uint32((total + n/2) / n)})
		r.RowsCode = 0
	}
	return r
}

func TestBusyTimeIsThatOfTheDriverWhateverThePeriod(t *testing.T) {
	for _, period := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second} {
		t.Run(period.String(), func(t *testing.T) {
			d := &truth{rng: rand.New(rand.NewPCG(1, uint64(period))), busy: map[uint32]float64{}}
			m := &meter{}
			const span = 10 * time.Minute
			counted := map[int]float64{}
			var prev gpu.Moment
			for at := period; at <= span; at += period {
				shares := map[uint32]float64{1: 0.6, 2: 0.3}
				if at%(time.Minute) < 20*time.Second {
					shares = nil // idle stretches, longer than the driver remembers
				}
				d.run(at, shares)
				now := moment(at)
				from := m.ask(now)
				s, lost := m.take(reading{Devices: []deviceReading{d.read(now, from.of("A"))}}, now, from)
				if len(lost) > 0 {
					t.Fatalf("lost %v", lost)
				}
				since := prev.Boot
				if s.Since != 0 {
					since = s.Since
				}
				sum := 0
				for _, p := range s.Processes {
					counted[p.PID] += float64(*p.Util) / 10000 * (now.Boot - since).Seconds()
					sum += *p.Util
				}
				if u := s.Devices[0].Util; u == nil || sum > *u {
					t.Fatalf("processes %d, device %v", sum, u)
				}
				prev = now
			}
			for pid, want := range d.busy {
				if off := (counted[int(pid)] - want) / span.Seconds(); off > 0.015 || off < -0.015 {
					t.Errorf("process %d: counted %.1f s, busy %.1f s: %.2f points off", pid, counted[int(pid)], want,
						100*off)
				}
			}
		})
	}
}

func TestADeviceThatAppearsLaterIsReadFromThePreviousSampleOn(t *testing.T) {
	m := &meter{}
	first := m.ask(moment(0))
	if first.of("A") != 0 {
		t.Errorf("the first sample begins at %d, want all that the driver remembers", first.of("A"))
	}
	m.take(reading{}, moment(0), first)
	if got, want := m.ask(moment(2*time.Second)).of("A"), micros(moment(0).Wall); got != want {
		t.Errorf("begins at %d, want %d", got, want)
	}
}

func TestSharesAreScaledToTheDeviceExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var rows []row
		for pid := range uint32(1 + rng.IntN(6)) {
			rows = append(rows, row{PID: pid + 1, SM: uint32(rng.IntN(101))})
		}
		device := rng.IntN(10001)
		total, sum := 0, 0
		for _, r := range rows {
			total += int(r.SM) * 100
		}
		for _, part := range shares(rows, &device) {
			if part < 0 {
				t.Fatalf("%v of %d: %d", rows, device, part)
			}
			sum += part
		}
		if want := min(total, device); sum != want {
			t.Fatalf("%v of %d sum to %d, want %d", rows, device, sum, want)
		}
	}
}

func TestAnotherBootIsNoStepOfTheClock(t *testing.T) {
	m := &meter{}
	m.take(reading{Devices: []deviceReading{{UUID: "A", Ticks: []tick{{At: micros(moment(0).Wall), Value: 1}}}}},
		moment(0), asked{})
	next := moment(time.Second)
	next.BootID, next.Boot = "boot-2", time.Second
	if back, stepped := m.stepped(next); back || stepped {
		t.Error("it was taken for one")
	}
}
