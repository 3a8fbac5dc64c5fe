package gpu

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// archive is a store as an agent has one: the state, and rows and buckets under
// their keys, written together or not at all.
type archive struct {
	state   []byte
	rows    map[string]Row
	buckets map[string]Bucket
}

func newArchive() *archive { return &archive{rows: map[string]Row{}, buckets: map[string]Bucket{}} }

func (s *archive) write(t *testing.T, a *Accounts) {
	t.Helper()
	c := a.Checkpoint()
	data, err := json.Marshal(c.State)
	must(t, err)
	s.state = data
	for _, r := range c.Rows {
		s.rows[fmt.Sprint(r.Session, " ", r.Device, " ", r.Part)] = r
	}
	for _, b := range c.Buckets {
		s.buckets[fmt.Sprint(b.Span, b.Start.Unix(), " ", b.Part)] = b
	}
	a.Committed(c)
}

func (s *archive) open(t *testing.T) *Accounts {
	t.Helper()
	var state State
	if s.state != nil {
		must(t, json.Unmarshal(s.state, &state))
	}
	return NewAccounts(state)
}

func (s *archive) sum(only func(session string, device UUID) bool) (sum Counters) {
	for _, r := range s.rows {
		if only(r.Session, r.Device) {
			sum.Add(r.Counters)
		}
	}
	return sum
}

func (s *archive) sumOf(span Span) (sum Counters) {
	for _, b := range s.buckets {
		if b.Span == span {
			for _, r := range b.Rows {
				sum.Add(r.Counters)
			}
		}
	}
	return sum
}

// world makes up samples, events and accidents.
type world struct {
	rng      *rand.Rand
	at       Moment
	epoch    Epoch
	counters []MilliJoule
	running  map[string]Holder
	next     int
}

func newWorld(seed uint64) *world {
	return &world{
		rng: rand.New(rand.NewPCG(seed, 9)),
		at: Moment{BootID: "b0", Boot: time.Minute, Awake: time.Minute,
			Wall: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)},
		epoch:    Epoch{Boot: "b0", Driver: "d0"},
		counters: make([]MilliJoule, 3), running: map[string]Holder{},
	}
}

func (w *world) pass(d time.Duration) {
	w.at.Boot, w.at.Awake, w.at.Wall = w.at.Boot+d, w.at.Awake+d, w.at.Wall.Add(d)
	for i := range w.counters {
		w.counters[i] += MilliJoule(int64(20_000+w.rng.IntN(400_000)) * d.Milliseconds() / 1000)
	}
}

// maybe is v in most cases, and nil in one of n.
func maybe[T any](w *world, n int, v T) *T {
	if w.rng.IntN(n) == 0 {
		return nil
	}
	return &v
}

// sample is whatever a driver may say, contradictions included.
func (w *world) sample() Sample {
	s := Sample{At: w.at, Epoch: w.epoch}
	if w.rng.IntN(10) == 0 {
		s.Since = w.at.Boot - time.Duration(w.rng.IntN(15))*time.Second
	}
	for i, counter := range w.counters {
		if w.rng.IntN(20) == 0 {
			continue
		}
		s.Devices = append(s.Devices, DeviceSample{
			UUID: UUID(fmt.Sprint("G", i)), Util: maybe(w, 6, w.rng.IntN(11000)-500),
			MemoryUsed: maybe(w, 6, Bytes(w.rng.Int64N(int64(24*GiB)))),
			Power:      maybe(w, 6, MilliWatt(w.rng.IntN(400_000))), Energy: maybe(w, 4, counter),
			Blind: w.rng.IntN(15) == 0,
		})
	}
	for range w.rng.IntN(8) {
		p := ProcessSample{
			PID: 1 + w.rng.IntN(20), Start: uint64(w.rng.IntN(3)) * 3000, Device: UUID(fmt.Sprint("G", w.rng.IntN(3))),
			Memory: maybe(w, 5, Bytes(w.rng.Int64N(int64(12*GiB)))), Util: maybe(w, 5, w.rng.IntN(14000)),
		}
		if w.rng.IntN(4) > 0 {
			p.Container = fmt.Sprintf("c-s%d", w.rng.IntN(w.next+1))
		}
		s.Processes = append(s.Processes, p)
	}
	return s
}

func (w *world) startOne() Holder {
	w.next++
	name := fmt.Sprint("s", w.next)
	h := Holder{Session: name, Containers: []string{"c-" + name}}
	for range 1 + w.rng.IntN(2) {
		h.Grants = append(h.Grants, Grant{Device: UUID(fmt.Sprint("G", w.rng.IntN(3))),
			Share: Share(1 + w.rng.IntN(1000)), Memory: Bytes(w.rng.Int64N(int64(20 * GiB)))})
	}
	w.running[name] = h
	return h
}

// accident makes something go wrong.
func (w *world) accident() {
	switch w.rng.IntN(6) {
	case 0:
		w.epoch.Driver = fmt.Sprint("d", w.rng.IntN(1000))
		clear(w.counters)
	case 1:
		w.counters[w.rng.IntN(3)] = 0
	case 2:
		w.at.Boot, w.at.Wall = w.at.Boot+time.Hour, w.at.Wall.Add(time.Hour)
	case 3:
		w.at.Wall = w.at.Wall.Add(time.Duration(w.rng.IntN(20000)-10000) * time.Second)
	case 4:
		w.pass(time.Duration(w.rng.IntN(100)) * time.Second)
	case 5:
		w.at.BootID = fmt.Sprint("b", w.rng.IntN(1000))
		w.epoch.Boot = w.at.BootID
		w.at.Boot, w.at.Awake = time.Second, time.Second
		clear(w.counters)
	}
}

// Whatever is told and whatever goes wrong, the parts of a device sum to what
// it counted, nothing shrinks, and the stored rows and buckets say the same.
func TestAccountsBalanceWhateverHappens(t *testing.T) {
	for seed := range uint64(30) {
		w, s := newWorld(seed), newArchive()
		a := s.open(t)
		floor := map[string]Counters{}
		for step := range 300 {
			w.pass(time.Duration(500+w.rng.IntN(3000)) * time.Millisecond)
			switch n := w.rng.IntN(20); {
			case n < 2:
				a.Start(w.at, w.startOne())
			case n < 4:
				for name := range w.running {
					a.Stop(w.at, name)
					delete(w.running, name)
					break
				}
			case n == 4:
				w.accident()
			case n == 5: // killed: what was not written is gone
				a = s.open(t)
				clear(floor)
				for _, name := range a.Sessions() {
					if _, runs := w.running[name]; !runs {
						a.Stop(w.at, name)
					}
				}
				for _, h := range w.running {
					a.Start(w.at, h)
				}
			}
			a.Book(w.sample())
			if errs := a.Check(); len(errs) > 0 {
				t.Fatalf("seed %d step %d: %v", seed, step, errs)
			}
			for _, r := range a.Rows() {
				key := fmt.Sprint(r.Session, r.Device, r.Part)
				if shrank(floor[key], r.Counters) {
					t.Fatalf("seed %d step %d: %s shrank from %+v to %+v", seed, step, key, floor[key], r.Counters)
				}
				floor[key] = r.Counters
			}
			if w.rng.IntN(4) == 0 {
				s.write(t, a)
			}
		}
		s.write(t, a)
		all := s.sum(func(string, UUID) bool { return true })
		for _, span := range []Span{SpanMinute, SpanHour, SpanDay} {
			if got := s.sumOf(span); got != all {
				t.Fatalf("seed %d: rows have\n%+v and %s buckets\n%+v", seed, all, span, got)
			}
		}
		for _, d := range a.Devices() {
			got := s.sum(func(_ string, device UUID) bool { return device == d.UUID })
			if got.BusyGPUMs != d.Counted.BusyGPUMs || got.VRAM != d.Counted.VRAM ||
				got.EnergyDyn+got.EnergyIdle != d.Counted.EnergyDyn+d.Counted.EnergyIdle {
				t.Fatalf("seed %d: %s counted %+v, the stored rows have %+v", seed, d.UUID, d.Counted, got)
			}
		}
	}
}

func shrank(before, after Counters) bool {
	b, a := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range b.NumField() {
		if b.Field(i).CanInt() && b.Field(i).Int() > a.Field(i).Int() {
			return true
		}
	}
	return before.VRAM.big().Cmp(after.VRAM.big()) > 0 || before.VRAMAlloc.big().Cmp(after.VRAMAlloc.big()) > 0
}

func TestSplitSumsExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		weights := make([]int64, 1+rng.IntN(12))
		var all int64
		for i := range weights {
			if rng.IntN(3) > 0 {
				weights[i] = rng.Int64N(1 << (1 + rng.IntN(58)))
			}
			all += weights[i]
		}
		total := rng.Int64N(1 << (1 + rng.IntN(62)))
		var sum int64
		for i, part := range split(total, weights) {
			if part < 0 || weights[i] == 0 && part != 0 {
				t.Fatalf("%d of %v is split with %d for weight %d", total, weights, part, weights[i])
			}
			sum += part
		}
		if all > 0 && sum != total || all == 0 && sum != 0 {
			t.Fatalf("the parts of %d by %v sum to %d", total, weights, sum)
		}
	}
}

func TestByteTimeCountsBeyondSixtyFourBits(t *testing.T) {
	year := int64(365 * 24 * 3600 * 1000)
	var sum ByteTime
	for range 10 {
		sum = sum.Plus(Held(141*GiB, year))
	}
	if got, want := float64(sum.Per(GiB))/3.6e6, 141.0*10*365*24; got < want*0.999999 || got > want*1.000001 {
		t.Errorf("ten years of 141 GiB are %f GiB·h, want %f", got, want)
	}
	data, err := json.Marshal(sum)
	must(t, err)
	var read ByteTime
	must(t, json.Unmarshal(data, &read))
	if read != sum {
		t.Errorf("%s is read as %s", data, read)
	}
	if err := json.Unmarshal([]byte(`-1`), &read); err == nil {
		t.Error("a negative amount was read")
	}
}
